"""A scenario with a password, and where else than with its owner that turns up."""

from __future__ import annotations

import base64
import html
import json
import subprocess
import urllib.parse
import zipfile
from pathlib import Path

import polars as pl

SECRET = "gr33n-Tree&<42>"
OTHER = "an0ther-Word"
SCENARIO = """name = "kept"
backend = "sim"
[phases]
duration = "1 s"
cool_down = "1 s"
[mqtt]
username = "alice"
password = {password}
[[networks]]
between = ["field", "broker"]
link = "each"
up = {{ delay = "1 ms" }}
down = {{ delay = "1 ms" }}
[[groups]]
name = "all"
host = "field"
count = 2
publish = {{ topic = "t/{{client}}", qos = 1, payload = "30 B", interval = "200 ms" }}
subscribe = ["t/#"]
"""


def written(place: Path, password: str = '{ env = "LAB_PASSWORD" }', extra: str = "") -> Path:
    path = place / "kept.toml"
    path.write_text(SCENARIO.format(password=password) + extra)
    return path


def forms(secret: str) -> set[bytes]:
    """How a text may stand in a file: as it is, in JSON, HTML, a URL, base64, hexadecimal, UTF-16."""
    raw = secret.encode()
    found = {raw, raw[::-1], json.dumps(secret)[1:-1].encode(), html.escape(secret).encode(),
             html.escape(secret, quote=False).encode(), urllib.parse.quote(secret).encode(),
             html.escape(json.dumps(secret)[1:-1]).encode(), raw.hex().encode(), secret.encode("utf-16-le")}
    # Of base64 what does not depend on where it begins.
    return found | {base64.b64encode(raw[skip:])[:12] for skip in range(3)}


def contents(file: Path) -> bytes:
    """What is in a file, unpacked where it is packed."""
    # A process that closes a file has none of its locks any more (fcntl(2)): SQLite's connections to a database in this
    # one, of commands that tests give, would write beside each other.
    data = subprocess.run(["cat", file], capture_output=True, check=True).stdout if ".db" in file.name else (
        file.read_bytes())
    if file.suffix == ".xlsx":
        with zipfile.ZipFile(file) as packed:
            data += b"".join(packed.read(name) for name in packed.namelist())
    if file.suffix == ".parquet":
        table = pl.read_parquet(file).select(pl.col(pl.String, pl.Categorical, pl.Binary))
        data += "".join(str(value) for column in table.get_columns() for value in column.unique().to_list()).encode()
    return data


def leaks(*places: Path, said: str = "", secret: str = SECRET) -> list[str]:
    """Where a secret stands: names of files, and words of outputs."""
    needles = forms(secret)
    found = [f"said: {needle!r}" for needle in needles if needle in said.encode()]
    for place in places:
        for file in (path for path in [place, *place.rglob("*")] if path.is_file()):
            data = contents(file)
            found += [f"{file}: {needle!r}" for needle in needles if needle in data]
            found += [f"name of {file}"] if secret in file.name else []
    return found
