"""The named network models, each with the source of its figures.

Models of andersen2021 are netem as that testbed used it: rate, delay and loss on one interface, the Ethernet header
counted, a queue of 1000 packets that counts the delay line, lost frames taking no time.
The others are typical values; where a source gives a range, the figure chosen is named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mqttlab.networks.link import GilbertElliott, LinkDirection, Queue

LOSSES = ("loss", "burst_loss", "bit_errors")
MS = 10**6
K = 10**3
M = 10**6


WITHOUT_MODEL = {
    "lorawan": "LoRaWAN sends to a device only after the device has sent, in frames of 242 B at most, and carries no "
               "TCP; `lora-backhaul` is a link between two LoRa modems",
}
"""Networks that people look for and that no link stands for, and why."""

ALSO_CALLED = {"4g": "lte", "lte-a": "lte", "cat-m1": "lte-m", "ltem": "lte-m", "cat-nb1": "nb-iot", "nbiot": "nb-iot",
               "umts": "3g", "hspa": "3g", "wlan": "wifi", "802.11": "wifi", "zigbee": "802.15.4",
               "starlink": "leo-satellite", "satellite": "geo-satellite", "lora": "lora-backhaul"}
"""Names of networks that their models do not have."""


@dataclass(frozen=True, kw_only=True)
class NetworkModel:
    """A named network: both directions, where it is usually applied, and who says so."""

    name: str
    title: str
    up: LinkDirection
    down: LinkDirection
    placement: str
    source: str

    def adjusted(self, up: LinkDirection | None, down: LinkDirection | None) -> NetworkModel:
        """The same with the fields that are written out in ``up`` and ``down``.

        Raises:
            ValueError: they do not go with the model's own.
        """
        return replace(self, up=adjusted(self.up, _written(up)), down=adjusted(self.down, _written(down)))


def _written(link: LinkDirection | None) -> dict[str, Any]:
    return {} if link is None else {name: getattr(link, name) for name in link.model_fields_set}


def adjusted(link: LinkDirection, fields: dict[str, Any]) -> LinkDirection:
    """A link with other values of some fields.

    Raises:
        ValueError: they do not go with the link's own.
    """
    if not fields:
        return link
    if set(LOSSES) & set(fields):
        # One way of losing frames takes the place of another.
        fields = {name: LinkDirection.model_fields[name].get_default() for name in LOSSES} | fields
    if fields.get("jitter") == 0:
        fields = {"distribution": None} | fields
    # Whether the fields go together is asked of the whole.
    return LinkDirection.model_validate(link.model_copy(update=fields))


# About 0.4 % of the frames, four at a time.
_WIFI_BURSTS = GilbertElliott.model_validate(
    {"good_to_bad": "1/500", "bad_to_good": "1/4", "loss_bad": "1/2"})


def _link(rate: int | None, delay_ms: float, **more: object) -> LinkDirection:
    return LinkDirection.model_construct(
        **{name: field.get_default() for name, field in LinkDirection.model_fields.items()}
    ).model_copy(update={"rate": rate, "delay": round(delay_ms * MS), **more})


def _netem(name: str, title: str, rate: int, delay_ms: float, loss_percent: int) -> NetworkModel:
    link = _link(
        rate, delay_ms, loss=(loss_percent, 100) if loss_percent else (0, 1), loss_at="entry", overhead=14,
        queue=Queue(packets=1000, bytes=None), queue_counts_delay_line=True,
    )
    return NetworkModel(
        name=name, title=title, up=link, down=link, placement="both",
        source="Andersen 2021, table 4.1, here in each direction; the study itself shaped what the broker sends and "
               "nothing else, as its delays show (`placement = \"egress-at-broker\"`)",
    )


def _queue(packets: int) -> Queue:
    return Queue(packets=packets, bytes=None)


MODELS: dict[str, NetworkModel] = {
    model.name: model
    for model in (
        NetworkModel(
            name="lte", title="4G, LTE",
            up=_link(12 * M, 35, jitter=5 * MS, distribution="normal", queue=_queue(500)),
            down=_link(12 * M, 35, jitter=5 * MS, distribution="normal", queue=_queue(500)),
            placement="both",
            source="12 Mbit/s each way and 70 ms round trip: WebPageTest's profile \"LTE\"; jitter and queues assumed",
        ),
        NetworkModel(
            name="lte-m", title="LTE-M (Cat-M1, half duplex, good coverage)",
            up=_link(375 * K, 60, jitter=15 * MS, distribution="normal", queue=_queue(200)),
            down=_link(300 * K, 40, jitter=10 * MS, distribution="normal", queue=_queue(200)),
            placement="both",
            source="Rate: the peak of a half-duplex Cat-M1 device, 3GPP Release 13 (375 and 300 kbit/s); "
                   "delay and jitter: assumed, of the order that operators state for a connected device",
        ),
        NetworkModel(
            name="nb-iot", title="NB-IoT (Cat-NB1, multi-tone, good coverage)",
            up=_link(60 * K, 800, jitter=200 * MS, distribution="normal", queue=_queue(50)),
            down=_link(26 * K, 400, jitter=100 * MS, distribution="normal", queue=_queue(50)),
            placement="both",
            source="Rate: the peak of a Cat-NB1 device, 3GPP Release 13 (about 62 and 26 kbit/s); delay and jitter: "
                   "assumed, for a device that stays connected (out of idle it may be 10 s, 3GPP TR 45.820)",
        ),
        NetworkModel(
            name="5g", title="5G as users have it",
            up=_link(10 * M, 20, jitter=5 * MS, distribution="normal", queue=_queue(500)),
            down=_link(50 * M, 20, jitter=5 * MS, distribution="normal", queue=_queue(1000)), placement="both",
            source="50 Mbit/s: 60 % of a CDN's mobile users see less, Third-party assessment of mobile performance in "
                   "the 5G era, arXiv 2507.18834 (2025). 40 ms round trip: assumed; there only 5 % are regularly below "
                   "20 ms. Uplink rate, jitter and queues assumed",
        ),
        NetworkModel(
            name="5g-embb", title="5G, enhanced mobile broadband (eMBB)",
            up=_link(50 * M, 4, queue=_queue(1000)), down=_link(100 * M, 4, queue=_queue(1000)), placement="both",
            source="ITU-R M.2410: 4 ms of user plane latency each way (also 3GPP TR 38.913), 100 and 50 Mbit/s as user "
                   "experienced rates; requirements, without the spread of a measured network",
        ),
        NetworkModel(
            name="5g-urllc", title="5G, ultra-reliable low latency (URLLC)",
            up=_link(10 * M, 0.5, loss=(1, 100_000), queue=_queue(200)),
            down=_link(10 * M, 0.5, loss=(1, 100_000), queue=_queue(200)), placement="both",
            source="3GPP TR 38.913: 0.5 ms of user plane latency each way; loss: its reliability of 1 - 10^-5 within "
                   "1 ms, where late counts as lost; rate assumed",
        ),
        NetworkModel(
            name="5g-mmtc", title="5G, massive machine type communication (mMTC)",
            up=_link(60 * K, 60, jitter=15 * MS, distribution="normal", queue=_queue(50)),
            down=_link(60 * K, 60, jitter=15 * MS, distribution="normal", queue=_queue(50)), placement="both",
            source="Assumed, of the order of LTE-M for a connected device with the rate of NB-IoT, which 5G keeps for "
                   "this class; 3GPP TR 38.913 only bounds a rare small packet out of sleep by 10 s",
        ),
        NetworkModel(
            name="geo-satellite", title="Geostationary satellite broadband",
            up=_link(3 * M, 280, jitter=5 * MS, distribution="normal", queue=_queue(200)),
            down=_link(25 * M, 280, jitter=5 * MS, distribution="normal", queue=_queue(1000)),
            placement="both",
            source="Delay: 35 786 km up and down at the speed of light, 239 ms, and 41 ms of framing and gateway, "
                   "assumed; rates: a consumer plan, assumed",
        ),
        NetworkModel(
            name="leo-satellite", title="Low earth orbit satellite broadband",
            up=_link(10 * M, 25, jitter=10 * MS, distribution="normal", loss=(4, 1000), queue=_queue(200)),
            down=_link(100 * M, 25, jitter=10 * MS, distribution="normal", loss=(4, 1000), queue=_queue(1000)),
            placement="both",
            source="Round trip 50 ms, quartiles 40 and 60 ms: Michel et al., A first look at Starlink performance, IMC "
                   "2022; loss assumed, rates of the order of theirs",
        ),
        NetworkModel(
            name="3g", title="UMTS with HSPA",
            up=_link(768 * K, 75, jitter=10 * MS, distribution="normal", queue=_queue(300)),
            down=_link(1_600 * K, 75, jitter=10 * MS, distribution="normal", queue=_queue(300)),
            placement="both",
            source="1.6 Mbit/s, 768 kbit/s and 150 ms round trip: WebPageTest's profile \"3G Fast\"; jitter assumed",
        ),
        NetworkModel(
            name="dsl", title="DSL",
            up=_link(384 * K, 25, queue=_queue(100)),
            down=_link(1_500 * K, 25, queue=_queue(200)),
            placement="both",
            source="1.5 Mbit/s, 384 kbit/s and 50 ms round trip: the DSL profile of WebPageTest; queues assumed",
        ),
        NetworkModel(
            name="wifi", title="Wi-Fi in a home, some interference",
            up=_link(15 * M, 1, jitter=MS // 4, distribution="pareto", burst_loss=_WIFI_BURSTS),
            down=_link(30 * M, 1, jitter=MS // 4, distribution="pareto", burst_loss=_WIFI_BURSTS),
            placement="both",
            source="30 Mbit/s, 15 Mbit/s and 2 ms round trip: the Wi-Fi profile of Chrome's and Firefox's developer "
                   "tools; jitter and bursts assumed",
        ),
        NetworkModel(
            name="wifi-busy", title="Wi-Fi on a busy campus",
            up=_link(5 * M, 4, jitter=9 * MS, distribution="pareto", burst_loss=_WIFI_BURSTS),
            down=_link(10 * M, 4, jitter=9 * MS, distribution="pareto", burst_loss=_WIFI_BURSTS),
            placement="both",
            source="Round trip over the wireless hop of 3 ms in the median, 20 ms at the 90th percentile: Sui et "
                   "al., Characterizing and improving WiFi latency in large-scale operational networks, MobiSys "
                   "2016. The law is netem's Pareto. It has 4.9, 19 and 54 ms where they have 3, 20 and, at the "
                   "99th percentile, 250 ms. Rates and bursts of loss assumed",
        ),
        NetworkModel(
            name="lora-backhaul", title="LoRa point-to-point backhaul (SF7, 125 kHz)",
            up=_link(5_470, 50, loss=(2, 100), queue=_queue(32)),
            down=_link(5_470, 50, loss=(2, 100), queue=_queue(32)),
            placement="shared-medium",
            source="5.47 kbit/s: SF7 at 125 kHz and coding rate 4/5 (Semtech SX1276 data sheet); half duplex, one "
                   "channel; loss and turnaround assumed, duty cycle not modelled",
        ),
        NetworkModel(
            name="802.15.4", title="IEEE 802.15.4 at 2.4 GHz, one hop",
            up=_link(162 * K, 5, loss=(1, 100), queue=_queue(32)),
            down=_link(162 * K, 5, loss=(1, 100), queue=_queue(32)),
            placement="shared-medium",
            source="162 kbit/s: 64.9 % of 250 kbit/s, the most that one sender reaches with the largest frames, "
                   "Latré et al., Throughput and delay analysis of unslotted IEEE 802.15.4, 2006. One channel for "
                   "both directions. Delay and loss assumed. Not modelled: contention, 6LoWPAN's fragments of 127 B "
                   "and their headers",
        ),
        _netem("tactical-broadband", "Tactical broadband radio", 2 * M, 100, 1),
        _netem("satcom", "Satellite terminal", 250 * K, 550, 0),
        _netem("nato-narrowband", "NATO Narrowband Waveform", 16 * K, 500, 0),
        _netem("cnr-1", "Combat net radio, 1 % loss", 9_600, 100, 1),
        _netem("cnr-10", "Combat net radio, 10 % loss", 9_600, 100, 10),
    )
}
