# SPDX-License-Identifier: Apache-2.0
"""`wr report --publish`, `--rows` and `--png`: what is kept of a run. A folder of the day holds the tables as Markdown,
and the rows that `wr compare` and `wr report` need for them, compressed."""

from __future__ import annotations

import json
import lzma
import re
import tempfile
from pathlib import Path
from typing import Any

from . import WrError
from . import report_data as data
from .report_parts import Document

ROWS = "results.jsonl.xz"
# What a round in a source tree has instead of its details: `wr compare` and `wr check` read none of them
LEFT_OUT = {
    "generator": {}, "errors": {}, "statuses": {}, "hdr": None, "samples": [], "switches": {}, "faults": {}, "tcp": {},
    "io": {}, "pressure": {}, "page_cache_kb": 0, "descriptors_max": None, "sampler_us": 0, "started": "",
}
KEPT = {
    "latency_us": ("p50", "p99", "p99.9"), "cpu_us": ("user", "system"),
    "memory_kb": ("pss_mean", "pss_max", "dirty_mean", "dirty_max"),
}
DIGITS = {
    "seconds": 3, "rps": 4, "latency_us": 3, "cpu_us": 3, "cost_us": 5, "memory_kb": 3, "others_share": 2, "ratio": 5,
}


def write_pictures(document: Document, folder: Path) -> int:
    """Returns the number of charts."""
    folder.mkdir(parents=True, exist_ok=True)
    charts = document.list_charts()
    for chart in charts:
        (folder / f"{chart.name}.png").write_bytes(chart.to_png())
    return len(charts)


def find_day(results: data.Results) -> str:
    """On which the run began."""
    started = data.text(results.sessions[0], "started") if results.sessions else ""
    if not re.match(r"\d{4}-\d\d-\d\d", started):
        raise WrError(f"{results.name} does not say when it was measured, so that it has no place among the results")
    return started[:10]


def publish(path: Path, results: data.Results, document: Document, folder: Path) -> Path:
    """Returns the folder of the day, which must not exist; it is whole or not there."""
    place = folder / find_day(results)
    if place.exists():
        raise WrError(f"{place} exists: the results of a day are not replaced")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        part = Path(name) / "part"
        part.mkdir()
        write_files(path, document, part)
        part.rename(place)
    return place


def write_files(path: Path, document: Document, place: Path) -> None:
    (place / "README.md").write_text(document.to_markdown(), "utf-8")
    write_rows(path, place / ROWS)


def write_rows(path: Path, output: Path) -> None:
    """A hundredth of the size: without histograms, samples and what else only the page shows."""
    rows = (json.dumps(shorten(json.loads(line)), ensure_ascii=False, separators=(",", ":")) + "\n"
            for line in read_rows(path).decode().splitlines())
    output.write_bytes(lzma.compress("".join(rows).encode(), preset=9 | lzma.PRESET_EXTREME))


def shorten(record: dict[str, Any]) -> dict[str, Any]:
    if record["type"] == "round":
        record |= {key: value for key, value in LEFT_OUT.items() if key in record}
        record |= {name: {key: record[name][key] for key in keys if key in record[name]} for name, keys in KEPT.items()}
    return {key: round_value(value, DIGITS.get(key)) for key, value in record.items()}


def round_value(value: Any, digits: int | None) -> Any:
    if isinstance(value, dict) and digits:
        return {key: round_value(each, digits) for key, each in value.items()}
    if digits is None or not isinstance(value, (int, float)):
        return value
    return type(value)(float(f"{value:.{digits}g}"))


def read_rows(path: Path) -> bytes:
    return lzma.open(path).read() if path.suffix == ".xz" else path.read_bytes()
