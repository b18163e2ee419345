"""Files that a scenario or an option names are regular files of a bounded size; anything else is one line. And numbers
that users write have digits of ASCII, in a bounded number."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import mqttlab
from mqttlab import secrets
from mqttlab.catalog.query import number_of
from mqttlab.dashboard.address import AddressError, Listen, read_secret
from mqttlab.digits import whole
from mqttlab.errors import MqttlabError
from mqttlab.experiments.factors import number
from mqttlab.networks.link import read_queue
from mqttlab.networks.trace import read_trace
from mqttlab.quantity import duration_ns, size_bytes
from mqttlab.scenario.credentials import places_problem, read_credentials
from mqttlab.scenario.load import parse_values
from mqttlab.scenario.publish import file_problem
from mqttlab.scenario.replay import PAYLOAD_MAX, read_table
from mqttlab.scenario.template import payload_template
from mqttlab.scenario.transport import Trust
from short_scenarios import scenario


def payload(path: Path) -> None:
    if (problem := file_problem(path)) is not None:
        raise ValueError(problem)


READERS: dict[str, Callable[[Path], object]] = {
    "trace": lambda path: read_trace(str(path), None), "replay": read_table, "credentials": read_credentials,
    "payload": payload, "secret": secrets.from_file, "authority": lambda path: Trust(authority=path).certificates(),
    "password": lambda path: read_secret(path, path),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("kind", "words"), [
    ("/dev/zero", "is no file"), ("/dev/urandom", "is no file"), ("fifo", "is no file"),
    ("/proc/version", "is no file: the system makes its contents when they are read"),
    ("/proc/kmsg", "is no file: the system makes its contents when they are read"),
    ("a\0b", "has a NUL in its name"), ("none", "there"), (".", "is a directory"),
])
def test_what_is_no_file_is_never_read(reader: str, kind: str, words: str, tmp_path: Path) -> None:
    if kind == "/proc/kmsg" and (os.geteuid() != 0 or not os.access(kind, os.R_OK)):
        pytest.skip("/proc/kmsg can only be opened by root")
    if kind == "fifo":
        os.mkfifo(tmp_path / kind)
    with pytest.raises((ValueError, MqttlabError)) as error:
        READERS[reader](tmp_path / kind)
    told = str(error.value)
    # A trace may also be one of mqttlab's, so that a wrong name is a wrong file.
    assert words in told or ((reader, kind) == ("trace", "a\0b") and "there is no file" in told)
    assert "\n" not in told


@pytest.mark.parametrize("reader", ["trace", "replay", "credentials", "secret", "password"])
@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_told_by_its_first_byte(reader: str, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "file.csv").write_bytes("time_s,delay_ms,user\n0,5,é\n".encode(encoding))
    with pytest.raises((ValueError, MqttlabError), match=r"is not UTF-8 text \(byte \d+\)"):
        READERS[reader](tmp_path / "file.csv")


def test_an_authority_that_cannot_be_read_is_told_with_its_field() -> None:
    over_tls = {"transport": "tls"}
    values = scenario(publisher=over_tls, subscriber=over_tls, backend="live", network="external", broker={
        "kind": "external", "address": "127.0.0.1", "tls": {"authority": "/dev/zero"}})
    with pytest.raises(MqttlabError, match=r'`broker\.tls\.authority` is "/dev/zero", which is no file'):
        parse_values(values)


def test_an_empty_file_is_one(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert file_problem(tmp_path / "empty") is None


def test_a_replayed_payload_may_be_as_large_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "messages.csv"
    path.write_text(f"time,topic,payload\n0,a,{'x' * 200_000}\n1,a,y\n", encoding="utf-8")
    assert read_table(path).sizes == (1, 200_000, 200_001)
    path.write_text(f"time,topic,payload\n0,a,y\n1,a,{'x' * (PAYLOAD_MAX + 1)}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"^line 3: field larger than field limit \(10000000\)"):
        read_table(path)


@pytest.mark.parametrize(("text", "number"), [
    ("0", 0), ("007", 7), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("9" * 5000, None), ("", None), ("-1", None),
    ("1_000", None), ("\u0661", None), ("\u00b2", None), (" 1", None), ("1\n", None),
])
def test_a_whole_number_is_of_digits_alone(text: str, number: int | None) -> None:
    assert whole(text) == number


@pytest.mark.parametrize("text", ["1__0 B", "_1 B", "1_ B", "\u0661 B"])
def test_a_quantity_has_underscores_as_numbers_of_toml_have_them(text: str) -> None:
    assert size_bytes("1_000 B") == 1000
    with pytest.raises(ValueError, match="is \""):
        size_bytes(text)
    assert number(text) is None and number_of(text) is None


def test_other_scripts_have_no_digits_of_a_scenario() -> None:
    for read in (lambda: read_queue("\u0661 packets"), lambda: payload_template("{client:\u0663}"),
                 lambda: payload_template("{random:\u0661..\u0663}"), lambda: duration_ns("\u0661 s")):
        with pytest.raises(ValueError):
            read()
    assert places_problem("a{client:\u0663}") is not None


@pytest.mark.parametrize("text", ["1e99999999", "1e999", "9" * 5000])
def test_a_number_of_a_search_is_bounded(text: str) -> None:
    assert number_of(text) is None


@pytest.mark.parametrize("port", ["\u00b2", "9" * 5000, "65536", "-1"])
def test_a_port_is_a_whole_number(port: str) -> None:
    with pytest.raises(AddressError, match="is not a port"):
        Listen.read(f"127.0.0.1:{port}")


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000])
def test_a_message_of_no_number_is_one_line(number: str, tmp_path: Path) -> None:
    run = Path(__file__).resolve().parents[1] / "schemas" / "4" / "simulated"
    for command in (("explain", run), ("export", run, "--pcapng", tmp_path / "x.pcapng")):
        for message in (f"0:{number}", f"{number}:0", f"0:0@{number}"):
            done = mqttlab(*command, "--message", message)
            assert done.returncode == 2 and done.stderr.startswith("mqttlab: "), done.stderr
            assert done.stderr.count("\n") == 1
