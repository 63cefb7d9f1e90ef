# SPDX-License-Identifier: Apache-2.0
"""The commands and their options. A command checks its input, calls a module, and prints.

Exit statuses: 0; 1 for an error, which is a sentence; 2 for wrong options; 130 after Ctrl-C; 143 after SIGTERM."""

import contextlib
import functools
import os
import pathlib
import shlex
import sys
from typing import Callable, Optional

import click

from . import VERSION, DudacError
from .compiler import build_services
from .config import Options
from .folder import read_folder
from .installation import find_installation
from .interrupts import end_handling, install_handlers
from .new import list_templates
from .sanitize import parse_kinds
from .screen import Screen, drop_output, prepare_streams
from .session import Session

PORT = 2001


class OldSpelling(click.Group):
    """`dudac -w DIR ...`, the spelling of the original, means `dudac serve -w DIR ...`."""

    own_options = "--help", "-h", "--version"

    def parse_args(self, ctx: click.Context, args: list) -> list:
        if args and args[0].startswith("-") and args[0] not in self.own_options:
            args = ["serve", *args]
        return super().parse_args(ctx, args)


def reports_errors(command: Callable) -> Callable:
    """Prints an error as a sentence."""

    @functools.wraps(command)
    def run(*args, **options):
        try:
            return command(*args, **options)
        except DudacError as error:
            Screen().error(str(error))
            sys.exit(1)
        except BrokenPipeError:  # click ends quietly
            raise
        except OSError as error:  # of a full disk, or a folder that may not be written
            drop_output()
            Screen().error(describe_error(error))
            sys.exit(1)

    return run


def describe_error(error: OSError) -> str:
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the current folder has been deleted"
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}"


@click.group(cls=OldSpelling, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="dudac %(version)s")
def group() -> None:
    """Make, build, run and test web services of Duda.

    The original spelling works, too: dudac -w DIR [-p PORT] [-S]."""


folder_argument = click.argument("folder", metavar="[DIR]", default=".")
build_option = click.option("-B", "--build-dir", metavar="DIR", help="What is made; DIR/build.")
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show commands, and the server's whole log.")


def take_sanitizers(_, __, text: str) -> tuple:
    try:
        return parse_kinds(text)
    except DudacError as error:
        raise click.BadParameter(str(error)) from None


def sanitize_option(default: str):
    return click.option("--sanitize", metavar="LIST", default=default, show_default=True, callback=take_sanitizers,
                        help="Compile with sanitizers: address, undefined, thread; with commas; or none.")


@group.command()
@click.argument("name")
@click.option("-t", "--template", type=click.Choice(list_templates()), default="hello", show_default=True)
@reports_errors
def new(name: str, template: str) -> None:
    """Make the folder of a new service."""
    from .new import make_service

    folder = make_service(name, template)
    Screen().say(f"made {folder}; next: dudac run --watch {shlex.quote(name)}")


@group.command()
@folder_argument
@sanitize_option("none")
@build_option
@verbose_option
@reports_errors
def build(folder: str, sanitize: tuple, build_dir: Optional[str], verbose: bool) -> None:
    """Compile a service; what has not changed is kept."""
    screen = Screen(verbose)
    services = read_folder(folder, build_dir, sanitize)
    result = build_services(services, find_installation(sys.argv[0]), screen)
    for service in services:
        state = f"built in {result.seconds:.2f} s" if result.linked else "nothing to do"
        screen.say(f"{os.path.relpath(service.file)}: {state}", fg="green")


def serve_folder(folder: str, build_dir, options: Options, watch: bool, screen: Screen) -> None:
    """Serves until a signal, or until the server has ended."""
    with contextlib.closing(open_session(folder, build_dir, options, screen)) as session:
        if watch:
            serve_changes(session)
        else:
            session.build()
            session.start()
            session.say_urls()
            session.wait_end()


def serve_changes(session: Session) -> None:
    from .folder import find_build_folder, open_folder
    from .watch import Watcher

    folder = open_folder(session.folder)
    watcher = Watcher(folder, find_build_folder(folder, session.build_folder), session.events)
    with contextlib.closing(watcher):
        session.start_watched()
        session.watch(watcher)


@group.command()
@folder_argument
@click.option("-p", "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: a free one.")
@click.option("-w", "--watch", is_flag=True, help="Build again and swap the service when a file changes.")
@click.option("-l", "--listen", "address", default="127.0.0.1", show_default=True, help="Address; 0.0.0.0 is all.")
@click.option("--name", "names", multiple=True, metavar="NAME",
              help="A name that clients may ask for, besides addresses and localhost.")
@click.option("--workers", type=click.IntRange(0, 1024), default=2, show_default=True, help="0: one for each CPU.")
@click.option("--https", is_flag=True, help="With a certificate that no client trusts.")
@click.option("--console", metavar="PATH", default="/console/", show_default=True,
              help="Path of the console below the service; Off: none.")
@sanitize_option("none")
@build_option
@verbose_option
@reports_errors
def run(folder: str, port: int, watch: bool, address: str, names: tuple, workers: int, https: bool, console: str,
        sanitize: tuple, build_dir: Optional[str], verbose: bool) -> None:
    """Build a service and serve it."""
    if not console.startswith("/") and console.lower() != "off":
        raise click.BadParameter("it is a path below the URL of the service, such as /console/, or Off",
                                 param_hint="--console")
    options = Options(port, address, workers, https, names=names, console=console, sanitize=sanitize)
    serve_folder(folder, build_dir, options, watch, Screen(verbose))


# Keys of -M: the field of Options, and the highest number; None: it is no number.
SERVER_KEYS = {"port": ("port", 65535), "listen": ("address", None), "workers": ("workers", 1024)}


def read_server_key(pair: str) -> tuple:
    key, equals, value = pair.partition("=")
    key = key.strip()
    if not equals:
        raise click.BadParameter(f"{pair.strip()!r} is no KEY=VALUE")
    field, most = SERVER_KEYS.get(key.lower(), (None, None))
    if not field:
        raise click.BadParameter(f"{key} cannot be set here; Port, Listen and Workers can")
    if most and not (value.isascii() and value.isdigit() and len(value) < 6 and int(value) <= most):
        raise click.BadParameter(f"{key} is a number from 0 to {most}")
    return field, int(value) if most else value


def take_server_keys(_, __, text: str) -> dict:
    """Reads -M 'Port=10000,Workers=5' as fields of Options."""
    return dict(read_server_key(pair) for pair in text.split(",") if pair.strip())


@group.command(hidden=True)
@click.option("-w", "folder", metavar="DIR", help="The folder of the service.")
@click.option("-p", "port", type=click.IntRange(0, 65535), default=PORT, show_default=True)
@click.option("-S", "https", is_flag=True, help="HTTPS, with a certificate that no client trusts.")
@click.option("-u", "prints", is_flag=True, help="Show what the service prints.")
@click.option("-M", "keys", default="", metavar="KEY=VALUE,...", callback=take_server_keys, help="Keys of the server.")
@click.option("-s", "-g", "-r", "-F", "-A", "-J", "-X", "fetches", is_flag=True, help="Of the original; no effect.")
@click.option("-f", "-T", is_flag=True, expose_value=False, help="Of the original; no effect.")
@click.option("-V", expose_value=False, help="The level of the API, which is found.")
@build_option
@reports_errors
def serve(folder: Optional[str], port: int, https: bool, prints: bool, keys: dict, fetches: bool,
          build_dir: Optional[str]) -> None:
    """The original spelling: dudac -w DIR [-p PORT] [-S] [-M KEYS]."""
    screen = Screen()
    if fetches:
        screen.notice("the server and the framework are here already; nothing is fetched")
    if folder is None and fetches:
        return
    if folder is None:
        raise click.UsageError("-w DIR is missing; dudac --help lists the commands")
    options = Options(**{"port": port, **keys}, https=https, prints=prints)
    serve_folder(folder, build_dir, options, False, screen)


def open_session(folder: str, build_dir, options: Options, screen: Screen) -> Session:
    return Session(pathlib.Path(folder), build_dir, find_installation(sys.argv[0]), options, screen)


@group.command()
@folder_argument
@sanitize_option("address,undefined")
@click.option("--keep", is_flag=True, help="Keep the data of a test that fails.")
@build_option
@verbose_option
@reports_errors
def test(folder: str, sanitize: tuple, keep: bool, build_dir: Optional[str], verbose: bool) -> None:
    """Start a service on a free port and run its checks: checks.toml, test_*.py."""
    from .checks import find_tests, run_checks, run_pytest
    from .folder import open_folder
    from .monitor import Monitor

    screen = Screen(verbose)
    top = open_folder(pathlib.Path(folder))
    checks, files = find_tests(top)
    options = Options(0, sanitize=sanitize, holds_reports=True, finds_leaks="address" in sanitize, cuts_responses=True)
    with contextlib.closing(open_session(folder, build_dir, options, screen)) as session:
        session.build()
        session.use_own_data()
        try:
            lines = session.start()
            monitor = Monitor(session.events, session.server)
            monitor.note_lines(lines)
            others = monitor.take_mistakes()
            failed = run_checks(session, checks, monitor, screen) if checks else 0
            runs_pytest = files and not monitor.has_ended
            passed = run_pytest(session.urls()[0].rstrip("/"), top, files) if runs_pytest else True
            session.end()
            monitor.note_rest()
            if others := [*others, *monitor.take_mistakes()]:
                raise DudacError("\n    ".join(["calls of the API outside of checks were wrong:", *others]))
            if failed or not passed:
                sys.exit(1)
        except (DudacError, SystemExit):
            if keep:
                session.keep_data()
            raise


@group.command()
@folder_argument
@build_option
@verbose_option
@reports_errors
def routes(folder: str, build_dir: Optional[str], verbose: bool) -> None:
    """Start a service on a free port and list its routes: methods, URL, function."""
    from .routes import format_rows, list_rows, read_routes

    screen = Screen(verbose, quiet=not verbose)
    options = Options(0, workers=1, log_level="debug")
    with contextlib.closing(open_session(folder, build_dir, options, screen)) as session:
        session.build()
        found = read_routes(session, session.start())
        rows = list_rows(session.services, found)
    for line in format_rows(rows) if rows else ["no routes"]:
        screen.say(line)


def main() -> None:
    install_handlers()
    prepare_streams()
    try:
        group(prog_name="dudac")
    finally:
        end_handling()
