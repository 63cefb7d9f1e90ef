# SPDX-License-Identifier: Apache-2.0
"""What a report shows: the records of a file of results, with types, in groups, and with what is missing as None.

A file may be cut by a crash, made by an older wr or changed by hand: a record without a value is shown without it.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import lzma
import math
import statistics
import struct
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Iterable, Sequence

from . import WrError, clean, stats
from .fields import is_number
from .results import DISTURBED, choose_counted

LISTS = {"pair": "pairs", "exclusion": "exclusions", "qualification": "qualifications", "counts": "counts"}
PERCENTILES = ("p50", "p75", "p90", "p99", "p99.9", "p99.99")


def take(record: Any, *keys: str) -> Any:
    """Returns the value below these keys, or None."""
    for key in keys:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def number(record: Any, *keys: str) -> float | None:
    """The same for a finite number."""
    value = take(record, *keys)
    return value if is_number(value) else None


def text(record: Any, *keys: str) -> str:
    """The same as text, without characters that no page can hold."""
    value = take(record, *keys)
    return "" if value is None else clean(value if isinstance(value, str) else json.dumps(value))


def words(record: Any, *keys: str) -> list[str]:
    """The same for a command: a list, or one string."""
    value = take(record, *keys)
    if isinstance(value, str):
        return [clean(value)]
    return [clean(str(word)) for word in value] if isinstance(value, list) else []


@dataclass(frozen=True)
class Round:
    record: dict[str, Any]
    n: int
    workload: str
    server: str
    clients: int
    marks: tuple[str, ...]

    @property
    def is_disturbed(self) -> bool:
        return DISTURBED in self.marks

    def value(self, *keys: str) -> float | None:
        return number(self.record, *keys)

    @property
    def errors(self) -> float:
        errors = take(self.record, "errors")
        if isinstance(errors, dict):
            return sum(number(errors, key) or 0 for key in errors)
        return number(self.record, "errors") or 0

    @property
    def samples(self) -> list[list[float]]:
        """Rows of t_s, cpu_ns, pss_kb, dirty_kb, threads, descriptors."""
        rows = take(self.record, "samples")
        return [row for row in rows if is_sample(row)] if isinstance(rows, list) else []


def is_sample(row: Any) -> bool:
    """A process of another user has no PSS; such rows are left out."""
    return isinstance(row, list) and len(row) >= 4 and all(is_number(row[at]) for at in (0, 2, 3))


def make_round(record: dict[str, Any], position: int) -> Round:
    marks = take(record, "marks")
    n, clients = number(record, "n"), number(record, "clients")
    return Round(record, position if n is None else int(n), text(record, "workload") or "unnamed",
                 text(record, "server") or "unnamed", max(0, int(clients or 0)),
                 tuple(clean(str(mark)) for mark in marks) if isinstance(marks, list) else ())


@dataclass(eq=False)  # so that what is worked out of a file can be kept by it
class Results:
    name: str
    sessions: list[dict[str, Any]] = field(default_factory=list)
    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    workloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    pairs: list[dict[str, Any]] = field(default_factory=list)
    exclusions: list[dict[str, Any]] = field(default_factory=list)
    qualifications: list[dict[str, Any]] = field(default_factory=list)
    counts: list[dict[str, Any]] = field(default_factory=list)
    cut: str = ""  # where reading ended before the end of the file

    def server_names(self) -> list[str]:
        """In the order of the file: the first one is that which ratios are of."""
        return list(dict.fromkeys([*self.servers, *(each.server for each in self.rounds)]))

    def workload_names(self) -> list[str]:
        return list(dict.fromkeys([*self.workloads, *(each.workload for each in self.rounds)]))

    def select(self, workload: str, server: str | None = None, clients: int | None = None) -> list[Round]:
        return [each for each in self.rounds if each.workload == workload and server in (None, each.server)
                and clients in (None, each.clients)]

    def clients_of(self, workload: str) -> list[int]:
        return sorted({each.clients for each in self.select(workload)})

    @property
    def plan(self) -> dict[str, Any]:
        """Of `wr run`: what was to be measured."""
        plan = take(self.sessions[0], "settings", "plan") if self.sessions else None
        return plan if isinstance(plan, dict) else {}

    def witness_of(self, workload: str) -> str:
        """The workload that this one measures again with another generator, or nothing."""
        return text(self.workloads.get(workload), "witness_of")

    def is_limit(self, server: str) -> bool:
        return take(self.servers.get(server), "limit") is True


def read(path: Path) -> Results:
    """Reads a file of results. A line that cannot be read ends it, as for --resume."""
    results = Results(clean(path.name))
    try:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rb") as file:
            add_lines(results, file)
    except (OSError, lzma.LZMAError) as error:
        raise WrError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return results


def add_lines(results: Results, lines: Iterable[bytes]) -> None:
    for line_number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            results.cut = f"Line {line_number} cannot be read, so that nothing from there on is shown."
            return
        if isinstance(record, dict):
            add_record(results, record)


def add_record(results: Results, record: dict[str, Any]) -> None:
    kind = record.get("type")
    if kind == "session":
        results.sessions.append(record)
    elif kind == "server":
        results.servers[text(record, "name") or "unnamed"] = record
    elif kind == "workload":
        results.workloads[text(record, "name") or "unnamed"] = record
    elif kind == "round":
        results.rounds.append(make_round(record, len(results.rounds) + 1))
    elif isinstance(kind, str) and kind in LISTS:
        getattr(results, LISTS[kind]).append(record)


# ── estimates ──


COST = ("cost_us", "total")


@dataclass(frozen=True)
class Estimate:
    """Of some rounds or pairs, as `wr compare` makes it; without an interval where it says nothing."""

    value: float
    low: float | None
    high: float | None
    count: int

    @property
    def holds_one(self) -> bool:
        return self.low is not None and self.high is not None and self.low <= 1 <= self.high

    @property
    def of_a_second_run(self) -> Estimate:
        if self.low is None or self.high is None:
            return self
        wider = stats.Interval(self.value, self.low, self.high, self.count).of_a_second_run
        return replace(self, low=wider.low, high=wider.high)


def estimate(values: Iterable[float | None]) -> Estimate | None:
    return estimate_known(tuple(value for value in values if value is not None and value > 0))


@functools.lru_cache(maxsize=4096)  # a page shows the same rounds in several places
def estimate_known(known: tuple[float, ...]) -> Estimate | None:
    if len(known) < 2:
        return Estimate(known[0], None, None, 1) if known else None
    centre, low, high = stats.log_interval([math.log(value) for value in known])
    if max(map(abs, (centre, low, high))) > 700:
        return Estimate(math.exp(centre), None, None, len(known))
    return Estimate(math.exp(centre), math.exp(low), math.exp(high), len(known))


def median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def counted(rounds: Sequence[Round]) -> list[Round]:
    """The rounds that an estimate is made of."""
    return choose_counted(rounds, lambda each: each.is_disturbed)


def median_of(rounds: Sequence[Round], *keys: str) -> float | None:
    return median(each.value(*keys) for each in counted(rounds))


def ratio_of_pair(pair: dict[str, Any], rounds: list[Round], keys: Sequence[str]) -> float | None:
    """Of a value of its rounds; that of the costs is in the pair itself."""
    if keys == COST:
        return number(pair, "ratio")
    values = [each.value(*keys) for each in rounds]
    return values[0] / values[1] if len(values) == 2 and all(values) else None


def ratio(results: Results, workload: str, first: str, second: str, keys: Sequence[str] = COST,
          clients: int | None = None) -> Estimate | None:
    """Cost (or another value) of the first server / that of the second, from the pairs of the workload, whichever order
    they were in."""
    known = {each.n: each for each in results.select(workload)}
    found = []  # (ratio, whether a round of the pair was disturbed)
    for pair in results.pairs:
        numbers, names = take(pair, "rounds"), [text(pair, "first"), text(pair, "second")]
        if text(pair, "workload") != workload or {*names} != {first, second}:
            continue
        numbers = [n for n in numbers if isinstance(n, int)] if isinstance(numbers, list) else []
        rounds = [known[n] for n in numbers if n in known]
        value = ratio_of_pair(pair, rounds, keys)
        if not value or value < 0 or (clients is not None and any(each.clients != clients for each in rounds)):
            continue
        is_disturbed = any(each.is_disturbed for each in rounds)
        if names == [first, second]:
            found.append((value, is_disturbed))
        elif names == [second, first]:
            found.append((1 / value, is_disturbed))
    return estimate(value for value, _ in choose_counted(found, lambda pair: pair[1]))


def marks_of(rounds: Sequence[Round]) -> list[str]:
    return sorted({mark for each in rounds for mark in each.marks})


# ── latencies ──

COOKIE, COMPRESSED_COOKIE, COOKIE_MASK = 0x1C849303, 0x1C849304, 0xFFFFFF0F
HEADER = struct.Struct(">iiiiqqd")
HISTOGRAM_BYTES_MAX = 1 << 24


def decode_histogram(encoded: str) -> Counter[int]:
    """Counts by value of an HdrHistogram V2 in base64, compressed or not. Raises ValueError."""
    try:
        data = base64.b64decode(encoded, validate=True)
        cookie, length = struct.unpack_from(">Ii", data)
        if cookie & COOKIE_MASK == COMPRESSED_COOKIE:
            data = zlib.decompressobj().decompress(data[8:8 + length], HISTOGRAM_BYTES_MAX)
            cookie = struct.unpack_from(">I", data)[0]
        if cookie & COOKIE_MASK != COOKIE:
            raise ValueError("no HdrHistogram V2")
        _, length, _, digits, lowest, _, _ = HEADER.unpack_from(data)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(str(error)) from error
    if not 0 <= digits <= 5 or not 1 <= lowest < 1 << 62:
        raise ValueError("no HdrHistogram V2")
    unit = lowest.bit_length() - 1
    half_magnitude = max((2 * 10**digits - 1).bit_length(), 1) - 1
    counts: Counter[int] = Counter()
    index = 0
    for count in zigzag_numbers(data[HEADER.size:HEADER.size + length]):
        if count < 0:
            index -= count
            continue
        if count:
            counts[value_at(index, half_magnitude, unit)] += count
        index += 1
    return counts


def zigzag_numbers(data: bytes) -> Iterable[int]:
    """ZigZag LEB128 numbers of at most 9 bytes, whose ninth has 8 bits."""
    value = shift = 0
    for byte in data:
        ninth = shift == 56
        value |= (byte if ninth else byte & 0x7F) << shift
        shift += 7
        if ninth or byte < 0x80:
            yield (value >> 1) ^ -(value & 1)
            value = shift = 0


def value_at(index: int, half_magnitude: int, unit: int) -> int:
    """The highest value that is counted at an index."""
    half = 1 << half_magnitude
    bucket, sub = (index >> half_magnitude) - 1, (index & (half - 1)) + half
    if bucket < 0:
        bucket, sub = 0, sub - half
    if bucket + unit > 62:
        raise ValueError("no HdrHistogram V2")
    return ((sub + 1) << (bucket + unit)) - 1


def latency_curve(rounds: Sequence[Round]) -> tuple[list[float], list[float]]:
    """x = 1 / (1 - p) and y = latency in us, of all answers of these rounds, or from the percentiles in the file."""
    counts: Counter[int] = Counter()
    try:
        for each in rounds:
            counts += decode_histogram(text(each.record, "hdr"))
    except ValueError:
        counts = Counter()
    return curve_of_counts(counts) if counts else curve_of_percentiles(rounds)


def curve_of_counts(counts: Counter[int], points_max: int = 200) -> tuple[list[float], list[float]]:
    """The maximum stands at x = the number of answers: p = 1 has no place on the axis."""
    total, seen = sum(counts.values()), 0
    step = max(math.log(total), 1e-9) / points_max
    xs: list[float] = []
    ys: list[float] = []
    for value in sorted(counts):
        seen += counts[value]
        x = total / max(total - seen, 1)
        if xs and seen < total and math.log(x) - math.log(xs[-1]) < step:
            continue
        xs.append(float(x))
        ys.append(float(value))
    return xs, ys


def curve_of_percentiles(rounds: Sequence[Round]) -> tuple[list[float], list[float]]:
    xs, ys = [], []
    for name in PERCENTILES:
        known = median(each.value("latency_us", name) for each in rounds)
        if known is not None:
            xs.append(1 / (1 - float(name[1:]) / 100))
            ys.append(known)
    return xs, ys
