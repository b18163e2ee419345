"""An IEEE 802.11 channel, as a scenario writes it.

Every host is a station, in the order of the plan; the broker's host is one of them, or the access point in front of it.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from mqttlab.digits import plain
from mqttlab.networks.link import Part, Truth, Whole
from mqttlab.quantity import (
    AreaMm,
    CurrentNa,
    DurationNs,
    GainMdb,
    LengthMm,
    PositiveShortDurationNs,
    PowerMdbm,
    RateBitS,
    RatioPair,
    SizeBytes,
    SpeedMmS,
)
from mqttlab.secrets import PlainText

MICRO = 1000
MEDIUM = "radio"
"""The channel's name in plans and recordings."""
PAIR_OF_LENGTHS = tuple[LengthMm, LengthMm]


@dataclass(frozen=True, kw_only=True)
class Standard:
    """What a standard says of rates, times and levels."""

    meaning: str
    modulation: str
    data_rate_bit_s: int
    control_rate_bit_s: int
    preamble_us: int
    slot_us: int
    cw_min_slots: int
    snir_control_mdb: int
    snir_data_mdb: int
    carrier_sense_mdbm: int

    def phy(self, ack_rate_bit_s: int | None) -> dict[str, Any]:
        """The plan's physical layer."""
        return {
            "modulation": self.modulation, "data_rate_bit_s": self.data_rate_bit_s,
            "control_rate_bit_s": self.control_rate_bit_s, "preamble_ns": self.preamble_us * MICRO,
            "slot_ns": self.slot_us * MICRO, "sifs_ns": 10 * MICRO, "cw_min_slots": self.cw_min_slots,
            "cw_max_slots": 1023, "ack_rate_bit_s": ack_rate_bit_s,
        }


STANDARDS: dict[str, Standard] = {
    "dsss-2": Standard(
        meaning="802.11 of 1997: data at 2 Mbit/s, control at 1 Mbit/s, long preamble", modulation="dsss",
        data_rate_bit_s=2_000_000, control_rate_bit_s=1_000_000, preamble_us=192, slot_us=20, cw_min_slots=31,
        snir_control_mdb=4_000, snir_data_mdb=4_000, carrier_sense_mdbm=-85_000),
    "b-11": Standard(
        meaning="802.11b: data at 11 Mbit/s, control at 2 Mbit/s, long preamble", modulation="dsss",
        data_rate_bit_s=11_000_000, control_rate_bit_s=2_000_000, preamble_us=192, slot_us=20, cw_min_slots=31,
        snir_control_mdb=4_000, snir_data_mdb=10_000, carrier_sense_mdbm=-85_000),
    "g-54": Standard(
        meaning="802.11g without 802.11b stations: data at 54 Mbit/s, control at 24 Mbit/s", modulation="erp_ofdm",
        data_rate_bit_s=54_000_000, control_rate_bit_s=24_000_000, preamble_us=20, slot_us=9, cw_min_slots=15,
        snir_control_mdb=12_000, snir_data_mdb=21_000, carrier_sense_mdbm=-62_000),
}

# Rates that have a modulation, in bit/s.
RATES = {"dsss": (1_000_000, 2_000_000, 5_500_000, 11_000_000),
         "erp_ofdm": tuple(mbit_s * 1_000_000 for mbit_s in (6, 9, 12, 18, 24, 36, 48, 54))}

# Voltage in mV, the currents to send, to receive and to listen in uA, that of sleep in nA.
# Sources: docs/explanation/simulator.md.
ENERGY: dict[str, tuple[int, int, int, int, int]] = {
    "mica2": (3_000, 8_470, 7_030, 7_030, 200),
    "esp8266": (3_300, 170_000, 50_000, 50_000, 900_000),
    "esp32": (3_300, 240_000, 95_000, 95_000, 800_000),
    "wavelan": (4_740, 280_000, 204_000, 178_000, 14_000_000),
}


class Channel(Part):
    """Errors in bursts at every receiver: good and bad states of exponential length."""

    mean_bad: PositiveShortDurationNs = Field(ge=1000, description="Mean length of a bad state.")
    bad: RatioPair = Field((1, 10), description="Share of the time in the bad state.")
    loss_bad: RatioPair = Field((1, 2), description="Probability that a frame is lost in the bad state.")


def _within(least: int, most: int, unit: str) -> AfterValidator:
    """Bounds of a quantity in thousandths of a unit, told in the unit."""
    def read(value: int) -> int:
        if value < least:
            raise ValueError(f"is \"{plain(value / 1000)} {unit}\", but must be {plain(least / 1000)} {unit} or more")
        if value > most:
            raise ValueError(f"is \"{plain(value / 1000)} {unit}\", but must be {plain(most / 1000)} {unit} or less")
        return value

    return AfterValidator(read)


class Shadowing(Part):
    """Log-normal shadowing: a gain for each pair of stations, in decibels normally distributed."""

    sigma: Annotated[GainMdb, _within(1, 20_000, "dB")] = Field(
        description="Standard deviation.")
    decorrelation: Annotated[LengthMm, _within(100, 1_000_000_000, "m")] | None = Field(None, description=(
        "Where stations move, the way of both together over which the correlation of a pair's gain falls to 1/e; left "
        "out: a pair keeps its gain."))


class Fading(Part):
    """Block fading: the power between two stations is drawn anew after each coherence time, with the same mean."""

    kind: Literal["rayleigh", "nakagami"] = Field(
        description="`rayleigh`: no path is stronger than the others; `nakagami`: by its shape `m`.")
    coherence: PositiveShortDurationNs = Field(ge=1_000, description="How long a gain lasts.")
    m: float | None = Field(None, ge=0.5, le=100.0, description=(
        "Shape of `nakagami`: 1 is `rayleigh`, more is less fading."))

    @model_validator(mode="after")
    def _shape_of_nakagami(self) -> Self:
        if self.kind == "nakagami" and self.m is None:
            raise ValueError("has `kind = \"nakagami\"`, which needs a shape; add `m`, such as `m = 3`")
        if self.kind == "rayleigh" and self.m is not None:
            raise ValueError("has `m`, which goes with `kind = \"nakagami\"`; write that kind, or leave `m` out")
        return self

    def plan(self) -> dict[str, Any]:
        """The plan's fading."""
        shape = {} if self.m is None else {"m_milli": round(1000 * self.m)}
        return {"kind": self.kind, **shape, "coherence_ns": self.coherence}


class Interferer(Part):
    """A source of power that speaks no 802.11: stations sense it as a busy channel, and receive frames under it."""

    name: PlainText = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=40, description="Unique among interferers.")
    position: PAIR_OF_LENGTHS = Field(description="Where it stands.")
    power: Annotated[PowerMdbm, _within(-140_000, 40_000, "dBm")] = Field(
        description="What it radiates within the channel.")
    on: PositiveShortDurationNs | None = Field(None, ge=100_000, description=(
        "How long it radiates in each turn; left out, with `off`: always."))
    off: PositiveShortDurationNs | None = Field(None, ge=100_000, description="How long it pauses between turns.")
    turns: Literal["regular", "exponential"] = Field(
        "regular", description="Whether `on` and `off` are the lengths of all turns, or means of exponential lengths.")
    starts: Literal["on", "off"] = Field(
        "on", description="`off`: it is silent until an event switches it on.")

    @model_validator(mode="after")
    def _has_turns(self) -> Self:
        if (self.on is None) != (self.off is None):
            has, lacks = ("on", "off") if self.off is None else ("off", "on")
            raise ValueError(f"has `{has}` without `{lacks}`; add `{lacks}`, or leave both out for an interferer that "
                             "always radiates")
        if self.turns == "exponential" and self.on is None:
            raise ValueError("has `turns = \"exponential\"` without their mean lengths; add `on` and `off`")
        return self

    def plan(self) -> dict[str, Any]:
        """The plan's interferer."""
        duty = {"kind": "constant"} if self.on is None else {"kind": self.turns, "on_ns": self.on, "off_ns": self.off}
        x, y = self.position
        return {"name": self.name, "position": {"x_mm": x, "y_mm": y}, "power_mdbm": self.power, "duty": duty,
                "on": self.starts == "on"}


class Mobility(Part):
    """Random waypoint: to a point of the area, a pause, and on."""

    speed: tuple[SpeedMmS, SpeedMmS] = Field(description="Lowest and highest speed.")
    pause: DurationNs = Field(0, description="Pause at each waypoint.")
    refresh: PositiveShortDurationNs = Field(
        100_000_000, ge=1000, description="Time for which path losses are treated as constant.")

    @model_validator(mode="after")
    def _speeds_in_order(self) -> Self:
        if not 0 < self.speed[0] <= self.speed[1]:
            raise ValueError("has a `speed` that is not a lowest speed above 0 m/s and a highest speed, in this "
                             "order, such as [\"0.5 m/s\", \"1.5 m/s\"]")
        return self


class Radio(Part):
    """A radio channel that joins all hosts."""

    standard: Literal["dsss-2", "b-11", "g-54"] = Field("b-11", description="Rates and times of the standard.")
    rts_threshold: SizeBytes | None = Field(
        None, description="Data frames larger than this use RTS/CTS; `0 B` for all, left out for none.")
    short_retries: Whole = Field(
        7, ge=1, le=255, description="Maximum number of transmissions of a frame without RTS/CTS, or of an RTS.")
    long_retries: Whole = Field(4, ge=1, le=255, description="Maximum number of transmissions of a frame with RTS/CTS.")
    ack_rate: RateBitS | None = Field(
        None, description="Rate of acknowledgements; the standard's control rate when left out (ns-3: the data rate).")
    difs_from_queueing: Truth = Field(
        False, description="A frame that comes to an idle station waits one DIFS from then on, as in ns-3; otherwise "
        "it is sent at once where the medium has been idle that long.")
    queue: Whole | None = Field(50, ge=1, description="Frames that may wait at a station.")
    area: AreaMm = Field((150_000, 150_000), description="Where stations are placed and move.")
    placement: Literal["random", "grid"] = Field("random", description="How they are placed.")
    spacing: LengthMm = Field(10_000, description="Distance between neighbouring stations on a grid.")
    positions: list[PAIR_OF_LENGTHS] | None = Field(
        None, description="Position of each host, in the order of the plan (the broker first); instead of the above.")
    mobility: Mobility | None = Field(None, description="How they move.")
    channel: Channel | None = Field(None, description="Errors in bursts.")
    shadowing: Shadowing | None = Field(None, description="What stands between stations; left out for nothing.")
    fading: Fading | None = Field(None, description="What reflections make of powers; left out for nothing.")
    errors: Literal["threshold", "snr"] = Field("threshold", description=(
        "How noise and interference spoil a frame: `threshold`, where the ratio falls below `snir_data`; `snr`, by the "
        "bit errors of the modulation at that ratio, so that long frames are lost sooner."))
    interferers: list[Interferer] = Field([], max_length=1_000, description="What else is on the air.")
    path_loss_exponent: float = Field(3.0, ge=1.0, le=6.0, description="2 is free space.")
    transmit_power: PowerMdbm = Field(20_000, description="Radiated power.")
    sensitivity: PowerMdbm = Field(-91_000, description="Receiver sensitivity: the weakest frame that is received.")
    noise: PowerMdbm = Field(-95_000, description="Noise floor.")
    snir_data: GainMdb | None = Field(None, description="Signal to noise and interference ratio that data frames need.")
    capture: GainMdb | None = Field(
        10_000, description="Capture threshold: a frame that is stronger by this captures the receiver.")
    energy: Literal["mica2", "esp8266", "esp32", "wavelan"] = Field("wavelan", description="Power that radios draw.")
    sleep_current: CurrentNa | None = Field(None, description=(
        "What a radio draws while all of its host's clients sleep (`mqtt_sn.sleep`) and it has nothing to do; that of "
        "`energy` when left out."))
    access_point: Truth = Field(
        False, description="The broker's station is an access point, and the trunk leads from it to the broker.")

    @model_validator(mode="after")
    def _errors_of_rates(self) -> Self:
        if self.errors == "threshold":
            return self
        if self.snir_data is not None:
            raise ValueError("has `snir_data`, which goes with `errors = \"threshold\"`; leave one of them out")
        rates = RATES[STANDARDS[self.standard].modulation]
        if self.ack_rate is not None and self.ack_rate not in rates:
            known = ", ".join(plain(rate / 1e6) for rate in rates)
            raise ValueError(f"has `errors = \"snr\"` and an `ack_rate` of {plain(self.ack_rate / 1e6)} Mbit/s, "
                             "for which "
                             f"the standard has no modulation; use one of {known} Mbit/s")
        return self

    def words(self) -> str:
        """What varies on the channel, as `check` tells it; empty where nothing does."""
        told = []
        if self.shadowing is not None:
            told.append(f"shadowing of {plain(self.shadowing.sigma / 1000)} dB")
        if self.fading is not None:
            shape = "" if self.fading.m is None else f" (m = {plain(self.fading.m)})"
            told.append(f"{self.fading.kind.capitalize()} fading{shape}, "
                        f"anew every {plain(self.fading.coherence / 1e6)} ms")
        if self.errors == "snr":
            told.append("errors by signal to noise")
        if self.interferers:
            told.append(f"interferers {', '.join(interferer.name for interferer in self.interferers[:3])}"
                        + (", ..." if len(self.interferers) > 3 else ""))
        return "; ".join(told)

    def plan(self, stations: int) -> dict[str, Any]:
        """The medium as the plan has it (``MediumSpec`` of the engine).

        Raises:
            ValueError: there are not as many positions as stations.
        """
        standard = STANDARDS[self.standard]
        voltage, transmit, receive, idle, sleep = ENERGY[self.energy]
        return {
            "name": MEDIUM,
            "phy": standard.phy(self.ack_rate),
            "mac": {"rts_threshold_bytes": self.rts_threshold, "short_retry_limit": self.short_retries,
                    "long_retry_limit": self.long_retries, "queue_limit_frames": self.queue,
                    "difs_from_queueing": self.difs_from_queueing},
            "radio": {
                "frequency_hz": 2_400_000_000, "exponent_milli": round(1000 * self.path_loss_exponent),
                "transmit_power_mdbm": self.transmit_power, "sensitivity_mdbm": self.sensitivity,
                "noise_mdbm": self.noise, "snir_preamble_mdb": 4_000,
                "snir_control_mdb": min(standard.snir_control_mdb, self.snir_data or standard.snir_control_mdb),
                "snir_data_mdb": self.snir_data or standard.snir_data_mdb, "capture_mdb": self.capture,
                "carrier_sense_mdbm": standard.carrier_sense_mdbm,
                "interference_floor_mdbm": min(-105_000, self.noise - 10_000), **self._variation(),
            },
            "channel": None if self.channel is None else {
                "mean_bad_ns": self.channel.mean_bad, "bad": list(self.channel.bad),
                "loss_bad": list(self.channel.loss_bad)},
            "interferers": [interferer.plan() for interferer in self.interferers],
            "placement": self._placement(stations),
            "mobility": self._mobility(),
            "energy": {"name": self.energy, "voltage_mv": voltage, "transmit_ua": transmit, "receive_ua": receive,
                       "idle_ua": idle, "sleep_na": sleep if self.sleep_current is None else self.sleep_current},
        }

    def _variation(self) -> dict[str, Any]:
        """How powers and errors vary, as the plan has it."""
        return {
            "shadowing": None if self.shadowing is None else {
                "sigma_mdb": self.shadowing.sigma, "decorrelation_mm": self.shadowing.decorrelation},
            "fading": None if self.fading is None else self.fading.plan(), "errors": self.errors,
        }

    def _placement(self, stations: int) -> dict[str, Any]:
        if self.positions is not None:
            if len(self.positions) != stations:
                raise ValueError(f"`radio.positions` has {len(self.positions)} entries, but there are {stations} hosts")
            return {"kind": "explicit", "positions": [{"x_mm": x, "y_mm": y} for x, y in self.positions]}
        if self.placement == "grid":
            return {"kind": "grid", "stations": stations, "spacing_mm": self.spacing}
        return {"kind": "random", "stations": stations, "width_mm": self.area[0], "height_mm": self.area[1]}

    def _mobility(self) -> dict[str, Any]:
        if self.mobility is None:
            return {"kind": "none"}
        return {
            "kind": "random_waypoint", "width_mm": self.area[0], "height_mm": self.area[1],
            "speed_min_mm_s": self.mobility.speed[0], "speed_max_mm_s": self.mobility.speed[1],
            "pause_ns": self.mobility.pause, "refresh_ns": self.mobility.refresh,
        }
