# SPDX-License-Identifier: Apache-2.0
"""The tables of `wr run` and `wr compare`, as text and as Markdown."""

import statistics
from typing import NamedTuple

from . import stats
from .analysis import compare_pairs, compare_relative, compare_unpaired, find_differences, read_cost, value_of
from .ranks import ONE, Span, rank

TITLES = {"monkey+nocache": "monkey, no file cache", "nginx+cache": "nginx, open_file_cache", "apache": "Apache",
          "haproxy": "HAProxy", "node": "Node.js", "microhttpd": "libmicrohttpd", "go": "Go",
          "actix": "actix-web"}  # fmt: skip
LATENCIES = "p50", "p99", "p99.9"  # some generators have no p99.9
COUNTS = {
    "binary_kb": "binary, stripped, KB",
    "dirty_kb": "private dirty memory, idle, one worker, KB",
    "crowd_dirty_kb": "the same, with 1,000 clients on a file of 200 KB",
    "connection_bytes": "memory per idle keep-alive connection, bytes",
    "calls": "system calls per keep-alive request of a small file",
}


def format_value(value):
    return f"{value:.2f}" if value < 2 else f"{value:.1f}" if value < 20 else f"{value:,.0f}"


def format_row(results, workload, label, first, width, clients=None):
    rows = results.rounds_of(workload, label, clients)
    costs = [read_cost(row) for row in rows]
    memory = [value for row in rows if (value := value_of(row, "memory"))]
    comparison = compare_pairs(results, workload, first, label, clients=clients) if label != first else None
    words = stats.describe(results.title_of(first), results.title_of(label), comparison.interval) if comparison else ""
    marks = sorted({mark for row in rows for mark in row.get("marks", [])})
    mean, least, most = (format_value(value) for value in (stats.find_centre(costs), min(costs), max(costs)))
    return (
        f"  {results.title_of(label):<{width}} {mean:>9} {least:>8} {most:>8}"
        + "".join(f" {format_latency(rows, name):>9}" for name in LATENCIES)
        + f" {format_memory(memory):>9}  {words}"
        + (f"  [{', '.join(marks)}]" if marks else "")
    ).rstrip()


def format_latency(rows, name):
    values = [value for row in rows if (value := row.get("latency_us", {}).get(name))]
    if not values:
        return ""
    value = statistics.median(values)
    return f"{value:,.0f} us" if value < 10_000 else f"{value / 1000:,.0f} ms"


def format_memory(values):
    return f"{max(values):,} KB" if values else ""


def format_workload(results, workload):
    """The lines of one workload."""
    labels = results.labels_of(workload)
    text = results.workloads.get(workload, {}).get("text", "")
    yield f"{workload}  {text}"
    width = max([len(results.title_of(label)) for label in labels] + [16])
    latencies = "".join(f" {name:>9}" for name in LATENCIES)
    for clients in results.steps_of(workload):
        heading = "server" if clients is None else f"{clients:,} clients"
        yield f"  {heading:<{width}} {'CPU µs':>9} {'least':>8} {'most':>8}{latencies} {'dirty':>9}"
        for label in labels:
            if results.rounds_of(workload, label, clients):
                yield format_row(results, workload, label, labels[0], width, clients)


def names_measured(results):
    return list(dict.fromkeys(row["workload"] for row in results.rounds.values()))


def format_file(results):
    for workload in names_measured(results):
        yield from format_workload(results, workload)
        yield ""
    yield from format_witnesses(results)


def rank_labels(results, workload):
    """{label: rank by cost}"""
    first, *others = results.labels_of(workload)
    spans = {first: ONE}
    for label in others:
        if comparison := compare_pairs(results, workload, label, first):
            spans[label] = Span(*comparison.interval[:3])
    return rank(spans)


def format_witnesses(results):
    """Whether a second generator gives the servers the ranks of the first one."""
    measured = names_measured(results)
    for name, line in results.workloads.items():
        original = line.get("witness_of")
        if original not in measured or name not in measured:
            continue
        ranks = [rank_labels(results, each) for each in (original, name)]
        differ = [f"{label} ({ranks[0][label]} and {ranks[1][label]})" for label in ranks[0]
                  if label in ranks[1] and ranks[0][label] != ranks[1][label]]  # fmt: skip
        if differ:
            yield f"the ranks by {original} and {name} differ: {', '.join(differ)}"
        else:
            yield f"the ranks by {original} and {name} are the same"


def format_two(one, other):
    """The lines of a comparison of two files."""
    yield from find_differences(one, other)
    for workload in names_measured(one):
        labels = one.labels_of(workload), other.labels_of(workload)
        common = [label for label in labels[0] if label in labels[1]]
        chosen = [(label, label) for label in common]
        if not common and len(labels[0]) == len(labels[1]) == 1:
            chosen = [(labels[0][0], labels[1][0])]
        for pair in chosen:
            yield from format_build(one, other, workload, pair, common)
    yield from format_repeated(one, other)


class Repeated(NamedTuple):
    """A server's ratio to the first server of its workload, in two files."""

    workload: str
    clients: int | None
    label: str
    before: stats.Interval
    ratio: float
    change: stats.Interval  # of the ratio, by the rounds of both files

    @property
    def is_inside(self):
        return self.before.low <= self.ratio <= self.before.high

    @property
    def is_expected(self):
        expected = self.before.of_a_second_run
        return expected.low <= self.ratio <= expected.high


def list_repeated(one, other):
    for workload in names_measured(one):
        first, *labels = one.labels_of(workload)
        for clients in one.steps_of(workload):
            for label in labels:
                found = [compare_pairs(results, workload, label, first, clients=clients) for results in (one, other)]
                if all(found):
                    change = compare_relative(one, other, workload, label, first, clients=clients)
                    before, after = (comparison.interval for comparison in found)
                    yield Repeated(workload, clients, label, before, after.ratio, change.interval)


def format_repeated(one, other):
    """How well the second file repeats the ratios of the first, and where it does not. An interval of 95 % has the mean
    of a second run in five of six cases, since that mean varies as well: so it is also told how many ratios lie where a
    second run is expected, and how many of the two files differ."""
    rows = list(list_repeated(one, other))
    if not rows:
        return
    counts = {
        f"lie within their intervals in {one.path}": sum(row.is_inside for row in rows),
        "lie where a second run was expected by them": sum(row.is_expected for row in rows),
        "do not differ by the rounds of both files": sum(row.change.holds_one for row in rows),
    }
    for text, count in counts.items():
        yield f"{count} of {len(rows)} ratios ({count / len(rows):.0%}) {text}"
    for row in rows:
        if not row.is_inside or not row.change.holds_one:
            step = "" if row.clients is None else f", {row.clients:,} clients"
            yield (f"    {row.workload}{step}: {row.label} {stats.format_ratio(row.ratio)} x, before {row.before}"
                   + ("" if row.change.holds_one else ": differs"))  # fmt: skip


def format_build(one, other, workload, labels, common):
    names = [f"{label} of {results.path}" for label, results in zip(labels, (one, other))]
    comparison = compare_unpaired(one, other, workload, labels)
    if not comparison:
        return
    versions = [results.servers.get(label, {}).get("version", "") for label, results in zip(labels, (one, other))]
    note = f" ({versions[0]}; {versions[1]})" if versions[0] != versions[1] else ""
    yield f"{workload}  {stats.describe(*names, comparison.interval)}{note}"
    for reference in common:
        if labels[0] == labels[1] != reference:
            relative = compare_relative(one, other, workload, labels[0], reference)
            if relative:
                yield f"    beside {reference}: {stats.describe(*names, relative.interval)}"
                return


def format_cell(results, workload, label, first, clients=None):
    costs = [read_cost(row) for row in results.rounds_of(workload, label, clients)]
    if not costs:
        return ""
    text = format_value(stats.find_centre(costs))
    comparison = compare_pairs(results, workload, first, label, clients=clients) if label != first else None
    if not comparison:
        return text
    ratio, low, high = (stats.format_ratio(value) for value in comparison.interval[:3])
    return f"{text} ({ratio}; {low} to {high})" if comparison.interval.count > 1 else f"{text} ({ratio})"


def format_count(value):
    return f"{value:,}" if isinstance(value, int) else "" if value is None else f"{value:.1f}"


def format_markdown(results, columns=(), workloads=()):
    """The table of the README: a row for each count and workload, a column for each server; or for those named."""
    workloads = [name for name in names_measured(results) if name in workloads or not workloads]
    measured = [results.column_of(w, label) for w in workloads for label in results.labels_of(w)]
    columns = list(dict.fromkeys([*columns] or [*results.counts, *measured]))
    titles = [TITLES.get(name, results.title_of(name)) for name in columns]
    rows = [["", *titles], ["---", *["--:"] * len(columns)]]
    for key, text in COUNTS.items() if results.counts else ():
        rows.append([text, *(format_count(results.counts.get(name, {}).get(key)) for name in columns)])
    for workload in workloads:
        labels = results.labels_of(workload)
        text = results.workloads.get(workload, {}).get("text", workload)
        for clients in results.steps_of(workload):
            cells = {results.column_of(workload, label): format_cell(results, workload, label, labels[0], clients)
                     for label in labels}  # fmt: skip
            step = "" if clients is None else f"; {clients:,} clients"
            rows.append([f"CPU µs: {text}{step}", *(cells.get(name, "") for name in columns)])
    for row in rows:
        yield "| " + " | ".join(row) + " |"
