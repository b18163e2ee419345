"""A publisher and a subscriber of paho-mqtt in one process, as a peer of our clients.

    python benches/load/paho_pair.py tcp|websocket|tls PORT QOS BYTES MESSAGES WINDOW AUTHORITY

Prints how many messages were delivered.
"""

from __future__ import annotations

import sys
import threading

import paho.mqtt.client as mqtt

PATIENCE_S = 25


def client(transport: str, port: int, name: str, window: int, authority: str) -> mqtt.Client:
    """A connected client, whose thread runs."""
    made = mqtt.Client(
        mqtt.CallbackAPIVersion.VERSION2, client_id=name,
        transport="websockets" if transport == "websocket" else "tcp")
    made.max_inflight_messages_set(window)
    made.max_queued_messages_set(0)
    if transport == "websocket":
        made.ws_set_options(path="/mqtt")
    if transport == "tls":
        made.tls_set(ca_certs=authority)
    connected = threading.Event()
    made.on_connect = lambda *_: connected.set()
    made.connect("127.0.0.1", port)
    made.loop_start()
    connected.wait(10)
    return made


def main() -> None:
    transport = sys.argv[1]
    port, qos, size, messages, window = map(int, sys.argv[2:7])
    subscriber, publisher = (client(transport, port, name, window, sys.argv[7]) for name in ("sub", "pub"))
    ready, done, delivered = threading.Event(), threading.Event(), 0

    def count(*_: object) -> None:
        nonlocal delivered
        delivered += 1
        if delivered == messages:
            done.set()

    subscriber.on_message = count
    subscriber.on_subscribe = lambda *_: ready.set()
    subscriber.subscribe("load/0", qos)
    ready.wait(10)
    for _ in range(messages):
        publisher.publish("load/0", b"x" * size, qos)
    done.wait(PATIENCE_S)
    print(delivered)
    for made in (publisher, subscriber):
        made.disconnect()
        made.loop_stop()


if __name__ == "__main__":
    main()
