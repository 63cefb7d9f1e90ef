# SPDX-License-Identifier: Apache-2.0
"""Lists the routes of a running service, `dudac routes`. The framework logs them at the level debug
(duda/core/route/router.c); addr2line knows the names of the functions, which may be static."""

import os
import queue
import re
import shutil
from typing import NamedTuple

from . import DudacError
from .folder import Service
from .programs import Program, run_program
from .session import Session

ROUTE = re.compile(r"\bservice (\S+): route ([A-Z, ]+) (/.*|) at 0x([0-9a-f]+)$")
COUNT = re.compile(r"\bservice (\S+): (\d+) routes$")
SECONDS = 20


class Route(NamedTuple):
    service: str
    methods: str
    pattern: str
    address: str


def read_routes(session: Session, lines: list) -> list:
    """Returns the routes of all services; `lines` are those of the start, and further ones may follow."""
    routes, awaited = [], {service.logged_name for service in session.services}
    while True:
        for line in lines:
            if match := ROUTE.search(line):
                routes.append(Route(match[1], match[2], unescape(match[3]), match[4]))
            elif match := COUNT.search(line):
                awaited.discard(match[1])
        if not awaited:
            return routes
        lines = [next_line(session, awaited)]


def unescape(text: str) -> str:
    """Bytes that the log has written as \\xNN."""
    raw = re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), text.encode())
    return raw.decode("utf-8", "replace")


def next_line(session: Session, awaited: set) -> str:
    try:
        kind, value = session.events.get(SECONDS)
    except queue.Empty:
        raise DudacError(f"the server does not list the routes of {', '.join(sorted(awaited))}") from None
    if kind == "ended":
        raise session.server.describe_end(value)
    return value if kind == "line" else ""


def read_outermost(text: str) -> list:
    """(function, place) of each address in the output of `addr2line -afi`: the last pair of each, since the first ones
    are those of calls that were inlined at the address."""
    groups = [group.splitlines() for group in re.split(r"^0x[0-9a-f]+\n", text, flags=re.MULTILINE)[1:]]
    return [(group[-2], group[-1]) for group in groups if len(group) > 1]


def name_functions(service: Service, routes: list) -> list:
    """Returns (function, place) of each route."""
    if not routes or not shutil.which("addr2line"):
        return [(f"0x{route.address}", "") for route in routes]
    command = ["addr2line", "-afi", "-e", str(service.file), *(route.address for route in routes)]
    rows = read_outermost(run_program(Program(command, service.build, SECONDS)).text("surrogateescape"))
    if len(rows) != len(routes):
        return [(f"0x{route.address}", "") for route in routes]
    return [(name, shorten_place(service, place)) for name, place in rows]


def shorten_place(service: Service, place: str) -> str:
    """FILE:LINE, with the file as seen from the service's folder; nothing for an unknown one."""
    path, _, line = re.sub(r" \(discriminator \d+\)$", "", place).rpartition(":")
    return "" if "?" in (path[:1], line[:1]) else f"{os.path.relpath(path, service.folder)}:{line}"


def list_rows(services: list, routes: list) -> list:
    """Returns rows of texts: methods, URL, function, place."""
    rows = []
    for service in services:
        own = [route for route in routes if route.service == service.logged_name]
        for route, (name, place) in zip(own, name_functions(service, own)):
            rows.append((route.methods, service.path.rstrip("/") + route.pattern, name, place))
    return rows


def format_rows(rows: list) -> list:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
