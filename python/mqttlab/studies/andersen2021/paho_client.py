"""A client of andersen2021, performed by paho-mqtt itself: a process of a live run, started by the engine.

    paho_client.py ADDRESS PORT CLIENT_ID publish|subscribe TOPIC QOS gps|image|- MESSAGES INTERVAL_S

It keeps Paho's defaults, a keep-alive of 60 s among them, and connects again by itself, as the study's clients did.
"""

from __future__ import annotations

import signal
import sys
import time

import paho.mqtt.client as mqtt

# The study's payloads: GeoJSON of about 400 B, and an image of about 1300 B as text in JSON.
BYTES = {"gps": 400, "image": 1300}
LONGEST_CONNECT_S = 300.0


def main() -> None:
    """Publish or subscribe until somebody says that it is over."""
    address, port, client_id, does, topic, qos, kind, messages, interval_s = sys.argv[1:]
    # Paho 1.5, the study's, has one version of its callbacks; 2 asks for which.
    version = [mqtt.CallbackAPIVersion.VERSION2] if hasattr(mqtt, "CallbackAPIVersion") else []
    client = mqtt.Client(*version, client_id=client_id, protocol=mqtt.MQTTv311)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    if does == "subscribe":
        client.on_connect = lambda *_: client.subscribe(topic, int(qos))
        client.on_subscribe = lambda *_: print("ready", flush=True)
        client.connect_async(address, int(port))
        client.loop_forever(retry_first_connection=True)
        return
    client.on_connect = lambda *_: print("ready", flush=True)
    client.connect_async(address, int(port))
    client.loop_start()
    give_up = time.monotonic() + LONGEST_CONNECT_S
    while not client.is_connected() and time.monotonic() < give_up:
        time.sleep(0.05)
    began = time.monotonic()
    for sequence in range(int(messages)):
        time.sleep(max(began + sequence * float(interval_s) - time.monotonic(), 0))
        client.publish(topic, f"{sequence:6} of {client_id} ".ljust(BYTES[kind], "."), int(qos))
    signal.pause()


if __name__ == "__main__":
    main()
