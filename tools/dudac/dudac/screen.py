# SPDX-License-Identifier: Apache-2.0
"""What is printed: steps and URLs on standard output, errors on standard error; colours on a terminal only."""

import contextlib
import os
import re
import sys
import threading

import click

from . import clean
from .interrupts import interruptible

LEVELS = {"warn": "yellow", "error": "red"}
LINE = re.compile(r"^\S+Z (\w+) +(.*)$")
# Lines of the server that tell nothing to the author of a service.
NOISE = re.compile(r"listening on |serves with |configuration (?:before|is in use)|runs as root|signal \d+: stopping|"
                   r"tls: made a self-signed|maintenance: .*/failed: |the new configuration is in use|"
                   r"service \S+: its URLs begin with ")


def wants_colors() -> bool:
    """On a terminal. An empty NO_COLOR counts as none (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def prepare_streams() -> None:
    """Those that the shell has closed go to /dev/null, and characters that the locale has not are escaped."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            device = os.open(os.devnull, os.O_RDWR)
            if device == number:
                os.set_inheritable(number, True)
            else:
                os.dup2(device, number)
                os.close(device)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """What could not be written is not tried again when Python ends, which would say so and exit with 120."""
    with contextlib.suppress(OSError, ValueError):
        device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(device, sys.stdout.fileno())
        os.close(device)


def is_noise(line: str) -> bool:
    match = LINE.match(line)
    return bool(NOISE.search(line) or match and match[1] == "debug")


class Screen:
    """Lines come from several threads."""

    def __init__(self, verbose: bool = False, quiet: bool = False):
        self.verbose, self.quiet, self.lock = verbose, quiet, threading.Lock()
        self.colored = sys.stderr.isatty() and wants_colors()

    def write(self, text: str, err: bool = False, **style) -> None:
        """Standard error may be closed: that is no reason to end."""
        with interruptible(), self.lock, contextlib.suppress(OSError) if err else contextlib.nullcontext():
            click.secho(text, err=err, color=None if wants_colors() else False, **style)

    def step(self, verb: str, what: str) -> None:
        if not self.quiet:
            self.write(f"{verb:<8} {clean(what)}", fg="cyan")

    def say(self, text: str, **style) -> None:
        self.write(clean(text), **style)

    def detail(self, text: str) -> None:
        if self.verbose:
            self.write(clean(text), dim=True)

    def output(self, text: str) -> None:
        """What a compiler has printed, with its colours."""
        if text:
            self.write(text.rstrip("\n"), err=True)

    def error(self, text: str) -> None:
        self.write(f"dudac: {clean(text)}", err=True, fg="red")

    def notice(self, text: str) -> None:
        self.write(f"dudac: {clean(text)}", err=True)

    def log(self, line: str) -> None:
        """A line of the server's log."""
        match = LINE.match(line)
        if not self.verbose and is_noise(line):
            return
        self.write(clean(line), err=True, fg=LEVELS.get(match[1]) if match else None)
