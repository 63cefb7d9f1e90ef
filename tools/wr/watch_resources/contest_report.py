# SPDX-License-Identifier: Apache-2.0
"""What the page of a contest has besides that of a comparison: where the first server loses, ranks, what was excluded
and why, the second witness, and the raw rows behind each chart."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from typing import Any, NamedTuple, Sequence

from . import report_data as data
from .ranks import ONE, Span, rank
from .report_data import Results
from .report_parts import (Cell, Chart, Filter, Listing, Number, Paragraph, Row, Section, Series, Table, cell,
                           make_name, significant)
from .results import EXCLUSIONS
from .stats import find_centre

COUNTS = {
    "start_ms": "start, ms", "idle_cpu_us": "CPU when idle, µs a second",
    "idle_wakeups": "wake-ups when idle, a second",
    "pss_kb": "PSS at rest, KB", "dirty_kb": "private dirty at rest, KB", "crowd_dirty_kb": "private dirty at work, KB",
    "connection_bytes": "bytes per idle connection", "calls": "system calls per request", "binary_kb": "binary, KB",
}
ROW_KEYS = ("n", "server", "clients", "started", "seconds", "answers", "errors", "statuses", "rps", "latency_us",
            "cpu_us", "cost_us", "memory_kb", "threads", "switches", "faults", "descriptors_max", "tcp", "io",
            "others_share", "marks")


class Metric(NamedTuple):
    name: str
    title: str
    keys: tuple[str, ...]
    more_is_better: bool = False


METRICS = (
    Metric("cost", "CPU per answer, µs", data.COST),
    Metric("rps", "Requests per second", ("rps",), True),
    Metric("p99", "99th percentile of the latency, µs", ("latency_us", "p99")),
    Metric("memory", "PSS at most, KB", ("memory_kb", "pss_max")),
)


class Step(NamedTuple):
    """A workload with one number of clients."""

    workload: str
    clients: int
    title: str


def list_steps(results: Results) -> list[Step]:
    found = []
    for workload in results.workload_names():
        clients = results.clients_of(workload)
        found += [Step(workload, each, workload if len(clients) == 1 else f"{workload}, {each:,}") for each in clients]
    return found


def base_name(results: Results, workload: str, server: str) -> str:
    """A server's name without the variants that the workload needs."""
    variants = data.take(results.workloads.get(workload), "variants")
    variants = variants if isinstance(variants, list) else []
    return "+".join(word for word in server.split("+") if word not in variants)


class Standing(NamedTuple):
    server: str
    rank: int
    value: float
    span: Span


def find_spans(results: Results, step: Step, metric: Metric) -> dict[str, Span]:
    """How much each server needs of what the reference needs: the server that was measured against all others."""
    firsts = [data.text(pair, "first") for pair in results.pairs if data.text(pair, "workload") == step.workload]
    if not firsts:
        return {}
    first = max(dict.fromkeys(firsts), key=firsts.count)
    spans = {first: ONE}
    for server in dict.fromkeys(each.server for each in results.select(step.workload, clients=step.clients)):
        if server == first:
            continue
        known = data.ratio(results, step.workload, server, first, metric.keys, step.clients)
        if known:
            spans[server] = Span(known.value, known.low or 0.0, math.inf if known.high is None else known.high)
    return spans


@functools.lru_cache(maxsize=1024)  # several sections and charts need them
def find_standings(results: Results, step: Step, metric: Metric) -> tuple[Standing, ...]:
    """The best first."""
    spans = find_spans(results, step, metric)
    values = {}
    for server in spans:
        rounds = data.counted(results.select(step.workload, server, step.clients))
        known = [value for each in rounds if (value := each.value(*metric.keys)) and value > 0]
        values |= {server: find_centre(known)} if known else {}
    ranks = rank({server: spans[server] for server in values}, metric.more_is_better)
    found = [Standing(server, ranks[server], value, spans[server]) for server, value in values.items()]
    return tuple(sorted(found, key=lambda each: (each.rank, -each.value if metric.more_is_better else each.value)))


# ── where the first server loses ──


def losses(results: Results) -> Section:
    name = (data.words(results.plan, "servers") or results.server_names())[0].split("+")[0]
    rows = [row for step in list_steps(results) for metric in METRICS
            if (row := find_loss(results, step, metric, name))]
    text = (f"Where another server is better than {name} with its whole interval. Where {name} was measured in several "
            "variants, the best of them counts.")
    columns = ["workload", "value", "ours", "its value", "rank", "the best", "its value", "ours / the best"]
    parts = [Paragraph(text), Table("losses-table", f"Where {name} loses", columns, rows)] if rows else [
        Paragraph(f"No server was better than {name} with its whole interval, in any value of any workload.")]
    return Section("losses", f"Where {name} loses", parts)


def find_loss(results: Results, step: Step, metric: Metric, name: str) -> list[Cell] | None:
    standings = find_standings(results, step, metric)
    ours = next((each for each in standings if each.server.split("+")[0] == name), None)
    if not ours or ours.rank == 1:
        return None
    best = standings[0]
    return [step.title, metric.title, ours.server, cell(ours.value), Number(ours.rank, str(ours.rank)), best.server,
            cell(best.value), cell(ours.span.ratio / best.span.ratio)]


# ── ranks ──


def ranks(results: Results) -> Section:
    text = ("The rank, and the value in brackets. Servers have the same rank where their intervals overlap: a rank is "
            "one more than the number of servers that are better with their whole interval, relative to the same "
            "server in the same pairs of rounds. Columns sort by their values.")
    return Section("ranks", "Ranks", [Paragraph(text), *(rank_table(results, metric) for metric in METRICS)])


def rank_table(results: Results, metric: Metric) -> Table:
    steps, cells, servers = list_steps(results), {}, {}
    for step in steps:
        for each in find_standings(results, step, metric):
            name = base_name(results, step.workload, each.server)
            servers[name] = None
            cells[name, step.title] = Number(each.value, f"{each.rank} ({significant(each.value)})")
    for each in results.exclusions:
        servers.setdefault(base_name(results, data.text(each, "workload"), data.text(each, "server")))
    rows = [[server, *(cells.get((server, step.title)) or find_reason(results, step, server) for step in steps)]
            for server in servers]
    return Table(f"ranks-{metric.name}", metric.title, ["server", *(step.title for step in steps)], rows)


def find_reason(results: Results, step: Step, server: str) -> Cell:
    """Why there is no value: the kind of its exclusion."""
    for each in results.exclusions:
        workload = data.text(each, "workload")
        if workload in ("", step.workload) and base_name(results, workload, data.text(each, "server")) == server:
            return data.text(each, "kind")
    return None


# ── checks ──


def group_workloads(records: Sequence[dict[str, Any]], cells: Any) -> list[list[Cell]]:
    """A row for each server and its cells, with all workloads that these are of."""
    found: dict[tuple[str, ...], list[str]] = {}
    for each in records:
        key = data.text(each, "server"), *cells(each)
        found.setdefault(key, []).append(data.text(each, "workload") or "all")
    return [[server, ", ".join(workloads), *rest] for (server, *rest), workloads in found.items()]


def checks(results: Results) -> Section | None:
    parts: list[Any] = []
    if results.exclusions:
        rows = group_workloads(results.exclusions, lambda each: [data.text(each, "kind"), data.text(each, "reason")])
        kinds = dict.fromkeys(data.text(each, "kind") for each in results.exclusions)
        meanings = "; ".join(f"{kind}: it {EXCLUSIONS[kind]}" for kind in kinds if kind in EXCLUSIONS)
        columns = ["server", "workload", "kind", "reason"]
        parts += [Paragraph(f"{meanings}."), Table("exclusions", "Not measured", columns, rows)]
    if results.qualifications:
        features = [data.take(each, "features") or {} for each in results.qualifications]
        names = list(dict.fromkeys(name for each in features for name in each))
        rows = group_workloads(results.qualifications,
                               lambda each: [data.text(each, "features", name) for name in names])
        text = ("Each of these answered GET, HEAD, a missing file, ranges and validators as RFC 9110 has it, kept "
                "connections, used the congestion control of the others and wrote no access log.")
        parts += [Paragraph(text), Table("qualifications", "What they do of what is left to a server",
                                         ["server", "workload", *names], rows)]
    return Section("checks", "Checks before measuring", parts) if parts else None


# ── the second witness ──


def witnesses(results: Results) -> Section | None:
    parts: list[Any] = []
    for workload in results.workload_names():
        original = results.witness_of(workload)
        if original and (table := compare_witness(results, original, workload)):
            parts += [Paragraph(describe_witness(table, original, workload)), table]
    text = "The same workloads with another generator. Ranks by CPU per answer."
    return Section("witnesses", "A second witness", [Paragraph(text), *parts]) if parts else None


def compare_witness(results: Results, original: str, workload: str) -> Table | None:
    clients = results.clients_of(workload)
    if len(clients) != 1:
        return None
    sides = [{each.server: each for each in find_standings(results, Step(name, clients[0], name), METRICS[0])}
             for name in (original, workload)]
    rows, careful = [], set()
    for server in sides[0]:
        found = [side.get(server) for side in sides]
        if len({each.rank if each else None for each in found}) > 1:
            careful.add(len(rows))
        rows.append([server, *(part for each in found for part in (
            (Number(each.rank, str(each.rank)), cell(each.value)) if each else (None, None)))])
    columns = ["server", f"rank, {original}", "CPU µs", f"rank, {workload}", "CPU µs"]
    return Table(make_name("witness", workload), f"{original} and {workload}", columns, rows, careful)


def describe_witness(table: Table, original: str, workload: str) -> str:
    if not table.marked:
        return f"{workload} gives all servers the ranks of {original}."
    names = ", ".join(str(table.rows[row][0]) for row in sorted(table.marked))
    return f"The ranks of {original} and {workload} differ for {names}."


# ── counts ──


def counts(results: Results) -> Section | None:
    if not results.counts:
        return None
    rows = [[data.text(each, "server"), *(cell(data.number(each, key)) for key in COUNTS)] for each in results.counts]
    text = ("Counted once for each server, without rounds: from its start to its first answer, without requests, after "
            "its first ones, and with 1,000 clients on a file of 200 KB.")
    return Section("counts", "At rest", [Paragraph(text), Table("counts-table", "Counts", ["server", *COUNTS.values()],
                                                                rows)])


# ── user and system time, and a round over time ──


def draw_bars(chart: Chart, look: str) -> Any:
    from . import charts

    look = getattr(charts, look)
    return charts.bar_chart(chart.name, chart.title, chart.text, chart.series, "CPU µs per answer: user, system", look)


def split(results: Results) -> Section | None:
    parts = []
    for step in list_steps(results):
        series = []
        for each in find_standings(results, step, METRICS[0]):
            rounds = results.select(step.workload, each.server, step.clients)
            values = [data.median_of(rounds, "cost_us", part) for part in ("user", "system")]
            if None not in values:
                series.append(Series(each.server, results.server_names().index(each.server), values, [0.0, 0.0]))
        if series:
            parts.append(split_of_step(results, step, series))
    return Section("split", "User and system time", parts) if parts else None


def split_of_step(results: Results, step: Step, series: list[Series]) -> Section:
    name = make_name("split", step.workload, str(step.clients))
    text = "; ".join(f"{each.name}: {significant(each.x[0])} and {significant(each.x[1])} µs" for each in series)
    chart = Chart(f"{name}-chart", "split", f"{step.title}: user and system time of an answer", text, series, draw_bars,
                  "The paler part is system time.", legend=False)
    rows: list[list[Cell]] = [[each.name, *map(cell, each.x)] for each in series]
    table = Table(f"{name}-table", f"{step.title}: µs", ["server", "user", "system"], rows)
    return Section(name, step.title, [Row([chart, table])], 3, {"workload": step.workload})


def strips(results: Results, middle_round: Any, draw_line: Any) -> Section | None:
    """The CPU that the servers used during one round of each."""
    parts = []
    for step in list_steps(results):
        series, rows = [], []
        for each in find_standings(results, step, METRICS[0]):
            chosen = middle_round(results.select(step.workload, each.server, step.clients))
            if chosen and (line := strip_of_round(results, chosen)):
                series.append(line)
                rows.append([each.server, Number(chosen.n, str(chosen.n)), cell(max(line.y)), cell(min(line.y))])
        if series:
            parts.append(strip_of_step(step, series, rows, draw_line))
    text = "The CPU time that each server used in one round, by its samples: 1 is a whole CPU."
    return Section("strips", "A round over time", [Paragraph(text), *parts]) if parts else None


def strip_of_round(results: Results, chosen: Any) -> Series | None:
    samples = [row for row in chosen.samples if len(row) > 1 and data.is_number(row[1])]
    spans = [(float(after[0]), (after[1] - before[1]) / 1e9 / (after[0] - before[0]))
             for before, after in zip(samples, samples[1:]) if after[0] > before[0]]
    if not spans:
        return None
    return Series(chosen.server, results.server_names().index(chosen.server), [x for x, _ in spans],
                  [y for _, y in spans], markers=False)


def strip_of_step(step: Step, series: list[Series], rows: list[list[Cell]], draw_line: Any) -> Section:
    name = make_name("strips", step.workload, str(step.clients))
    text = "; ".join(f"{each.name}: {significant(max(each.y))} at most" for each in series)
    chart = Chart(f"{name}-chart", "strip", f"{step.title}: CPUs used in a round", text, series, draw_line)
    table = Table(f"{name}-table", f"{step.title}: CPUs", ["server", "round", "at most", "at least"], rows)
    return Section(name, step.title, [Row([chart, table])], 3, {"workload": step.workload})


# ── what is behind the charts ──


def raw_rows(results: Results) -> Section:
    """The commands and the rounds of each workload: what a chart links to."""
    parts = []
    for workload in results.workload_names():
        rounds = results.select(workload)
        commands = dict.fromkeys(" ".join(data.words(each.record, "generator", "command")) for each in rounds)
        lines = [json.dumps({key: each.record[key] for key in ROW_KEYS if key in each.record}, ensure_ascii=False)
                 for each in rounds]
        listings = Listing("Of the generator", "\n".join(commands)), Listing("JSON lines", data.clean("\n".join(lines)))
        body = [Section(make_name(kind, workload), kind.capitalize(), [listing], 4)
                for kind, listing in zip(("commands", "rows"), listings)]
        parts.append(Section(make_name("behind", workload), workload, body, 3))
    return Section("behind", "Commands and rounds", parts, page_only=True)


def add_links(parts: Sequence[Any], workload: str = "") -> None:
    """Each chart links to the commands and the rounds that it is made of."""
    for part in parts:
        if isinstance(part, Chart) and workload:
            part.links = [(text, f"#{make_name(kind, workload)}")
                          for text, kind in (("command", "commands"), ("rounds", "rows"))]
        elif isinstance(part, (Section, Row)):
            add_links(part.parts, getattr(part, "data", {}).get("workload", workload))


def make_filter(results: Results) -> Filter:
    names: dict[str, list[str]] = {}
    for each in results.rounds:
        labels = names.setdefault(base_name(results, each.workload, each.server), [])
        labels += [] if each.server in labels else [each.server]
    for name, labels in names.items():
        labels += [] if name in labels else [name]
    return Filter(names)


def without_witnesses(results: Results) -> Results:
    """For the sections that show each workload once."""
    return dataclasses.replace(
        results, workloads={name: each for name, each in results.workloads.items() if not results.witness_of(name)},
        rounds=[each for each in results.rounds if not results.witness_of(each.workload)])
