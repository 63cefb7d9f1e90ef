# SPDX-License-Identifier: Apache-2.0
"""Checks of a service, `dudac test`: the requests of checks.toml, and test_*.py by pytest."""

import contextlib
import http.client
import http.cookiejar
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import threading
import urllib.request
from typing import Optional
from urllib.parse import quote, urlsplit

from . import DudacError
from .check_file import Check, Request, read_checks
from .expect import EXPECTATIONS, Answer
from .interrupts import await_files, limit_time
from .keep import read_kept
from .monitor import Monitor
from .programs import Program, run_program
from .screen import Screen
from .server import describe_status
from .session import Session, name_crash

FILE = "checks.toml"
SECONDS = 30  # of one request; and of comparing the responses of a step
COMPARING = f"comparing the response takes more than {SECONDS} s: does a regular expression repeat what it repeats?"
BODY_BYTES_MAX = 1 << 24
END_SECONDS = 5  # of pytest, after it was interrupted
URL_CHARACTERS = "".join(map(chr, range(0x21, 0x7f)))


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


class Cookies:
    """What a check has got, as a browser would keep it, which has cookies for https also for localhost."""

    def __init__(self):
        policy = http.cookiejar.DefaultCookiePolicy(secure_protocols=("http", "https"))
        self.jar = http.cookiejar.CookieJar(policy)

    def add_to(self, url: str, request: Request) -> dict:
        """Returns the headers of a request with its cookies, unless it has others."""
        asked = urllib.request.Request(make_url(url, request))
        self.jar.add_cookie_header(asked)
        cookie = asked.get_header("Cookie")
        has_cookie = "cookie" in map(str.lower, request.send_headers)
        return request.send_headers if has_cookie or not cookie else {**request.send_headers, "Cookie": cookie}

    def take(self, response: http.client.HTTPResponse, url: str) -> None:
        self.jar.extract_cookies(response, urllib.request.Request(url))


def make_url(url: str, request: Request) -> str:
    return url.rstrip("/") + quote(request.path, safe=URL_CHARACTERS)


def find_target(url: str) -> str:
    """What of a URL is sent: all behind the host."""
    return "/" + url.split("/", 3)[3]


def await_turn(connection: http.client.HTTPConnection, monitor: Monitor) -> None:
    """Waits until the worker has returned from the function that has responded: it takes the next request of the
    connection then, here one that no service gets."""
    try:
        connection.request("OPTIONS", "*")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        monitor.events.put(("lost", False))


def ask(url: str, request: Request, headers: dict, cookies: Cookies, monitor: Monitor) -> Answer:
    full = make_url(url, request)
    with contextlib.closing(open_connection(url)) as connection:
        connection.connect()
        limit = Limit(connection)
        try:
            connection.request(request.method, find_target(full), request.send, headers)
            response = connection.getresponse()
            cookies.take(response, full)
            answer = Answer(response.status, response.headers, response.read(BODY_BYTES_MAX + 1))
            if response.status >= 200 and not response.will_close and len(answer.body) <= BODY_BYTES_MAX:
                await_turn(connection, monitor)
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


def send(url: str, request: Request, headers: dict, cookies: Cookies, monitor: Monitor) -> Answer | str:
    """Returns its response, or why there is none."""
    try:
        return ask(url, request, headers, cookies, monitor)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, (ConnectionError, http.client.HTTPException)):
            monitor.events.put(("lost", isinstance(error, ConnectionRefusedError)))
        return f"no answer: {error or type(error).__name__}"


def send_at_once(url: str, requests: list, cookies: Cookies, monitor: Monitor) -> list:
    """Returns what send() does of each request. All have the cookies of the steps before."""
    headers = [cookies.add_to(url, request) for request in requests]
    barrier = threading.Barrier(len(requests))

    def run(number: int) -> None:
        barrier.wait(SECONDS)
        value = send(url, requests[number], headers[number], cookies, monitor)
        monitor.events.put(("answer", (number, value)))

    for number in range(len(requests)):  # daemons, so that they do not delay an interrupt
        threading.Thread(target=run, args=(number,), daemon=True).start()
    return monitor.await_answers(len(requests))


def compare_answer(answer: Answer | str, request: Request) -> tuple:
    """Returns what is wrong with what send() has returned, and the values that it keeps. Only the main thread can be
    interrupted in a regular expression."""
    if isinstance(answer, str):
        return answer, {}
    mistakes = (EXPECTATIONS[key](answer, wanted) for key, wanted in request.expected.items())
    mistake = next(filter(None, mistakes), None)
    return mistake, {} if mistake else read_kept(answer, request.expected)


def run_step(url: str, step: list, cookies: Cookies, kept: dict, monitor: Monitor) -> list:
    """Adds values to `kept`. Returns each request, and what is wrong with its response."""
    try:
        requests = [request.fill(kept) for request in step]
        answers = send_at_once(url, requests, cookies, monitor)
        with limit_time(SECONDS):
            results = list(map(compare_answer, answers, requests))
    except TimeoutError:
        return [(request, COMPARING) for request in step]
    except (UnicodeError, RecursionError) as error:  # a value of a response
        return [(request, str(error)) for request in step]
    kept |= {name: value for _, values in results for name, value in values.items()}
    return [(request, mistake) for request, (mistake, _) in zip(requests, results)]


def find_mistake(url: str, check: Check, monitor: Monitor) -> Optional[str]:
    """Returns what is wrong with the first response of the first step that is not as wanted."""
    cookies, kept = Cookies(), {}
    for number, step in enumerate(check.steps, 1):
        wrong = [(request, mistake) for request, mistake in run_step(url, step, cookies, kept, monitor) if mistake]
        if wrong:
            request, mistake = wrong[0]
            place = f"step {number}, line {request.place.line}, {request.method} {request.path}: "
            count = f"{len(wrong)} of {len(step)} at once: "
            return place * (len(check.steps) > 1) + count * (len(step) > 1) + mistake
    return None


def run_check(session: Session, check: Check, monitor: Monitor) -> list:
    """Returns what is wrong: with a response, with calls of the API meanwhile, and with the server if it has ended."""
    mistake = find_mistake(session.urls()[0], check, monitor)
    monitor.settle()
    mistakes = [*filter(None, [mistake]), *monitor.take_mistakes()]
    if monitor.has_ended:
        reason = name_crash(session.server, session.services) or describe_status(monitor.status)
        mistakes.append(f"the server has ended: {reason}")
    return mistakes


def say_result(screen: Screen, check: Check, mistakes: list) -> None:
    screen.say(f"{'failed' if mistakes else 'passed'}   {check.name}", fg="red" if mistakes else "green")
    for mistake in mistakes:
        screen.say(f"         {mistake}")


def run_checks(session: Session, checks: list, monitor: Monitor, screen: Screen) -> int:
    """Returns how many have not passed. A check that finds no server is none that has ended it."""
    passed = []
    waiting = list(checks)
    while waiting and not monitor.has_ended:
        check = waiting.pop(0)
        mistakes = run_check(session, check, monitor)
        if monitor.has_ended and monitor.was_refused and passed:
            waiting.insert(0, check)
            check = passed.pop()
            mistakes = [f"after its responses {mistakes[-1]}"]
        say_result(screen, check, mistakes)
        passed += [] if mistakes else [check]
    for check in waiting:
        screen.say(f"not run  {check.name}")
    screen.say(f"{len(passed)} of {len(checks)} checks passed", bold=True)
    return len(checks) - len(passed)


def run_pytest(url: str, folder: pathlib.Path, files: list) -> bool:
    """Returns whether all passed. It runs in the folder, since names of files are the only arguments that pytest does
    not take apart."""
    check_pytest(files[0])
    environment = {**os.environ, "DUDA_URL": url}
    command = [sys.executable, "-B", "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider",
               *(f"./{path.name}" for path in files)]
    sys.stdout.flush()
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL)
    pidfd = os.pidfd_open(process.pid)
    try:
        while process.poll() is None:
            await_files([pidfd])
        return process.returncode == 0
    finally:
        end_pytest(process)
        os.close(pidfd)


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
