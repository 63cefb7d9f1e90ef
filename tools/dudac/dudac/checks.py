# SPDX-License-Identifier: Apache-2.0
"""Checks of a service, `dudac test`: the requests and expectations of checks.toml, and test_*.py by pytest."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import Optional
from urllib.parse import quote, urlsplit

from . import DudacError
from .folder import read_toml
from .interrupts import hold_interrupts
from .programs import Program, run_program
from .screen import Screen

FILE = "checks.toml"
SECONDS = 30  # of one check
BODY_BYTES_MAX = 1 << 24
SHOWN_CHARS = 200  # of a body
END_SECONDS = 5  # of pytest, after it was interrupted
URL_CHARACTERS = "".join(map(chr, range(0x21, 0x7f)))
METHODS = ("get", "head", "post", "put", "delete", "options", "patch")
# key: its type, and how that is said
KEYS = {
    "name": (str, "a text"), "send": (str, "a text"), "send_json": (object, ""), "send_headers": (dict, "a table"),
    "status": (int, "a number"), "body": (str, "a text"), "contains": (str, "a text"), "matches": (str, "a text"),
    "json": (object, ""), "headers": (dict, "a table"), **dict.fromkeys(METHODS, (str, "a path")),
}


@dataclass
class Check:
    name: str
    method: str
    path: str
    send: Optional[bytes] = None
    send_headers: dict = field(default_factory=dict)
    expected: dict = field(default_factory=dict)  # status, body, contains, matches, json, headers


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


# ── the file ──


def read_checks(path: pathlib.Path) -> list:
    tables = read_toml(path)
    rows = tables.pop("check", [])
    if tables or not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise DudacError(f"{path}: it must have sections [[check]], and nothing else")
    return [make_check(row, f"{path}, check {number}") for number, row in enumerate(rows, 1)]


def make_check(row: dict, origin: str) -> Check:
    for key, value in row.items():
        if key not in KEYS:
            raise DudacError(f'{origin}: there is no "{key}"; it can have {", ".join(KEYS)}')
        kind, noun = KEYS[key]
        if not isinstance(value, kind) or isinstance(value, bool) and kind is int:
            raise DudacError(f"{origin}: {key} must be {noun}")
    methods = [key for key in row if key in METHODS]
    if len(methods) != 1 or not row[methods[0]].startswith("/"):
        raise DudacError(f'{origin}: it must have one request, such as get = "/", whose path begins with a slash')
    return Check(
        name=row.get("name", f"{methods[0].upper()} {row[methods[0]]}"),
        method=methods[0].upper(),
        path=row[methods[0]],
        send=encode_body(row, origin),
        send_headers=check_headers(row, "send_headers", origin),
        expected=make_expected(row, origin),
    )


def encode_body(row: dict, origin: str) -> Optional[bytes]:
    if "send" in row and "send_json" in row:
        raise DudacError(f"{origin}: it can have send or send_json, not both")
    if "send_json" in row:
        return dump_json(row, "send_json", origin).encode()
    return row["send"].encode() if "send" in row else None


def dump_json(row: dict, key: str, origin: str) -> str:
    try:
        return json.dumps(row.get(key))
    except TypeError as error:
        raise DudacError(f"{origin}: {key}: {error}") from None


def check_headers(row: dict, key: str, origin: str) -> dict:
    headers = dict(row.get(key, {}))
    if not all(isinstance(value, str) for value in headers.values()):
        raise DudacError(f"{origin}: the values of {key} must be texts")
    if key == "send_headers" and "send_json" in row:
        headers.setdefault("Content-Type", "application/json")
    return headers


def make_expected(row: dict, origin: str) -> dict:
    check_headers(row, "headers", origin)
    dump_json(row, "json", origin)
    try:
        re.compile(row.get("matches", ""))
    except re.error as error:
        raise DudacError(f"{origin}: matches: {error}") from None
    return {key: row[key] for key in EXPECTATIONS if key in row} or {"status": 200}


# ── expectations: each returns what is wrong, or nothing ──


def shorten(text: str) -> str:
    return shorten_text(repr(text[:SHOWN_CHARS + 1]), len(text))


def shorten_text(shown: str, length: int = 0) -> str:
    return shown if len(shown) <= SHOWN_CHARS else f"{shown[:SHOWN_CHARS]}... ({length or len(shown)} characters)"


def expect_status(answer: Answer, wanted: int):
    if answer.status != wanted:
        return f"the status is {answer.status} instead of {wanted}: {shorten(answer.text)}"


def expect_body(answer: Answer, wanted: str):
    if answer.text != wanted:
        return f"the body is {shorten(answer.text)} instead of {shorten(wanted)}"


def expect_contains(answer: Answer, wanted: str):
    if wanted not in answer.text:
        return f"the body {shorten(answer.text)} does not contain {shorten(wanted)}"


def expect_matches(answer: Answer, wanted: str):
    if not re.search(wanted, answer.text, re.M):
        return f"the body {shorten(answer.text)} does not match {wanted}"


def expect_json(answer: Answer, wanted):
    try:
        value = json.loads(answer.text)
    except (ValueError, RecursionError) as error:
        return f"the body {shorten(answer.text)} is no JSON: {error}"
    if value != wanted:
        return f"the body is {shorten_text(json.dumps(value))} instead of {shorten_text(json.dumps(wanted))}"


def expect_headers(answer: Answer, wanted: dict):
    for name, value in wanted.items():
        found = answer.headers.get_all(name, [])
        if value not in found:
            return f"{name} is {', '.join(map(repr, found)) or 'missing'} instead of {value!r}"


EXPECTATIONS = {"status": expect_status, "headers": expect_headers, "body": expect_body,
                "contains": expect_contains, "matches": expect_matches, "json": expect_json}


# ── running ──


class Limit:
    """Ends a connection after SECONDS; the timeout of a socket is that of one call only."""

    def __init__(self, connection: http.client.HTTPConnection):
        self.socket, self.is_over = connection.sock, False
        self.timer = threading.Timer(SECONDS, self.end)
        self.timer.daemon = True
        self.timer.start()

    def end(self) -> None:
        self.is_over = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


def open_connection(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return http.client.HTTPSConnection(parts.netloc, timeout=SECONDS, context=ssl._create_unverified_context())
    return http.client.HTTPConnection(parts.netloc, timeout=SECONDS)


def ask(url: str, check: Check) -> Answer:
    with contextlib.closing(open_connection(url)) as connection:
        connection.connect()
        limit = Limit(connection)
        try:
            path = urlsplit(url).path.rstrip("/") + quote(check.path, safe=URL_CHARACTERS)
            connection.request(check.method, path, check.send, check.send_headers)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read(BODY_BYTES_MAX + 1))
        except (OSError, http.client.HTTPException):
            if not limit.is_over:
                raise
        finally:
            limit.timer.cancel()
    if limit.is_over:
        raise TimeoutError(f"it has not ended after {SECONDS} s")
    if len(answer.body) > BODY_BYTES_MAX:
        raise ValueError(f"the body has more than {BODY_BYTES_MAX} bytes")
    return answer


def find_mistake(url: str, check: Check) -> Optional[str]:
    try:
        answer = ask(url, check)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"no answer: {error or type(error).__name__}"
    for key, wanted in check.expected.items():
        if mistake := EXPECTATIONS[key](answer, wanted):
            return mistake
    return None


def run_checks(url: str, checks: list, screen: Screen) -> int:
    """Returns how many failed."""
    failed = 0
    for check in checks:
        mistake = find_mistake(url, check)
        failed += mistake is not None
        screen.say(f"{'failed' if mistake else 'passed'}   {check.name}", fg="red" if mistake else "green")
        if mistake:
            screen.say(f"         {mistake}")
    screen.say(f"{len(checks) - failed} of {len(checks)} checks passed", bold=True)
    return failed


def run_pytest(url: str, folder: pathlib.Path, files: list) -> bool:
    """Returns whether all passed. It runs in the folder, since names of files are the only arguments that pytest does
    not take apart."""
    check_pytest(files[0])
    environment = {**os.environ, "DUDA_URL": url}
    command = [sys.executable, "-B", "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider",
               *(f"./{path.name}" for path in files)]
    sys.stdout.flush()
    with hold_interrupts():
        process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL)
    try:
        return process.wait() == 0
    finally:
        with hold_interrupts():
            end_pytest(process)


def check_pytest(file: pathlib.Path) -> None:
    program = Program([sys.executable, "-P", "-c", "import pytest"], file.parent, SECONDS)
    if run_program(program).status != 0:
        raise DudacError(f"{file.name} needs pytest: install the Debian package python3-pytest")


def end_pytest(process: subprocess.Popen) -> None:
    """Interrupts it, so that its fixtures end what they have started. A terminal has done so already for Ctrl-C."""
    for seconds, number in ((1, signal.SIGINT), (END_SECONDS, signal.SIGKILL)):
        try:
            process.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            process.send_signal(number)
    process.wait()


def find_tests(folder: pathlib.Path):
    """Returns the checks and the files of tests of a folder."""
    path = folder / FILE
    checks = read_checks(path) if path.exists() else []
    files = sorted(folder.glob("test_*.py"))
    if not checks and not files:
        raise DudacError(f"{folder} has no checks: neither {FILE} nor test_*.py")
    return checks, files
