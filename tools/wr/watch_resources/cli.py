# SPDX-License-Identifier: Apache-2.0
"""The commands and their options. A command checks its input, calls a module, and prints; it does no work itself.

Exit statuses: 0; 1 when something could not be measured; 2 for wrong options; 130 after Ctrl-C; 143 after SIGTERM."""

import contextlib
import functools
import importlib
import os
import signal
import sys
import time
from typing import Callable, Optional

import click

from . import VERSION, WrError, clean

DEFAULT_SECONDS = 10.0
INTERRUPTED = 130


# Commands of other modules, which are imported when a command is used: NAME: (module, attribute).
ELSEWHERE = {
    "run": (".commands", "run"), "compare": (".commands", "compare"), "check": (".commands", "check"),
    "counts": (".commands", "count"), "report": (".report", "command"), "agent": (".agent", "command"),
    "scale": (".scale", "command"),
}


class DefaultGroup(click.Group):
    """`wr -p PID ...` without a command means `wr rounds -p PID ...`."""

    default = "rounds"
    own_options = "--help", "-h", "--version"

    def list_commands(self, ctx: click.Context) -> list:
        return sorted({*super().list_commands(ctx), *ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> Optional[click.Command]:
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        if cmd_name not in self.commands:
            module, attribute = ELSEWHERE[cmd_name]
            command = getattr(importlib.import_module(module, __package__), attribute)
            command.callback = reports_errors(command.callback)
            self.add_command(command, cmd_name)
        return self.commands[cmd_name]

    def parse_args(self, ctx: click.Context, args: list) -> list:
        if args and args[0].startswith("-") and args[0] not in self.own_options:
            args = [self.default, *args]
        return super().parse_args(ctx, args)


def reports_errors(command: Callable) -> Callable:
    """Prints a WrError as a sentence, and ends with 130 after Ctrl-C."""

    @functools.wraps(command)
    def run(*args, **options):
        try:
            return command(*args, **options)
        except WrError as error:
            click.echo(f"wr: {clean(str(error))}", err=True)
            sys.exit(1)
        except MemoryError:
            click.echo("wr: memory is exhausted", err=True)
            sys.exit(1)
        except BrokenPipeError:  # click ends quietly
            raise
        except OSError as error:  # of a full disk, or a folder that may not be written
            place = f"{error.filename}: " if error.filename else ""
            click.echo(f"wr: {place}{error.strerror or error}", err=True)
            sys.exit(1)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    return run


@click.group(cls=DefaultGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="wr %(version)s")
def group() -> None:
    """Watch Resources: load servers in rounds and record what they cost.

    Without a command: rounds."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, terminate)


def terminate(number: int, _) -> None:
    """Ends with an exception, so that what was started is ended."""
    sys.exit(128 + number)


@group.command()
@click.option("-p", "--pid", type=click.IntRange(min=1), required=True, help="The server's first process.")
@click.option("-u", "--url", help="What is requested.")
@click.option("-c", "--clients", help="Connections: 64, or 1,2,4, or FROM:TO:STEP.")
@click.option("-n", "--requests", type=click.IntRange(min=1), help="Requests of a round.")
@click.option("-d", "--duration", type=click.FloatRange(min=0, min_open=True),
              help=f"Seconds of a round; {DEFAULT_SECONDS:g} without -n.")
@click.option("-k", "--keep-alive", is_flag=True, default=None, help="Use connections for many requests.")
@click.option("-g", "--generator", help="wr-load, wrk, h2load, ab, oha or weighttp; wr-load.")
@click.option("-t", "--threads", type=click.IntRange(min=1), help="Threads of the generator; 1.")
@click.option("--pipeline", type=click.IntRange(min=1), help="Requests in flight on a connection; 1.")
@click.option("-H", "--header", "headers", multiple=True, help="A header line, NAME: VALUE.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="The file of results; wr-TIME.jsonl.")
@click.option("--resume", type=click.Path(dir_okay=False), help="Continue after the last complete round of this file.")
@click.option("--remote-ok", is_flag=True, help="Permit a URL of another machine.")
@click.option("--others-max", type=click.FloatRange(min=0), default=0.05, show_default=True,
              help="CPUs that others may use in a round that counts.")
@click.option("--repeats", type=click.IntRange(min=0), default=2, show_default=True,
              help="How often a disturbed round is repeated.")
@click.option("--stall", type=click.FloatRange(min=0), default=10.0, show_default=True,
              help="Seconds without CPU time after which the server hangs; 0: never.")
@click.option("--round-max", type=click.FloatRange(min=0, min_open=True), default=600.0, show_default=True,
              help="Seconds after which a round of -n is given up.")
@click.option("--warm-up", type=click.FloatRange(min=0), default=0.0, help="Seconds of load before the first round.")
@click.option("--agent", metavar="USER@HOST", help="The machine that runs the generator, over ssh.")
@reports_errors
def rounds(pid: int, output: Optional[str], resume: Optional[str], remote_ok: bool, others_max: float, repeats: int,
           stall: float, round_max: float, warm_up: float, agent: Optional[str], **given) -> None:
    """Load a running server in rounds of growing concurrency."""
    from .agent import open_agent
    from .results import ResultsWriter
    from .rounds import Limits

    if output and resume:
        raise click.UsageError("--resume FILE writes into FILE: leave out -o")
    if given["requests"] and given["duration"]:
        raise click.UsageError("give either -n or -d")
    path = resume or output or time.strftime("wr-%Y%m%d-%H%M%S.jsonl")
    limits = Limits(others_max=others_max, stall_seconds=stall, round_seconds=round_max)
    prepared = prepare_series(pid, path, resume is not None, remote_ok or agent is not None, given)
    settings, target, generator = prepared
    with open_agent(agent, generator, settings.url) as (generator, machine):
        with ResultsWriter(path, resume is not None) as writer:
            run_series((settings, target, generator), writer, limits, repeats, warm_up, machine)


def prepare_series(pid: int, path: str, resumes: bool, remote_ok: bool, given: dict):
    """Checks everything that can be wrong before a file is made. Returns settings, target and generator."""
    from .generators import make_generator
    from .results import read_results
    from .rounds import make_target
    from .series import check_server, check_url, merge_settings, parse_clients, pids_of, settings_of, warn_listener

    results = read_results(path) if resumes else None
    recorded = settings_of(results) if results else None
    values = {
        "url": given["url"], "clients": parse_clients(given["clients"]) if given["clients"] else None,
        "requests": given["requests"], "seconds": given["duration"], "keep_alive": given["keep_alive"],
        "pipeline": given["pipeline"], "threads": given["threads"], "generator": given["generator"],
        "headers": given["headers"] or None,
    }
    if recorded is None:
        for name, option in (("url", "-u URL"), ("clients", "-c CLIENTS")):
            if values[name] is None:
                raise click.UsageError(f"{option} is missing")
        if values["requests"] is None and values["seconds"] is None:
            values["seconds"] = DEFAULT_SECONDS
    settings = merge_settings(values, recorded, path)
    check_url(settings.url, remote_ok)
    generator = make_generator(settings.generator)
    for clients in settings.clients:
        generator.refuse(settings.load(clients))
    target = make_target(pid, settings.url)
    if results:
        check_server(results, target)
    warning = warn_listener(target, pids_of(target))
    if warning:
        click.echo(f"wr: {warning}", err=True)
    return settings, target, generator


def measure_round(target, generator, load, limits, reporter):
    from .rounds import Measurement

    return Measurement(target, generator, load, limits, on_progress=reporter.progress).measure()


def run_series(prepared, writer, limits, repeats: int, warm_up: float, agent: dict) -> None:
    """Prints the summary in any case."""
    from .screen import Screen
    from .series import Series

    settings, target, generator = prepared
    screen = Screen()
    series = Series(settings, target, generator, writer, screen, measure_round, limits, repeats)
    try:
        if warm_up:
            warm(target, generator, settings, limits, screen, warm_up)
        series.open_session(sys.argv, agent)
        series.run()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a second Ctrl-C would lose the summary
            signal.signal(number, signal.SIG_IGN)
        screen.summary(series.rounds, writer.path)


def warm(target, generator, settings, limits, screen, seconds: float) -> None:
    """Runs a round that is not kept."""
    import dataclasses

    load = dataclasses.replace(settings.load(settings.clients[0]), requests=None, seconds=seconds)
    generator.refuse(load)
    measure_round(target, generator, load, limits, screen)


@group.command()
@click.argument("pid", type=click.IntRange(min=1))
@click.option("--port", type=click.IntRange(1, 65535), help="Whose accept queue is shown; the lowest of the process.")
@click.option("--interval", type=click.FloatRange(min=0.05), default=1.0, show_default=True, help="Seconds.")
@click.option("--count", type=click.IntRange(min=1), help="End after this many intervals.")
@reports_errors
def watch(pid: int, port: Optional[int], interval: float, count: Optional[int]) -> None:
    """Show what a process uses, without any load. q ends."""
    from .watch import Watcher
    from .watch import watch as run_watch

    run_watch(Watcher(pid, port, interval), count)


def main() -> None:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell, as in >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    try:
        group(prog_name="wr")
    finally:
        with contextlib.suppress(OSError):  # it was reported; Python would try again, and end with another status
            sys.stdout.close()
