# SPDX-License-Identifier: Apache-2.0
"""Parts of a report: tables, charts, commands. Each renders itself as HTML and as Markdown,
and escapes what it holds."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Sequence

STYLES = 8  # colours of report.css: --s0 to --s7
DASHES = ((), (5, 2), (1.5, 1.5), (6, 1.5, 1.5, 1.5))
# A server has the same colour and mark in all charts; the paths draw the marks of a legend.
MARKERS = (
    ("o", "M8 4a4 4 0 1 0 .01 0z"), ("s", "M4.5 4.5h7v7h-7z"), ("^", "M8 3.5l4.5 8h-9z"), ("D", "M8 3l5 5-5 5-5-5z"),
    ("v", "M8 12.5l4.5-8h-9z"), ("P", "M6.5 4h3v2.5h2.5v3h-2.5v2.5h-3v-2.5h-2.5v-3h2.5z"),
    ("<", "M3.5 8l8-4.5v9z"), (">", "M12.5 8l-8-4.5v9z"))
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
SCRIPT = Path(__file__).with_name("report.js")


def escape(value: Any) -> str:
    return html.escape(str(value))


def escape_markdown(value: str) -> str:
    value = re.sub(r"([\\`*_\[\]|~])", r"\\\1", html.escape(value, quote=False))
    return " ".join(value.split())


def make_name(*words: str) -> str:
    """A name for id attributes; different words make different names."""
    return "-".join(re.sub(r"[^A-Za-z0-9]", lambda match: f"_{ord(match[0]):x}_", word) for word in words)


def significant(value: float) -> str:
    """Three significant digits, and all digits of a large number: 0.0123, 4.57, 12.3, 1,235."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".") if abs(value) >= 0.001 else f"{value:.3g}"


# ── tables ──


@dataclass(frozen=True)
class Number:
    """A cell with the exact value next to the text that is shown."""

    value: float
    text: str


Cell = str | Number | None


def cell(value: float | None) -> Cell:
    return None if value is None else Number(value, significant(value))


def text_of(value: Cell) -> str:
    return value.text if isinstance(value, Number) else value or ""


@dataclass
class Table:
    name: str
    caption: str
    columns: Sequence[str]
    rows: list[list[Cell]]
    marked: set[int] = field(default_factory=set)  # rows that are to be read with care

    def to_html(self) -> str:
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        rows = "".join(self.make_row(index, row) for index, row in enumerate(self.rows))
        return (f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.caption)}">'
                f'<table id="{escape(self.name)}"><caption>{escape(self.caption)}</caption>'
                f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>")

    def make_row(self, index: int, row: list[Cell]) -> str:
        cells = [f'<th scope="row">{escape(text_of(row[0]))}</th>', *map(make_cell, row[1:])]
        kind = ' class="marked"' if index in self.marked else ""
        return f"<tr{kind}>{''.join(cells)}</tr>"

    def to_markdown(self) -> str:
        numeric = [any(isinstance(row[at], Number) for row in self.rows) for at in range(len(self.columns))]
        lines = [[escape_markdown(name) for name in self.columns], ["--:" if each else "---" for each in numeric],
                 *([escape_markdown(text_of(value)) for value in row] for row in self.rows)]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"**{escape_markdown(self.caption)}**\n\n{body}"


def make_cell(value: Cell) -> str:
    if isinstance(value, Number):
        return f'<td class="number" data-value="{value.value!r}">{escape(value.text)}</td>'
    return f"<td>{escape(value or '')}</td>"


# ── text ──


@dataclass(frozen=True)
class Paragraph:
    text: str
    kind: str = ""

    def to_html(self) -> str:
        kind = f' class="{self.kind}"' if self.kind else ""
        return f"<p{kind}>{escape(self.text)}</p>"

    def to_markdown(self) -> str:
        return escape_markdown(self.text)


@dataclass(frozen=True)
class Listing:
    """A command or a file, word for word; it is folded where it is long."""

    title: str
    text: str
    folded: bool = True

    def to_html(self) -> str:
        body = f'<pre tabindex="0"><code>{escape(self.text)}</code></pre>'
        if not self.folded:
            return f"<h3>{escape(self.title)}</h3>{body}"
        return f"<details><summary>{escape(self.title)}</summary>{body}</details>"

    def to_markdown(self) -> str:
        fence = "`" * (max((len(run) for run in re.findall("`+", self.text)), default=0) + 1)
        fence = max(fence, "```", key=len)
        return f"{escape_markdown(self.title)}:\n\n{fence}\n{self.text.rstrip()}\n{fence}"


# ── charts ──


@dataclass
class Series:
    """Points of one server. A point of `open` is drawn without filling; `crosses` are rounds that do not count."""

    name: str
    style: int
    x: list[float]
    y: list[float]
    low: list[float | None] = field(default_factory=list)
    high: list[float | None] = field(default_factory=list)
    open: list[bool] = field(default_factory=list)
    crosses: list[tuple[float, float]] = field(default_factory=list)
    markers: bool = True

    def as_data(self) -> dict[str, Any]:
        return {"name": self.name, "x": self.x, "y": self.y, "low": self.low, "high": self.high, "open": self.open,
                "crosses": self.crosses}


@dataclass(frozen=True)
class Axes:
    x_label: str
    y_label: str
    x_log: bool = False
    y_log: bool = False
    x_percentiles: bool = False


@dataclass
class Chart:
    """A chart with its data: in the attribute data-series for programs, and in a table that stands next to it."""

    name: str
    kind: str
    title: str
    text: str
    series: list[Series]
    draw: Callable[..., Any]  # of (chart, name of a look)
    note: str = ""
    legend: bool = True
    links: Sequence[tuple[str, str]] = ()  # (text, reference)

    def to_html(self) -> str:
        data = json.dumps([each.as_data() for each in self.series], allow_nan=False)
        names = "".join(f'<li data-server="{escape(each.name)}">{legend_mark(each.style)} {escape(each.name)}</li>'
                        for each in self.series)
        legend = f'<ul class="legend">{names}</ul>' if self.legend else ""
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        links = ", ".join(f'<a href="{escape(to)}">{escape(text)}</a>' for text, to in self.links)
        links = f'<p class="note">{links}</p>' if links else ""
        drawn = self.draw(self, "WIDE") + self.draw(self, "NARROW")
        return (f'<figure id="{escape(self.name)}" data-chart="{escape(self.kind)}" data-series="{escape(data)}">'
                f"<figcaption>{escape(self.title)}</figcaption>{drawn}{legend}{note}{links}</figure>")

    def to_png(self) -> bytes:
        return self.draw(self, "PICTURE")

    def to_markdown(self) -> str:
        return ""


@dataclass
class Row:
    """Parts that stand side by side where there is room."""

    parts: list[Any]

    def to_html(self) -> str:
        return f'<div class="row">{"".join(part.to_html() for part in self.parts)}</div>'

    def to_markdown(self) -> str:
        return "\n\n".join(filter(None, (part.to_markdown() for part in self.parts)))


def legend_mark(style: int) -> str:
    """The line and mark of a server as a small picture next to its name."""
    dashes = " ".join(str(2 * part) for part in DASHES[style % len(DASHES)])
    pattern = f' stroke-dasharray="{dashes}"' if dashes else ""
    path = MARKERS[(style + style // STYLES) % len(MARKERS)][1]
    color = f"var(--s{style % STYLES})"
    return (f'<svg class="mark" viewBox="-8 0 32 16" width="32" height="16" aria-hidden="true" focusable="false">'
            f'<path d="M-8 8h32" stroke="{color}" stroke-width="2"{pattern}/><path d="{path}" fill="{color}"/></svg>')


# ── documents ──


@dataclass
class Section:
    name: str
    heading: str
    parts: list[Any]
    level: int = 2
    data: dict[str, str] = field(default_factory=dict)
    page_only: bool = False  # too long for Markdown

    def to_html(self) -> str:
        data = "".join(f' data-{key}="{escape(value)}"' for key, value in self.data.items())
        body = "\n".join(part.to_html() for part in self.parts)
        return (f'<section id="{escape(self.name)}"{data}><h{self.level}>{escape(self.heading)}</h{self.level}>\n'
                f"{body}\n</section>")

    def to_markdown(self) -> str:
        if self.page_only:
            return ""
        parts = (part.to_markdown() for part in self.parts)
        return "\n\n".join([f"{'#' * self.level} {escape_markdown(self.heading)}", *filter(None, parts)])


@dataclass(frozen=True)
class Filter:
    """Boxes that hide servers, shown where the page's script runs. `names`: {server: its names in all tables}."""

    names: dict[str, list[str]]

    def to_html(self) -> str:
        boxes = "".join(
            f'<label><input type="checkbox" checked data-labels="{escape(json.dumps(labels))}"> {escape(name)}</label>'
            for name, labels in self.names.items())
        return f'<div id="filter" role="group" aria-label="Servers" hidden>{boxes}</div>'

    def to_markdown(self) -> str:
        return ""


def make_policy(script: str) -> str:
    """Permits this script only."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{POLICY}; script-src 'sha256-{digest}'" if script else POLICY


@dataclass
class Document:
    """A page that needs nothing but itself: the policy forbids it to fetch anything, or to run another script."""

    title: str
    introduction: list[Any]
    sections: list[Section]
    script: str = ""

    def list_charts(self) -> list[Chart]:
        def find(parts: Sequence[Any]) -> list[Chart]:
            return [chart for part in parts for chart in (
                [part] if isinstance(part, Chart) else find(getattr(part, "parts", ())))]

        return find(self.sections)

    def to_html(self) -> str:
        style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
        links = "".join(f'<li><a href="#{escape(each.name)}">{escape(each.heading)}</a></li>' for each in self.sections)
        body = "\n".join(part.to_html() for part in [*self.introduction, *self.sections])
        script = f"<script>{self.script}</script>\n" if self.script else ""
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{make_policy(self.script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(self.title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{escape(self.title)}</h1>
<nav aria-label="Sections"><ul>{links}</ul></nav>
{body}
</main>
{script}</body>
</html>
"""

    def to_markdown(self) -> str:
        parts = (part.to_markdown() for part in [*self.introduction, *self.sections])
        return "\n\n".join([f"# {escape_markdown(self.title)}", *filter(None, parts)]) + "\n"
