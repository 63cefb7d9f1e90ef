# SPDX-License-Identifier: Apache-2.0
"""Reads checks.toml. A check is one request, or has steps, which are requests or lists of requests sent at once:

[[check]]  [[check.step]]  at_once = [{get = "/"}, ...] of a step, which can be written as [[check.step.at_once]]
"""

import difflib
import json
import pathlib
import re
from dataclasses import dataclass, field
from typing import NoReturn, Optional

from . import DudacError, read_text
from .expect import EXPECTATIONS, check_pattern, list_patterns
from .folder import SETTINGS_BYTES_MAX, read_toml
from .keep import fill_row, list_names, list_references, without_expression

AT_ONCE_MAX = 100
METHODS = ("get", "head", "post", "put", "delete", "options", "patch")
# key: its type, how that is said, and an example
REQUEST_KEYS = {
    **{method: (str, "a path", f'{method} = "/"') for method in METHODS},
    "send": (str, "a text", 'send = "a text"'),
    "send_json": (object, "", ""),
    "send_headers": (dict, "a table", 'send_headers = {Accept = "text/html"}'),
    "times": (int, "a number", "times = 10"),
    "status": (int, "a number", "status = 200"),
    "headers": (dict, "a table", 'headers = {Content-Type = "text/html"}'),
    "body": (str, "a text", 'body = "a text"'),
    "contains": (str, "a text", 'contains = "a text"'),
    "matches": (str, "a text", 'matches = "^[0-9]+$"'),
    "json": (object, "", ""),
    "json_has": (object, "", ""),
}
AT_ONCE = {"at_once": (list, "a list of requests", 'at_once = [{get = "/"}, {get = "/other"}]')}
NAME = {"name": (str, "a text", 'name = "greets"')}
STEPS = {"step": (list, "a list of tables", '[[check.step]] on a line, and get = "/" on the next')}
CHECK_KEYS = {**NAME, **REQUEST_KEYS, **STEPS}
STEP_KEYS = {**REQUEST_KEYS, **AT_ONCE}
NO_CHECKS = "it must have sections [[check]], and nothing else"

TEXT = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*', re.S)
HEADER = re.compile(r"[ \t]*(\[\[?)[ \t]*([\w.-]+)[ \t]*\]")
ASSIGNMENT = re.compile(r"[ \t]*([\w-]+)[ \t]*=")


@dataclass
class Request:
    method: str
    path: str
    row: dict  # as the file has it
    place: "Place"
    send: Optional[bytes] = None
    send_headers: dict = field(default_factory=dict)
    expected: dict = field(default_factory=dict)  # see EXPECTATIONS
    times: int = 1

    def fill(self, kept: dict) -> "Request":
        """The request with values of earlier responses."""
        return make_request(fill_row(self.row, kept), self.place)


@dataclass
class Check:
    name: str
    steps: list  # of lists of requests, which are sent at once


# ── places, for messages ──


def find_lines(text: str) -> dict:
    """The line of each table and of each key, by the path to it: ("check", 0, "step", 1, "get")."""
    found, counts, table = {}, {}, ()
    blank = TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for number, line in enumerate(blank.split("\n"), 1):
        if match := HEADER.match(line):
            table = ()
            names = match[2].split(".")
            for depth, name in enumerate(names, 1):
                table = (*table, name)
                if depth == len(names) and match[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table]) if table in counts else table
            found.setdefault(table, number)
        elif match := ASSIGNMENT.match(line):
            found.setdefault((*table, match[1]), number)
    return found


class Place:
    """A table of the file."""

    def __init__(self, file: pathlib.Path, lines: dict, path: tuple = ()):
        self.file, self.lines, self.path = file, lines, path

    def below(self, *path) -> "Place":
        return Place(self.file, self.lines, (*self.path, *path))

    @property
    def line(self) -> int:
        """That of the nearest table or key that has one."""
        paths = (self.path[:length] for length in range(len(self.path), 0, -1))
        return next((self.lines[path] for path in paths if path in self.lines), 1)

    def fail(self, sentence: str) -> NoReturn:
        raise DudacError(f"{self.file}:{self.line}: {sentence}")


# ── the file ──


def read_checks(path: pathlib.Path) -> list:
    tables = read_toml(path)
    place = Place(path, find_lines(read_text(path, SETTINGS_BYTES_MAX)))
    for key in tables:
        if key != "check":
            place.below(key).fail(NO_CHECKS)
    rows = tables.get("check", [])
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        place.below("check").fail(NO_CHECKS)
    return [make_check(row, place.below("check", number)) for number, row in enumerate(rows)]


def check_keys(row, keys: dict, place: Place) -> None:
    if not isinstance(row, dict):
        place.fail('it must be a request, as in {get = "/"}')
    for key, value in row.items():
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1)
            instead = f'did you mean "{near[0]}"?' if near else f'it can have {", ".join(keys)}'
            place.below(key).fail(f'there is no "{key}"; {instead}')
        kind, noun, example = keys[key]
        if not isinstance(value, kind) or isinstance(value, bool) and kind is int:
            place.below(key).fail(f"{key} must be {noun}, as in {example}")


def make_check(row: dict, place: Place) -> Check:
    check_keys(row, CHECK_KEYS, place)
    rest = {key: value for key, value in row.items() if key != "name"}
    if "step" not in row:
        request = make_request(rest, place)
        check_references([[request]])
        return Check(row.get("name", f"{request.method} {request.path}"), [[request] * request.times])
    if others := [key for key in rest if key != "step"]:
        place.below(others[0]).fail(f"{others[0]} must be below a [[check.step]], since the check has steps")
    if not row["step"] or "name" not in row:
        place.fail('a check with steps must have a name and a step: name = "logs in"')
    steps = [make_step(step, place.below("step", number)) for number, step in enumerate(row["step"])]
    check_references(steps)
    return Check(row["name"], steps)


def check_references(steps: list) -> None:
    kept = set()
    for requests in steps:
        for request in requests:
            for key, value in without_expression(request.row).items():
                if missing := next((name for name in list_references(value) if name not in kept), None):
                    request.place.below(key).fail(f'no step before keeps "{missing}", as {{keep = "{missing}"}} in '
                                                  f"json_has or (?P<{missing}>...) in matches does; $${{{missing}}} is "
                                                  f"the text ${{{missing}}}")
        kept |= {name for request in requests for name in list_names(request.row)}


def make_step(row: dict, place: Place) -> list:
    """Returns the requests that are sent at once."""
    check_keys(row, STEP_KEYS, place)
    if "at_once" in row and (others := [key for key in row if key != "at_once"]):
        place.below(others[0]).fail(f"{others[0]} must be in one of the requests of at_once")
    if "at_once" in row and not row["at_once"]:
        place.below("at_once").fail(f"at_once must have requests, as in {AT_ONCE['at_once'][2]}")
    rows = row.get("at_once", [row])
    places = [place.below("at_once", number) for number in range(len(rows))] if "at_once" in row else [place]
    for each, where in zip(rows, places):
        check_keys(each, REQUEST_KEYS, where)
    requests = [make_request(each, where) for each, where in zip(rows, places)]
    if sum(request.times for request in requests) > AT_ONCE_MAX:
        place.fail(f"it can send {AT_ONCE_MAX} requests at once at most")
    return [request for request in requests for _ in range(request.times)]


def make_request(row: dict, place: Place) -> Request:
    methods = [key for key in row if key in METHODS]
    if len(methods) != 1 or not row[methods[0]].startswith("/"):
        place.fail('it must have one request, such as get = "/", whose path begins with a slash')
    if not 1 <= row.get("times", 1) <= AT_ONCE_MAX:
        place.below("times").fail(f"times must be 1 to {AT_ONCE_MAX}")
    return Request(
        method=methods[0].upper(),
        path=row[methods[0]],
        row=row,
        place=place,
        send=encode_body(row, place),
        send_headers=make_headers(row, place),
        expected=make_expected(row, place),
        times=row.get("times", 1),
    )


def encode_body(row: dict, place: Place) -> Optional[bytes]:
    if "send" in row and "send_json" in row:
        place.below("send").fail("it can have send or send_json, not both")
    if "send_json" in row:
        return dump_json(row, "send_json", place).encode()
    return row["send"].encode() if "send" in row else None


def dump_json(row: dict, key: str, place: Place) -> str:
    try:
        return json.dumps(row.get(key))
    except TypeError as error:
        place.below(key).fail(f"{key}: {error}")


def make_headers(row: dict, place: Place) -> dict:
    headers = dict(row.get("send_headers", {}))
    if not all(isinstance(value, str) for value in headers.values()):
        place.below("send_headers").fail('the values of send_headers must be texts, as in {X-Limit = "1"}')
    if "send_json" in row and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = "application/json"
    return headers


def make_expected(row: dict, place: Place) -> dict:
    for key in ("json", "json_has"):
        dump_json(row, key, place)
    for value in row.get("headers", {}).values():
        if not isinstance(value, str) and len(list(list_patterns(value))) != 1:
            place.below("headers").fail("the values of headers must be texts or patterns, as in "
                                        'headers = {ETag = {any = "value"}}')
    if error := check_pattern("matches", row.get("matches", "")):
        place.below("matches").fail(error)
    for key in ("headers", "json_has"):
        for pattern, argument in list_patterns(row.get(key)):
            if error := check_pattern(pattern, argument):
                place.below(key).fail(f"{key}: {error}")
    return {key: row[key] for key in EXPECTATIONS if key in row} or {"status": 200}
