"""What messages carried, where that is kept: of both backends the same bytes, whole, under the right message."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab.dashboard.payloads import picture
from mqttlab.imports import import_evidence
from mqttlab.recording import ADDED, Recording, RecordingError
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.estimate import estimate
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario

JSON_TEMPLATE = ('{"id": "{client}", "n": {sequence}, "t": {time}, "v": {random:-3..1200}, "x": "{random:hex 9}", '
                 '"on": {random:choice true|false}, "in": {"a": [{}, "{{time}}"]}}')
PHASES = {"duration": "500 ms", "cool_down": "5 s"}
KINDS: dict[str, dict[str, Any]] = {
    "gps": scenario(1, payload="gps", rate="20 /s", count=2, topic="g/{client}", phases=PHASES),
    "image": scenario(2, payload="image", rate="10 /s", phases=PHASES),
    "large": scenario(0, payload="100 kB", rate="6 /s", phases=PHASES),
    "random": scenario(1, publish={"payload": {"kind": "random", "size": "60 B"}, "rate": "10 /s"}, phases=PHASES,
                       subscriber={"count": 2}),
    "template": scenario(2, publish={"payload": {"template": JSON_TEMPLATE}, "rate": "20 /s"}, count=12,
                         topic="m/{client}", phases=PHASES),
    "padded": scenario(1, publish={"payload": {"template": "{group} {time:iso} {random:-9.9..10.0}", "size": "120 B"},
                                   "rate": "10 /s"}, phases=PHASES),
    "alert": scenario(1, payload="alert", rate="10 /s", phases=PHASES),
    "report": scenario(2, publish={"payload": {"kind": "report", "size": "3 kB"}, "rate": "10 /s"}, phases=PHASES),
    "jpeg": scenario(1, payload="jpeg", rate="10 /s", phases=PHASES),
    "png": scenario(0, publish={"payload": {"kind": "png", "size": "20 kB"}, "rate": "10 /s"}, phases=PHASES),
    "tiny": scenario(1, payload="3 B", rate="10 /s", phases=PHASES),
    "none": scenario(1, payload="0 B", rate="10 /s", phases=PHASES),
}


TIMED: dict[str, dict[str, Any]] = {"gps": {"id": ""}, "template": {"mqttlab": "", "t": 0}, "report": {"id": ""}}
"""Fields that say a time, which is each run's own."""


def run(directory: Path, kind: str, backend: str, **recording: Any) -> Recording:
    values = {**KINDS[kind], "backend": backend, "recording": {"payloads": True, **recording}}
    outcome = perform(Job(compile_plan(parse_values(values)), directory / f"{kind}-{backend}"), lambda line: None)
    assert outcome.verdict in ("complete", "invalid"), outcome.reason
    return Recording.open(directory / f"{kind}-{backend}")


def check_of_text(png: bytes) -> bool:
    """Whether the check sequence of the chunk behind the header is right (ISO/IEC 15948, 5.3)."""
    end = 41 + int.from_bytes(png[33:37], "big")
    return png[37:41] == b"tEXt" and zlib.crc32(png[37:end]) == int.from_bytes(png[end:end + 4], "big")


def contents(recording: Recording) -> dict[tuple[int, int, int], bytes]:
    """By publisher, sequence and subscriber."""
    table = recording.table("payloads")
    assert dict(table.schema) == ADDED["payloads"]
    return {row[:3]: recording.payload(*row[3:]) for row in table.select(
        "publisher", "sequence", "subscriber", "start_bytes", "kept_bytes").rows()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_delivery_has_what_it_carried(kind: str, tmp_path: Path) -> None:
    recording = run(tmp_path, kind, "sim")
    delivered = recording.messages.filter(fate="delivered")
    kept, table = contents(recording), recording.table("payloads")
    assert delivered.height == table.height == len(kept) > 0
    sizes = {row[:3]: row[3] for row in delivered.select("publisher", "sequence", "subscriber", "payload_bytes").rows()}
    assert {key: len(content) for key, content in kept.items()} == sizes
    assert sorted(table["received_ns"]) == sorted(delivered["received_ns"])
    assert set(table["source"]) == {"made"}
    assert recording.run["files"]["payloads.bin"] == {"rows": table.height, "bytes": sum(sizes.values())}
    if kind in ("gps", "image"):
        identities = {json.loads(content)["id"] for content in kept.values()}
        assert len(identities) == len({key[:2] for key in kept}), "each says which message it is"
    if kind == "template":
        said = {key[:2]: json.loads(content) for key, content in kept.items()}
        assert {(int(each["id"]), each["n"]) for each in said.values()} == set(said)
        assert len({each["mqttlab"] for each in said.values()}) == len(said) and len(set(sizes.values())) > 2
    if kind in ("alert", "report"):
        said = {key[:2]: json.loads(content)["properties"] for key, content in kept.items()}
        names = {(each["node_id"], each["msg_id"], each["kind"]) for each in said.values()}
        assert names == {(*key, kind) for key in said}
        assert set(sizes.values()) == {400 if kind == "alert" else 3_000}
    if kind in ("jpeg", "png"):
        assert {picture(content).kind for content in kept.values()} == {f"image/{kind}"}
        assert set(sizes.values()) == {870 if kind == "jpeg" else 20_000} and len(set(kept.values())) == len(kept)
    if kind == "padded":
        assert set(sizes.values()) == {120} and all(b"Z " in content for content in kept.values())


@pytest.mark.live
@pytest.mark.parametrize("kind", ["gps", "large", "template", "report", "png"])
def test_what_a_client_reads_is_what_the_plan_makes(kind: str, tmp_path: Path) -> None:
    live, made = run(tmp_path, kind, "live"), run(tmp_path, kind, "sim")
    assert set(live.table("payloads")["source"]) == {"read"}
    read, planned = contents(live), contents(made)
    both = read.keys() & planned.keys()
    assert len(both) >= 2 and len(read) == live.messages.filter(fate="delivered").height
    for key in both:
        # The time in their identities is of their own run.
        if kind == "png":
            # The identity, and the check sequence of the text that it is in.
            without = [one[key][:49] + one[key][95:].partition(b"IDAT")[2] for one in (read, planned)]
            assert without[0] == without[1] and check_of_text(read[key])
        elif kind != "large":
            parts = [{**json.loads(one[key]), **TIMED[kind]} for one in (read, planned)]
            for part in parts if kind == "report" else ():
                part["properties"]["timestamp"] = ""
            assert parts[0] == parts[1] and len(read[key]) == len(planned[key])
        else:
            assert read[key][17:] == planned[key][17:] and len(read[key]) == 100_000


@pytest.mark.live
def test_a_capture_tells_whose_messages_of_a_template_they_are(tmp_path: Path) -> None:
    live = run(tmp_path, "template", "live", pcapng=True)
    captures = sorted(live.directory.glob("*.pcapng"))
    outcome = import_evidence("capture", captures, tmp_path / "read", lambda line: None)
    read = Recording.open(outcome.directory).messages
    assert set(read["identified"].drop_nulls()) == {"payload"}
    own = live.messages.filter(fate="delivered")
    assert read.height >= own.height > 0
    assert sorted(read["payload_bytes"].unique()) == sorted(own["payload_bytes"].unique())


def test_none_is_kept_unless_asked_and_the_rest_is_the_same(tmp_path: Path) -> None:
    kept, plain = run(tmp_path / "a", "gps", "sim"), run(tmp_path / "b", "gps", "sim", payloads=False)
    assert not (plain.directory / "payloads.bin").exists() and not (plain.directory / "payloads.parquet").exists()
    assert plain.table("payloads").is_empty() and plain.messages.equals(kept.messages)
    assert plain.packets.equals(kept.packets)


def test_bytes_that_are_gone_are_said(tmp_path: Path) -> None:
    recording = run(tmp_path, "tiny", "sim")
    (recording.directory / "payloads.bin").write_bytes(b"")
    with pytest.raises(RecordingError, match="ends before"):
        recording.payload(0, 3)
    (recording.directory / "payloads.bin").unlink()
    with pytest.raises(RecordingError, match="cannot be read"):
        recording.payload(0, 3)


def test_the_disk_that_payloads_take_is_foreseen(tmp_path: Path) -> None:
    values = KINDS["large"]
    bare, with_them = (estimate(parse_values({**values, "recording": {"payloads": keeps}})).recording_bytes
                       for keeps in (False, True))
    recording = run(tmp_path, "large", "sim")
    took = pl.Series([len(content) for content in contents(recording).values()]).sum()
    assert took <= with_them - bare <= 3 * took
