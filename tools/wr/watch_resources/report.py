# SPDX-License-Identifier: Apache-2.0
"""`wr report`: a file of results as one HTML page, which fetches nothing, or as Markdown.

    report_data   reads the file          report.py   decides what is shown
    report_parts  tables and documents    charts      draws
"""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import Any, Sequence

import click

from . import WrError
from . import contest_report as contest
from . import publish
from . import report_data as data
from .report_data import Estimate, Results, Round
from .report_parts import (SCRIPT, Axes, Cell, Chart, Document, Listing, Number, Paragraph, Row, Section, Series,
                           Table, cell, make_name, significant)

MARKS = {
    "disturbed": "Other programs used more of the machine than the limit. Does not count where other rounds exist.",
    "generator_limited": "The generator used its CPU whole: requests per second are its limit; the cost holds.",
    "repeated": "The repetition of a disturbed round.",
    "errors": "Answers were wrong or missing: the server did not do all of the work.",
}
OPEN, CROSS = "Without filling: limited by the generator, or with errors.", "A cross: a disturbed round, not counted."
CURVES = (
    ("rps", "Requests per second", "requests per second", ("rps",)),
    ("cost", "CPU per answer", "CPU µs per answer", ("cost_us", "total")),
    ("memory", "Memory", "PSS at most, KB", ("memory_kb", "pss_max")),
    ("p99", "Latency, 99th percentile", "µs", ("latency_us", "p99")),
)
LOG_SPREAD = 20  # axes are logarithmic from this quotient of highest and lowest value on


# ── what was measured ──


def join(value: Any) -> str:
    """A value of a machine as text: nested objects as key = value."""
    if isinstance(value, dict):
        return ", ".join(f"{data.clean(str(key))} = {join(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(join, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else data.clean(str(value))


def command_of(record: Any, *keys: str) -> str:
    words = data.words(record, *keys)
    return words[0] if len(words) == 1 else shlex.join(words)


def describe_session(number: int, session: dict[str, Any]) -> list[Any]:
    machine = session.get("machine")
    rows: list[list[Cell]] = [["Started", data.text(session, "started")], ["wr", data.text(session, "wr")]]
    if isinstance(machine, dict):
        rows += [[data.clean(key).replace("_", " "), join(value)] for key, value in machine.items() if key != "sysctls"]
    rows.append(["CPUs", join(session.get("cpus"))])
    rows.append(["Tools", join(session.get("tools"))])
    table = Table(f"session-{number}", f"Session {data.text(session, 'id') or number}", ["", "value"],
                  [row for row in rows if row[1]])
    parts: list[Any] = [table]
    sysctls = data.take(machine, "sysctls")
    if isinstance(sysctls, dict) and sysctls:
        listing = "\n".join(f"{data.clean(key)} = {join(value)}" for key, value in sysctls.items())
        parts.append(Listing("Sysctls", listing))
    return parts


def describe_servers(results: Results) -> list[Any]:
    rows: list[list[Cell]] = []
    listings: list[Any] = []
    for name in results.server_names():
        server = results.servers.get(name)
        kind = "limit server" if results.is_limit(name) else "server"
        rows.append([name, data.text(server, "version"), kind, command_of(server, "command")])
        config = data.take(server, "config")
        if isinstance(config, dict):
            listings += [Listing(f"{name}: {data.clean(path)}", data.text(config, path)) for path in config]
    return [Table("servers", "Servers", ["server", "version", "kind", "command"], rows), *listings] if rows else []


def describe_workloads(results: Results) -> list[Any]:
    rows: list[list[Cell]] = []
    for name in results.workload_names():
        workload = results.workloads.get(name, {})
        rest = {key: value for key, value in workload.items() if key not in ("type", "name", "text")}
        rows.append([name, data.text(workload, "text"), join(rest)])
    return [Table("workloads", "Workloads", ["workload", "text", "keys"], rows)] if rows else []


def describe_commands(results: Results) -> list[Any]:
    sessions = [command_of(session, "command") for session in results.sessions]
    generators = [command_of(each.record, "generator", "command") for each in results.rounds]
    parts: list[Any] = []
    if any(sessions):
        parts.append(Listing("Commands to repeat it", "\n".join(dict.fromkeys(filter(None, sessions))), folded=False))
    if any(generators):
        parts.append(Listing("Commands of the generators", "\n".join(dict.fromkeys(filter(None, generators)))))
    return parts


def measured(results: Results) -> Section:
    parts = [part for number, session in enumerate(results.sessions, 1) for part in describe_session(number, session)]
    parts += describe_commands(results) + describe_servers(results) + describe_workloads(results)
    return Section("measured", "What was measured", parts or [Paragraph("The file does not say it.")])


# ── marks ──


def marked(results: Results) -> Section:
    rows: list[list[Cell]] = []
    for mark in data.marks_of(results.rounds):
        these = [each for each in results.rounds if mark in each.marks]
        rows.append([mark, MARKS.get(mark, ""), Number(len(these), str(len(these))), list_numbers(these)])
    count = sum(bool(each.marks) for each in results.rounds)
    text = f"{count} of {len(results.rounds)} rounds have marks. They are shown, with their marks."
    parts: list[Any] = [Paragraph(text if count else f"None of the {len(results.rounds)} rounds has a mark.")]
    return Section("marks", "Marks", parts + ([Table("marks-table", "Marks", ["mark", "meaning", "rounds", "which"],
                                                     rows)] if rows else []))


def list_numbers(rounds: Sequence[Round], most: int = 20) -> str:
    numbers = [str(each.n) for each in rounds[:most]]
    return ", ".join(numbers) + (f" and {len(rounds) - most} more" if len(rounds) > most else "")


# ── values ──


def interval_cell(known: Estimate | None) -> Cell:
    if known is None or known.low is None or known.high is None:
        return None
    return f"{significant(known.low)} to {significant(known.high)}"


def ratio_cells(results: Results, workload: str, server: str) -> list[Cell]:
    """How much the first server costs in comparison with this one."""
    first = results.server_names()[0]
    if server == first:
        return ["1", None, None]
    known = data.ratio(results, workload, first, server)
    if known is None:
        return [None, "no pairs", None]
    said = "no difference seen" if known.holds_one else ""
    return [Number(known.value, f"{known.value:.2f}"),
            f"{interval_text(known)}{f' ({said})' if said else ''}", interval_text(known.of_a_second_run)]


def interval_text(known: Estimate) -> str:
    if known.low is None or known.high is None or known.high > 1000:
        return "too few pairs for an interval"
    return f"{known.low:.2f} to {known.high:.2f}"


def cost_of(rounds: Sequence[Round]) -> Estimate | None:
    return data.estimate(each.value("cost_us", "total") for each in data.counted(rounds))


def is_open(rounds: Sequence[Round]) -> bool:
    return bool({"generator_limited", "errors"} & set(data.marks_of(data.counted(rounds))))


def style_of(results: Results, server: str) -> int:
    return results.server_names().index(server)


def draw_line(kind: Axes) -> Any:
    def draw(chart: Chart, look: str) -> Any:
        from . import charts  # matplotlib is needed for pages only

        look = getattr(charts, look)
        return charts.line_chart(chart.name, chart.title, chart.text, chart.series, kind, look)

    return draw


def draw_dots(chart: Chart, look: str) -> Any:
    from . import charts

    look = getattr(charts, look)
    return charts.dot_chart(chart.name, chart.title, chart.text, chart.series, "CPU µs per answer", look)


# ── cost ──


def cost(results: Results) -> Section | None:
    parts: list[Any] = []
    for workload in results.workload_names():
        if len(results.clients_of(workload)) == 1:
            part = cost_of_workload(results, workload)
            parts += [part] if part else []
    text = ("CPU time of the server's processes, user and system, divided by the answers. Intervals are of 95 %. Ratio "
            f"is the cost of {results.server_names()[0]} divided by that of the row; where its interval holds 1, no "
            "difference was seen. The ratio of a second run of as many rounds varies as well: 19 of 20 lie in the "
            "wider interval.")
    return Section("cost", "CPU per answer", [Paragraph(text), *parts]) if parts else None


def cost_of_workload(results: Results, workload: str) -> Section | None:
    known = {server: cost_of(results.select(workload, server)) for server in results.server_names()}
    order = sorted((server for server in known if known[server]), key=lambda server: known[server].value)
    if not order:
        return None
    name = make_name("cost", workload)
    series = [dots_of(results, workload, server, known[server]) for server in order]
    text = "; ".join(f"{server}: {significant(known[server].value)} µs" for server in order)
    title = f"{workload}: CPU µs per answer"
    note = " ".join(["A bar: the interval. Small strokes: the rounds.", *explain_marks(series)])
    chart = Chart(f"{name}-chart", "cost", title, text, series, draw_dots, note, legend=False)
    return Section(name, heading_of(results, workload), [Row([chart, cost_table(results, workload, order, name)])], 3,
                   {"workload": workload})


def heading_of(results: Results, workload: str) -> str:
    said = data.text(results.workloads.get(workload), "text")
    clients = results.clients_of(workload)
    counted = len(clients) == 1 and "clients" not in said
    return f"{workload}{f': {said}' if said else ''}" + (f" ({clients[0]:,} clients)" if counted else "")


def dots_of(results: Results, workload: str, server: str, known: Estimate) -> Series:
    """The rounds, and the estimate as the last point."""
    rounds = results.select(workload, server)
    values = [value for each in data.counted(rounds) if (value := each.value("cost_us", "total")) is not None]
    none: list[float | None] = [None] * len(values)
    return Series(server, style_of(results, server), [*values, known.value], [0.0] * (len(values) + 1),
                  [*none, known.low], [*none, known.high], [False] * len(values) + [is_open(rounds)],
                  [(value, 0.0) for value in not_counted(rounds, "cost_us", "total")])


def not_counted(rounds: Sequence[Round], *keys: str) -> list[float]:
    kept = {id(each) for each in data.counted(rounds)}
    return [value for each in rounds if id(each) not in kept and (value := each.value(*keys)) is not None]


def cost_table(results: Results, workload: str, order: Sequence[str], name: str) -> Table:
    columns = ["server", "CPU µs", "interval", "user", "system", "ratio", "interval of the ratio",
               "of a second run", "requests/s", "PSS at most, KB"]
    read = {server: data.median_of(results.select(workload, server), "io", "read_bytes") for server in order}
    reads = any(read.values())  # of disks
    columns += [*(["from disks, MB"] if reads else []), "rounds", "marks"]
    rows, careful = [], set()
    for index, server in enumerate(order):
        rounds = results.select(workload, server)
        known = cost_of(rounds)
        marks = data.marks_of(rounds)
        limit = " (limit)" if results.is_limit(server) else ""
        rows.append([f"{server}{limit}", cell(known.value if known else None), interval_cell(known),
                     cell(data.median_of(rounds, "cost_us", "user")), cell(data.median_of(rounds, "cost_us", "system")),
                     *ratio_cells(results, workload, server), cell(data.median_of(rounds, "rps")),
                     cell(data.median_of(rounds, "memory_kb", "pss_max")),
                     *([megabytes_cell(read[server])] if reads else []), count_cell(rounds), ", ".join(marks)])
        if marks:
            careful.add(index)
    return Table(f"{name}-table", f"{workload}: CPU per answer", columns, rows, careful)


def megabytes_cell(value: float | None) -> Cell:
    return cell(None if value is None else value / 1e6)


def count_cell(rounds: Sequence[Round]) -> Cell:
    used = len(data.counted(rounds))
    return Number(used, str(used) if used == len(rounds) else f"{used} of {len(rounds)}")


# ── curves ──


def curves(results: Results) -> Section | None:
    parts = [curves_of_workload(results, workload) for workload in results.workload_names()
             if len(results.clients_of(workload)) > 1]
    return Section("curves", "Curves over concurrency", parts) if parts else None


def curves_of_workload(results: Results, workload: str) -> Section:
    name = make_name("curves", workload)
    charts = [chart for kind in CURVES if (chart := curve(results, workload, name, *kind))]
    return Section(name, heading_of(results, workload), [Row(charts), curve_table(results, workload, name)], 3,
                   {"workload": workload})


def curve(results: Results, workload: str, section: str, name: str, title: str, label: str,
          keys: tuple[str, ...]) -> Chart | None:
    series = [line for server in results.server_names() if (line := line_of(results, workload, server, keys)).x]
    if not series:
        return None
    clients = [x for line in series for x in line.x]
    kind = Axes("clients", label, max(clients) > LOG_SPREAD * max(min(clients), 1) and min(clients) > 0)
    text = "; ".join(f"{line.name}: {significant(line.y[0])} at {line.x[0]:g} clients, {significant(line.y[-1])} at "
                     f"{line.x[-1]:g}" for line in series)
    note = " ".join(explain_marks(series))
    return Chart(f"{section}-{name}", name, f"{title}, {workload}", text, series, draw_line(kind), note)


def explain_marks(series: Sequence[Series]) -> list[str]:
    """Of the marks that are in a chart."""
    found = {OPEN: any(any(line.open) for line in series), CROSS: any(line.crosses for line in series)}
    return [text for text, is_there in found.items() if is_there]


def line_of(results: Results, workload: str, server: str, keys: tuple[str, ...]) -> Series:
    line = Series(server, style_of(results, server), [], [])
    for clients in results.clients_of(workload):
        rounds = results.select(workload, server, clients)
        known = cost_of(rounds) if keys[0] == "cost_us" else None
        value = known.value if known else data.median_of(rounds, *keys)
        line.crosses += [(float(clients), y) for y in not_counted(rounds, *keys)]
        if value is None:
            continue
        line.x.append(float(clients))
        line.y.append(float(value))
        line.low.append(known.low if known else None)
        line.high.append(known.high if known else None)
        line.open.append(is_open(rounds))
    return line


def curve_table(results: Results, workload: str, name: str) -> Table:
    columns = ["server", "clients", "requests/s", "CPU µs", "interval", "user", "system", "PSS at most, KB", "p99, µs",
               "rounds", "marks"]
    rows, careful = [], set()
    for server in results.server_names():
        for clients in results.clients_of(workload):
            rounds = results.select(workload, server, clients)
            if not rounds:
                continue
            known = cost_of(rounds)
            marks = data.marks_of(rounds)
            if marks:
                careful.add(len(rows))
            rows.append([server, Number(clients, f"{clients:,}"), cell(data.median_of(rounds, "rps")),
                         cell(known.value if known else None), interval_cell(known),
                         cell(data.median_of(rounds, "cost_us", "user")),
                         cell(data.median_of(rounds, "cost_us", "system")),
                         cell(data.median_of(rounds, "memory_kb", "pss_max")),
                         cell(data.median_of(rounds, "latency_us", "p99")), count_cell(rounds), ", ".join(marks)])
    return Table(f"{name}-table", f"{workload}: by number of clients", columns, rows, careful)


# ── latency ──


def latency(results: Results) -> Section | None:
    parts = [part for workload in results.workload_names() if (part := latency_of_workload(results, workload))]
    text = ("The axis is that of 1 / (1 - p), as HdrHistogram draws it: each step to the right leaves a tenth of the "
            "answers. In a closed loop a stalled server delays the requests that would have shown it; only the open "
            "loop counts from the intended start.")
    return Section("latency", "Latency", [Paragraph(text), *parts]) if parts else None


def latency_of_workload(results: Results, workload: str) -> Section | None:
    """At the highest number of clients."""
    clients = max(results.clients_of(workload), default=0)
    name = make_name("latency", workload)
    series, rows = [], []
    for server in results.server_names():
        rounds = data.counted(results.select(workload, server, clients))
        xs, ys = data.latency_curve(rounds)
        if xs:
            series.append(Series(server, style_of(results, server), xs, ys, markers=len(xs) < 20))
            rows.append([server, loop_of(rounds), *(cell(data.median_of(rounds, "latency_us", key))
                                                    for key in ("min", "mean", *data.PERCENTILES, "max"))])
    if not series:
        return None
    lowest, highest = min(y for line in series for y in line.y), max(y for line in series for y in line.y)
    kind = Axes("percentile", "µs", x_log=True, x_percentiles=True,
                y_log=lowest > 0 and highest > LOG_SPREAD * lowest)
    text = "; ".join(f"{line.name}: {significant(line.y[-1])} µs at the right end" for line in series)
    title = f"Latency, {workload}, {clients:,} clients"
    chart = Chart(f"{name}-chart", "latency", title, text, series, draw_line(kind))
    table = Table(f"{name}-table", f"{title}: µs, medians of the rounds",
                  ["server", "loop", "min", "mean", *data.PERCENTILES, "max"], rows)
    return Section(name, title, [Row([chart, table])], 3, {"workload": workload})


def loop_of(rounds: Sequence[Round]) -> str:
    commands = [data.words(each.record, "generator", "command") for each in rounds]
    loops = {data.text(each.record, "loop") for each in rounds} - {""}
    if loops:
        return ", ".join(sorted(loops))
    return "open" if any(word in ("-r", "--rate") for command in commands for word in command) else ""


# ── memory over time ──


def memory(results: Results) -> Section | None:
    parts = [part for workload in results.workload_names() if (part := memory_of_workload(results, workload))]
    text = ("One round of each server, that with the middle cost among those with the most clients. PSS counts shared "
            "pages in parts; private dirty memory is what would be free without the server.")
    return Section("memory", "Memory over time", [Paragraph(text), *parts]) if parts else None


def middle_round(rounds: Sequence[Round]) -> Round | None:
    known = [each for each in data.counted(rounds) if each.samples]
    known.sort(key=lambda each: each.value("cost_us", "total") or 0)
    return known[len(known) // 2] if known else None


def memory_of_workload(results: Results, workload: str) -> Section | None:
    clients = max(results.clients_of(workload), default=0)
    name = make_name("memory", workload)
    series, rows = [], []
    for server in results.server_names():
        chosen = middle_round(results.select(workload, server, clients))
        if not chosen:
            continue
        samples = chosen.samples
        series.append(Series(server, style_of(results, server), [float(row[0]) for row in samples],
                             [float(row[2]) for row in samples], markers=False))
        rows.append([server, Number(chosen.n, str(chosen.n)), *(cell(value) for column in (2, 3) for value in (
            samples[0][column], max(row[column] for row in samples), samples[-1][column]))])
    if not series:
        return None
    title = f"Memory, {workload}, {clients:,} clients"
    text = "; ".join(f"{line.name}: {significant(line.y[0])} KB at first, {significant(max(line.y))} KB at most"
                     for line in series)
    chart = Chart(f"{name}-chart", "memory-over-time", title, text, series, draw_line(Axes("seconds", "PSS, KB")))
    table = Table(f"{name}-table", f"{title}: KB", ["server", "round", "PSS at first", "at most", "at last",
                                                    "private dirty at first", "at most", "at last"], rows)
    return Section(name, title, [Row([chart, table])], 3, {"workload": workload})


# ── all rounds ──


def all_rounds(results: Results) -> Section:
    columns = ["round", "workload", "server", "clients", "seconds", "answers", "errors", "requests/s", "CPU µs",
               "generator's CPU", "CPU of others", "marks"]
    rows = [[str(each.n), each.workload, each.server, Number(each.clients, f"{each.clients:,}"),
             cell(each.value("seconds")), cell(each.value("answers")), cell(each.errors), cell(each.value("rps")),
             cell(each.value("cost_us", "total")), share(each.value("generator", "cpu_share")),
             share(each.value("others_share")), ", ".join(each.marks)] for each in results.rounds]
    careful = {index for index, each in enumerate(results.rounds) if each.marks}
    table = Table("rounds-table", "All rounds, in their order", columns, rows, careful)
    return Section("rounds", "All rounds", [table], page_only=True)


def share(value: float | None) -> Cell:
    return None if value is None else Number(value, f"{100 * value:.0f} %")


# ── the page ──


def make_document(results: Results) -> Document:
    introduction: list[Any] = []
    if results.cut:
        introduction.append(Paragraph(results.cut, "warning"))
    if not results.rounds:
        introduction.append(Paragraph("The file holds no rounds: nothing was measured, or wr was ended before the "
                                      "first round was over.", "warning"))
        return Document(f"wr report: {results.name}", introduction, [measured(results)])
    if results.plan.get("contest"):
        return make_contest(results, introduction)
    sections = [make(results) for make in (cost, curves, latency, memory, marked, measured, all_rounds)]
    return Document(f"wr report: {results.name}", introduction, [each for each in sections if each])


def make_contest(results: Results, introduction: list[Any]) -> Document:
    """The page of a contest: where ours loses comes first."""
    once = contest.without_witnesses(results)
    sections = [
        contest.losses(once), contest.ranks(once), contest.checks(results), contest.witnesses(results),
        contest.counts(results), cost(once), curves(once), contest.split(once),
        contest.strips(once, middle_round, draw_line(Axes("seconds", "CPUs"))), latency(once), memory(once),
        marked(results), measured(results), contest.raw_rows(results), all_rounds(results)]
    sections = [each for each in sections if each]
    contest.add_links(sections)
    name, text = data.text(results.plan, "contest"), data.text(results.plan, "text")
    introduction = [*introduction, Paragraph(text), contest.make_filter(results)]
    return Document(f"Web server contest: {name}", introduction, sections, SCRIPT.read_text("utf-8"))


def make_page(path: Path) -> str:
    document = make_document(data.read(path))
    try:
        return document.to_html()
    except ModuleNotFoundError as error:
        raise explain_missing(error) from error


def explain_missing(error: ModuleNotFoundError) -> Exception:
    if error.name != "matplotlib":
        return error
    return WrError("the Python module matplotlib is missing: install the Debian package python3-matplotlib, or use "
                   "--markdown")


def make_markdown(path: Path) -> str:
    return make_document(data.read(path)).to_markdown()


def write_page(path: Path, output: Path) -> None:
    """Replaces `output` when the page is complete."""
    if output.exists() and path.exists() and output.samefile(path):
        raise WrError(f"{output} is the file of results itself; name another file with -o")
    page = make_page(path)
    if output.exists() and not output.is_file():  # /dev/stdout, a pipe
        output.write_text(page, encoding="utf-8")
        return
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(page)
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(file.fileno(), 0o666 & ~mask)
        os.replace(temporary, output)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise WrError(f"{output} cannot be written: {error.strerror}") from error


def write_kept(path: Path, png: Path | None, published: Path | None, rows: Path | None) -> None:
    results = data.read(path)
    if not results.rounds:
        raise WrError(f"{path} holds no rounds")
    document = make_document(results)
    try:
        if png:
            click.echo(f"wrote {publish.write_pictures(document, png)} charts into {png}")
        elif published:
            click.echo(f"wrote {publish.publish(path, results, document, published)}")
        elif rows:
            publish.write_rows(path, rows)
            click.echo(f"wrote {rows}")
    except ModuleNotFoundError as error:
        raise explain_missing(error) from error
    except OSError as error:
        raise WrError(f"{error.filename or png or published or rows} cannot be written: {error.strerror}") from error


@click.command("report", short_help="Make a page or Markdown from a file of results.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PAGE",
              help="The page to write. Default: FILE with the suffix .html.")
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown instead.")
@click.option("--png", type=click.Path(path_type=Path), metavar="FOLDER", help="Write the charts as PNG instead.")
@click.option("--publish", "published", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Write tables and compressed rows into a folder of the day below this one.")
@click.option("--rows", type=click.Path(path_type=Path), metavar="ROWS",
              help="Write the rows that the tables need, compressed, into a file of this name, which ends in .xz.")
def command(file: Path, output: Path | None, markdown: bool, png: Path | None, published: Path | None,
            rows: Path | None) -> None:
    """Makes a page of FILE, a file of results that wr has written.

    The page is one file. It holds charts and tables of the CPU per answer, of curves over concurrency, of latencies and
    of memory over time, what is needed to repeat the measurement, and all rounds with their marks. It fetches nothing
    and needs no script.

    \b
    wr report results.jsonl               writes results.html
    wr report results.jsonl -o page.html
    wr report results.jsonl --markdown    prints tables
    wr report results.jsonl --png charts  writes charts/*.png
    wr report results.jsonl --publish docs/contest/results
    wr report results.jsonl --rows docs/figures/readme.jsonl.xz
    """
    if sum(map(bool, (markdown, output, png, published, rows))) > 1:
        raise click.UsageError("--markdown, --png, --publish, --rows and -o exclude each other")
    if png or published or rows:
        write_kept(file, png, published, rows)
        return
    if markdown:
        click.echo(make_markdown(file), nl=False)
        return
    for path, verb in (file, "read"), (output, "written"):
        if path and path.is_dir():
            raise WrError(f"{path} cannot be {verb}: Is a directory")
    output = output or file.with_suffix(".html")
    write_page(file, output)
    click.echo(f"wrote {output}")
