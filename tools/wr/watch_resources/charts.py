# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG that is part of a page, at two widths, or as PNG. In a page colours are variables of its style sheet,
so that they follow its dark mode: matplotlib draws with colours that variables replace, #0100xx for ink, grid and
page, #0102xx for series xx. A PNG has the colours of the light scheme.
"""

from __future__ import annotations

import html
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Sequence

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from .report_parts import DASHES, MARKERS, STYLES, Axes, Series

STAND_INS = {"ink": "#010001", "grid": "#010002", "page": "#010003"} | {f"s{n}": f"#0102{n:02x}" for n in range(STYLES)}
VARIABLES = {color: f"var(--{name})" for name, color in STAND_INS.items()}
CSS = Path(__file__).with_name("report.css")
LIGHT = dict(re.findall(r"--(\w+): (#\w+)", CSS.read_text("utf-8").partition("@media")[0]))
NAME_LENGTH_MAX = 26
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "wr", "path.simplify": False, "text.parse_math": False,
    "font.family": ["sans-serif"], "font.size": 9, "axes.facecolor": "none",
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
}
COLORED = {
    "ink": ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"),
    "grid": ("grid.color",),
}


@dataclass(frozen=True)
class Look:
    """How a chart is drawn: its width in inches of 72 units, the height of one with lines, and its kind."""

    kind: str
    width: float
    height: float

    @property
    def colors(self) -> dict[str, str]:
        return LIGHT if self.kind == "png" else STAND_INS

    def settings(self) -> dict[str, Any]:
        found = {key: self.colors[name] for name, keys in COLORED.items() for key in keys}
        return SETTINGS | found | {"figure.facecolor": LIGHT["page"] if self.kind == "png" else "none"}

    def series_color(self, style: int) -> str:
        return self.colors[f"s{style % STYLES}"]

    def name(self, name: str) -> str:
        """Of its identifiers: a page has the same chart at two widths."""
        return f"{name}-narrow" if self.kind == "narrow" else name


WIDE, NARROW, PICTURE = Look("wide", 10.5, 3.6), Look("narrow", 4.8, 2.9), Look("png", 10.5, 3.6)
PICTURE_DPI = 144


def marker(style: int) -> str:
    return MARKERS[(style + style // STYLES) % len(MARKERS)][0]


def dash(style: int) -> Any:
    return (0, DASHES[style % len(DASHES)]) if DASHES[style % len(DASHES)] else "-"


def shorten(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= NAME_LENGTH_MAX else name[:NAME_LENGTH_MAX - 1] + "…"


def plain(value: float, _position: int = 0) -> str:
    """A number of an axis: 0.5, 12, 1,500, 2 M."""
    if value and abs(value) >= 1_000_000:
        return f"{value / 1_000_000:g} M"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def percentile(x: float, _position: int = 0) -> str:
    """The name of x = 1 / (1 - p)."""
    return f"{100 * (1 - 1 / x):.6g} %" if x > 0 else ""


# ── kinds of charts ──


def dot_chart(name: str, title: str, text: str, series: Sequence[Series], x_label: str, look: Look = WIDE) -> Any:
    """One row for each server: its rounds as small dots, the estimate with its interval, in the order given."""
    with matplotlib.rc_context(look.settings()):
        figure, axes = make_rows(series, x_label, look)
        for row, each in enumerate(series):
            draw_row(axes, look, look.name(name), row, each)
        axes.set_xlim(left=0)
        return finish(figure, look, name, title, text)


def bar_chart(name: str, title: str, text: str, series: Sequence[Series], x_label: str, look: Look = WIDE) -> Any:
    """One row for each server: its first value, and the others behind it in paler colours."""
    with matplotlib.rc_context(look.settings()):
        figure, axes = make_rows(series, x_label, look)
        for row, each in enumerate(series):
            left = 0.0
            for part, x in enumerate(each.x):
                bar, = axes.barh(row, x, left=left, height=0.6, color=look.series_color(each.style),
                                 alpha=1 - 0.55 * part)
                bar.set_gid(f"{look.name(name)}-of-{row}-{part}")
                left += x
        return finish(figure, look, name, title, text)


def make_rows(series: Sequence[Series], x_label: str, look: Look) -> tuple[Figure, Any]:
    """A figure with one row for each server, on an axis from 0 on."""
    figure = Figure(figsize=(look.width, 0.8 + 0.34 * len(series)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_yticks(range(len(series)), [shorten(each.name) for each in series])
    axes.set_ylim(len(series) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.set_xlabel(x_label)
    return figure, axes


def draw_row(axes: Any, look: Look, name: str, row: int, series: Series) -> None:
    color = look.series_color(series.style)
    # the last value is the estimate, those before it are the rounds
    dots, = axes.plot(series.x[:-1], [row] * (len(series.x) - 1), linestyle="", marker="|", markersize=7, color=color)
    crosses, = axes.plot([x for x, _ in series.crosses], [row] * len(series.crosses), linestyle="", marker="x",
                         markersize=5, color=look.colors["ink"])
    low, high = series.low[-1], series.high[-1]
    if low is not None and high is not None:
        bar, = axes.plot([low, high], [row, row], color=color, linewidth=2, solid_capstyle="butt")
        bar.set_gid(f"{name}-interval-{row}")
    point, = axes.plot([series.x[-1]], [row], linestyle="", marker=marker(series.style), markersize=7, color=color,
                       markerfacecolor=look.colors["page"] if series.open and series.open[-1] else color)
    point.set_gid(f"{name}-series-{row}")
    for part, artist in enumerate((dots, crosses)):
        artist.set_gid(f"{name}-of-{row}-{part}")


def line_chart(name: str, title: str, text: str, series: Sequence[Series], kind: Axes, look: Look = WIDE) -> Any:
    with matplotlib.rc_context(look.settings()):
        figure = Figure(figsize=(look.width, look.height), layout="constrained")
        axes = figure.add_subplot()
        for index, each in enumerate(series):
            draw_line(axes, look, look.name(name), index, each)
        set_scale(axes, kind, series)
        axes.set_xlabel(kind.x_label)
        axes.set_ylabel(kind.y_label)
        return finish(figure, look, name, title, text)


def draw_line(axes: Any, look: Look, name: str, index: int, series: Series) -> None:
    color = look.series_color(series.style)
    line, = axes.plot(series.x, series.y, color=color, linewidth=1.6, linestyle=dash(series.style))
    line.set_gid(f"{name}-series-{index}")
    artists = []
    for x, low, high in zip(series.x, series.low, series.high):
        if low is not None and high is not None:
            artists += axes.plot([x, x], [low, high], color=color, linewidth=1, solid_capstyle="butt")
    if series.markers:
        opened = series.open or [False] * len(series.x)
        for is_open in (False, True):
            points = [(x, y) for x, y, this in zip(series.x, series.y, opened) if this == is_open]
            artists += axes.plot([x for x, _ in points], [y for _, y in points], linestyle="",
                                 marker=marker(series.style), markersize=5, color=color,
                                 markerfacecolor=look.colors["page"] if is_open else color)
    artists += axes.plot([x for x, _ in series.crosses], [y for _, y in series.crosses], linestyle="", marker="x",
                         markersize=5, color=look.colors["ink"])
    for part, artist in enumerate(artists):
        artist.set_gid(f"{name}-of-{index}-{part}")


def set_scale(axes: Any, kind: Axes, series: Sequence[Series]) -> None:
    formats: list[tuple[Any, bool, Callable[..., str]]] = [
        (axes.xaxis, kind.x_log, percentile if kind.x_percentiles else plain), (axes.yaxis, kind.y_log, plain)]
    if kind.x_log:
        axes.set_xscale("log")
    if kind.y_log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    for axis, log, label in formats:
        axis.set_major_locator(LogLocator(numticks=8) if log else MaxNLocator(6))
        axis.set_major_formatter(FuncFormatter(label))
        axis.set_minor_formatter(NullFormatter())
        axis.set_minor_locator(NullLocator())
    xs = sorted({x for each in series for x in each.x})
    if kind.x_percentiles:
        ticks = [10**power for power in range(math.ceil(math.log10(max(xs, default=1))) + 1)]
        axes.xaxis.set_major_locator(FixedLocator(ticks))
    elif kind.x_log and 0 < len(xs) <= 6:
        axes.xaxis.set_major_locator(FixedLocator(xs))


# ── SVG ──

IDENTIFIER = re.compile(r'(\bid="|url\(#|href="#)')
COLOR = re.compile(r"#010[02][0-9a-f]{2}")
FONT = re.compile(r"font: ([\d.]+px)[^;\"]*")
TAG = re.compile(r"<[^>]*>")
ROOT = re.compile(r'<svg[^>]*viewBox="([^"]*)"[^>]*>')
NOT_WANTED = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<defs>\s*</defs>|<!--.*?-->", re.S)


def finish(figure: Figure, look: Look, name: str, title: str, text: str) -> Any:
    """The figure as an element of HTML, or as the bytes of a PNG. Its identifiers begin with `name`, so that a page can
    hold several charts."""
    if look.kind == "png":
        picture = io.BytesIO()
        figure.suptitle(title, fontsize=11)
        figure.savefig(picture, format="png", dpi=PICTURE_DPI, metadata={"Software": None})
        return picture.getvalue()
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg, name = NOT_WANTED.sub("", buffer.getvalue()), look.name(name)
    root = ROOT.search(svg)
    assert root
    body = TAG.sub(lambda tag: finish_tag(tag[0], name), svg[root.end():])
    return (f'<svg class="chart {look.kind}" role="img" viewBox="{root[1]}" aria-labelledby="{name}-title {name}-desc">'
            f'<title id="{name}-title">{html.escape(title)}</title>'
            f'<desc id="{name}-desc">{html.escape(text)}</desc>{body.strip()}')


def finish_tag(tag: str, name: str) -> str:
    tag = IDENTIFIER.sub(
        lambda match: match[1] + ("" if tag.startswith(f"{name}-", match.end()) else f"{name}-"), tag)
    tag = FONT.sub(r"font-size: \1", tag)
    return COLOR.sub(lambda match: VARIABLES[match[0]], tag)
