# SPDX-License-Identifier: Apache-2.0
"""`wr scale`: how what a request costs, memory and the start grow with the number of rules, hosts and the like."""

import contextlib
import ipaddress
import os
import statistics
import subprocess
import time
from typing import NamedTuple

import click

from . import WrError, clean, data
from .data import DATA, Key, Problem
from .compare import open_environment
from .generators import Load, WrLoad
from .proc import ProcessTree
from .servers import Server, parse_choice
from .spawn import Program

TABLE = DATA / "scale.toml"
FILES = Key(dict, default=dict, of=str)
SCHEMA = {
    "row": Key(
        list,
        required=True,
        of={
            "name": Key(str, required=True, example='"redirects"'),
            "text": Key(str, required=True, example='"[REDIRECT]"'),
            "host": Key(str, default="localhost", example='"h@last@.test"'),
            "once": FILES,
            "each": Key(dict, required=True, of=str, example='{"sites/default" = "..."}'),
        },
    )
}
FIRST_ADDRESS = int(ipaddress.ip_address("10.0.0.0"))
COUNTS_MAX = 1 << 20
PATH, CLIENTS, SETTLE_SECONDS, END_SECONDS = "13.txt", 16, 0.3, 60


class Point(NamedTuple):
    """A row at one count: medians, but for memory."""

    n: int
    cost_us: float
    dirty_kb: int
    check_ms: float
    start_ms: float


def read_rows(path=TABLE):
    _, values = data.read(path, SCHEMA)
    return values["row"]


def choose_rows(names):
    rows = {row["name"]: row for row in read_rows()}
    for name in names:
        if name not in rows:
            raise click.UsageError(f"there is no row {name}: {data.suggest(name, rows)}")
    return [rows[name] for name in names or rows]


def fill(text, number, count):
    return (
        text.replace("@n@", str(number))
        .replace("@last@", str(count - 1))
        .replace("@address@", str(ipaddress.ip_address(FIRST_ADDRESS + number)))
    )


def make_texts(row, count, texts):
    """The files of the configuration with what the row says; `texts` are those without."""
    found = dict(texts)
    for name, text in row["once"].items():
        found[name] = found.get(name, "") + text
    for name, text in row["each"].items():
        if "@n@" in name:
            found.update((fill(name, n, count), fill(text, n, count)) for n in range(count))
        else:
            found[name] = found.get(name, "") + "".join(fill(text, n, count) for n in range(count))
    return found


def measure_check(server):
    """Milliseconds of `monkey -t`. Raises a Problem where the configuration is refused."""
    begin = time.perf_counter()
    done = subprocess.run([*server.command, "-t"], capture_output=True, text=True, timeout=END_SECONDS)
    if done.returncode:
        raise Problem(f"{server.name} refuses the configuration: {done.stderr.strip().splitlines()[-1:]}")
    return 1000 * (time.perf_counter() - begin)


def measure_start(server):
    """Milliseconds until it accepts connections."""
    begin = time.perf_counter()
    server.restart()
    return 1000 * (time.perf_counter() - begin)


def measure_cost(server, host, seconds, folder):
    """CPU time of a request, in us."""
    generator, tree = WrLoad(), ProcessTree(server.pid)
    load = Load(f"http://127.0.0.1:{server.port}/{PATH}", CLIENTS, seconds=seconds, headers=(f"Host: {host}",))
    before = tree.read(complete=True)
    with Program(generator.command(load, folder), folder) as program:
        if not program.wait(seconds + END_SECONDS):
            raise Problem(server.tell("does not answer the generator"))
        answers = generator.read(load, program.stdout, program.stderr, folder)
    used = tree.read(complete=True).counters.minus(before.counters)
    if answers.failed or not answers.count:
        raise Problem(server.tell(f"has answered with errors: {answers.errors}"))
    return used.cpu_ns / 1000 / answers.count


def start_server(choice, row, count, environment):
    folder = os.path.join(environment.folder, row["name"], str(count))
    server = Server(choice, folder, environment.root, environment.server_cpu, environment.built)
    server.texts = make_texts(row, count, server.texts)
    server.start()
    return server


def measure_row(choice, row, counts, environment, rounds, seconds):
    """The points of a row. Servers of all counts run at the same time, and are measured in turns."""
    with contextlib.ExitStack() as stack:
        servers = {}
        for count in counts:
            servers[count] = start_server(choice, row, count, environment)
            stack.callback(servers[count].stop)
        checks = {n: [measure_check(server) for _ in range(rounds)] for n, server in servers.items()}
        starts = {n: [measure_start(server) for _ in range(rounds)] for n, server in servers.items()}
        time.sleep(SETTLE_SECONDS)
        memory = {n: ProcessTree(server.pid).read(complete=True).memory for n, server in servers.items()}
        costs = {n: [] for n in counts}
        for _ in range(rounds):
            for n, server in servers.items():
                costs[n].append(measure_cost(server, fill(row["host"], 0, n), seconds, server.folder))
        median = statistics.median
        return [Point(n, median(costs[n]), memory[n].dirty_kb, median(checks[n]), median(starts[n])) for n in counts]


def format_rows(found, counts):
    """A Markdown table: [(row, points)]; bytes and times are those of the highest count."""
    yield f"| CPU us of a request | {' | '.join(f'{n:,}' for n in counts)} | bytes each | `-t`, ms | start, ms |"
    yield "|---|" + "--:|" * (len(counts) + 3)
    for row, points in found:
        first, last = points[0], points[-1]
        added = last.n - first.n
        each = f"{(last.dirty_kb - first.dirty_kb) * 1024 // added:,}" if added else ""
        costs = " | ".join(f"{point.cost_us:.1f}" for point in points)
        yield f"| {row['text']} | {costs} | {each} | {last.check_ms:,.0f} | {last.start_ms:,.0f} |"


def parse_counts(context, parameter, text):
    """Of the option -n: ascending numbers."""
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of numbers such as 1,100,10000") from None
    if counts != sorted(set(counts)) or counts[0] < 1 or counts[-1] > COUNTS_MAX:
        raise click.BadParameter(f"numbers from 1 to {COUNTS_MAX}, each higher than the one before")
    return counts


@click.command("scale")
@click.argument("names", metavar="[ROW]...", nargs=-1)
@click.option("-s", "--server", default="monkey", show_default=True, metavar="NAME[=PROGRAM]",
              help="A build of monkey.")  # fmt: skip
@click.option("-n", "--counts", default="1,100,1000,10000", show_default=True, callback=parse_counts,
              help="How many of each.")  # fmt: skip
@click.option("-r", "--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Rounds of each.")
@click.option("-d", "--duration", "seconds", type=click.FloatRange(min=0, min_open=True), default=1.0,
              show_default=True, help="Seconds of a round.")  # fmt: skip
@click.option("--share-cpu", is_flag=True, help="Server and generator on one CPU, where there is no other.")
def command(names, server, counts, rounds, seconds, share_cpu) -> None:
    """Print how CPU time, memory and start grow with the number of rules and hosts.

    ROW: redirects, rules, hosts ...; all that wr has. A request is one for a small file that no rule is for."""
    rows, choice, found, problems = choose_rows(names), parse_choice(server), [], []
    if choice.kind.name != "monkey":
        raise click.UsageError("wr scale writes configurations of monkey: -s monkey, or -s NAME=PROGRAM of a build")
    with open_environment({}, share_cpu, [choice], lambda text: click.echo(clean(text), err=True)) as environment:
        for row in rows:
            click.echo(f"{row['name']} ...", err=True)
            try:
                found.append((row, measure_row(choice, row, counts, environment, rounds, seconds)))
            except (WrError, OSError, subprocess.SubprocessError) as problem:
                problems.append(f"{row['name']} cannot be measured: {problem}")
    for line in format_rows(found, counts):
        click.echo(line)
    for problem in problems:
        click.echo(f"wr: {clean(problem)}", err=True)
    if problems:
        raise SystemExit(1)
