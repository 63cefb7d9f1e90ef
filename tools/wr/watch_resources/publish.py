# SPDX-License-Identifier: Apache-2.0
"""`wr report --publish` and `--png`: what is kept of a run next to its page. A folder of the day holds the page, its
tables as Markdown, and the rows, compressed."""

from __future__ import annotations

import lzma
import re
import tempfile
from pathlib import Path

from . import WrError
from . import report_data as data
from .report_parts import Document

ROWS = "results.jsonl.xz"


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
    (place / "index.html").write_text(document.to_html(), "utf-8")
    (place / "README.md").write_text(document.to_markdown(), "utf-8")
    (place / ROWS).write_bytes(lzma.compress(read_rows(path)))


def read_rows(path: Path) -> bytes:
    return lzma.open(path).read() if path.suffix == ".xz" else path.read_bytes()
