# SPDX-License-Identifier: Apache-2.0
"""Rounds of growing concurrency against one running server: the settings, where to continue, and what is recorded."""

import dataclasses
import ipaddress
import platform
import socket
import uuid
from typing import Callable, Optional, Protocol
from urllib.parse import urlsplit

from . import VERSION, WrError
from .fields import check_fields
from .generators import Generator, Load
from .machine import describe_machine
from .proc import ProcessTree, find_listening, read_command, read_stat
from .results import DISTURBED, Results, ResultsWriter, Round, Server, Session, Workload
from .rounds import Limits, Progress, Target, now_text, repeat_disturbed

CLIENTS_MAX = 1_000_000
STEPS_MAX = 10_000


@dataclasses.dataclass(frozen=True)
class Settings:
    """What makes rounds comparable. They are recorded, and a resumed series must have the same."""

    url: str
    clients: tuple[int, ...]
    requests: Optional[int] = None
    seconds: Optional[float] = None
    keep_alive: bool = False
    pipeline: int = 1
    threads: int = 1
    generator: str = "wr-load"
    headers: tuple[str, ...] = ()

    def load(self, clients: int) -> Load:
        return Load(url=self.url, clients=clients, requests=self.requests, seconds=self.seconds,
                    keep_alive=self.keep_alive, pipeline=self.pipeline, threads=self.threads, headers=self.headers,
                    insecure=self.url.startswith("https:"))

    def describe(self) -> str:
        end = f"{self.requests:,} requests" if self.requests is not None else f"{self.seconds:g} s"
        connections = "keep-alive" if self.keep_alive else "a new connection each"
        pipelined = f", {self.pipeline} requests in flight" if self.pipeline > 1 else ""
        return f"{self.url}, {connections}{pipelined}, {end} a round, by {self.generator}"


def parse_clients(text: str) -> tuple:
    """Reads 64, 1,2,4 and FROM:TO:STEP, which includes both ends."""
    counts: list[int] = []
    for part in text.split(","):
        try:
            numbers = [int(word) for word in part.split(":")]
        except ValueError:
            raise WrError(f"-c {text}: \"{part}\" is neither a number nor FROM:TO:STEP") from None
        if len(numbers) not in (1, 2, 3):
            raise WrError(f"-c {text}: \"{part}\" has more than three numbers")
        first, last, step = (numbers + [numbers[0]])[:2] + [numbers[2] if len(numbers) == 3 else 1]
        if not 1 <= first <= last <= CLIENTS_MAX or step < 1 or (last - first) // step >= STEPS_MAX:
            raise WrError(f"-c {text}: {part} needs 1 <= FROM <= TO <= {CLIENTS_MAX}, STEP >= 1, "
                          f"and at most {STEPS_MAX} rounds")
        counts += range(first, last + 1, step)
    return tuple(dict.fromkeys(counts))


def is_local_address(address: str) -> bool:
    """An address is of this machine when a socket can be bound to it."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if parsed.is_loopback:
        return True
    family = socket.AF_INET6 if parsed.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.bind((address, 0))
        return True
    except OSError:
        return False


def check_url(url: str, remote_ok: bool = False) -> None:
    """Raises WrError for a URL that is none, that has an unknown host, or that is on another machine."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid:
        raise WrError(f"{url} is no URL of a server: write http://HOST[:PORT]/PATH")
    try:
        rows = socket.getaddrinfo(parts.hostname, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no name of a host"
        raise WrError(f"{url}: the host {parts.hostname} is not known: {reason}") from error
    addresses = sorted({row[4][0] for row in rows})
    if not remote_ok and not all(map(is_local_address, addresses)):
        raise WrError(f"{url} is not on this machine ({', '.join(addresses)}): load only servers that are yours, "
                      f"and confirm with --remote-ok")


def warn_listener(target: Target, pids: set) -> Optional[str]:
    """Returns a sentence when another process listens on the port of the URL."""
    if target.port is None:
        return None
    listening = find_listening(target.pid, target.port)
    if set(listening) & pids:
        return None
    names = ", ".join(f"PID {pid} ({stat.name})" for pid in listening if (stat := read_stat(pid)))
    return (f"warning: {target.describe()} does not listen on port {target.port}; "
            + (f"{names} does" if names else "no process that can be seen does"))


def settings_of(results: Results) -> Optional[Settings]:
    """Returns those of the first session of a file; None in a file without."""
    sessions = [session for session in results.of(Session) if session.settings]
    if not sessions:
        return None
    known = {field.name for field in dataclasses.fields(Settings)}
    values = {name: tuple(value) if isinstance(value, list) else value
              for name, value in sessions[0].settings.items() if name in known}
    try:
        check_fields(Settings, values)
        return Settings(**values)
    except (TypeError, ValueError) as error:
        raise WrError(f"{results.path}: the settings of its session cannot be read: {error}") from error


def merge_settings(given: dict, recorded: Optional[Settings], path: str = "") -> Settings:
    """Takes what is not given from the file that is resumed; raises WrError when both differ."""
    given = {name: value for name, value in given.items() if value is not None}
    if recorded is None:
        return Settings(**given)
    for name, value in given.items():
        if value != getattr(recorded, name):
            raise WrError(f"{path} was measured with {name} = {getattr(recorded, name)}, not {value}: "
                          f"leave the option out, or begin another file")
    return recorded


def check_server(results: Results, target: Target) -> None:
    """Raises WrError when the file was measured with another server."""
    for server in results.of(Server)[:1]:
        if server.name != target.name:
            raise WrError(f"{results.path} was measured with the server {server.name}, and PID {target.pid} is "
                          f"{target.name}: begin another file")


def attempts_of(results: Results, clients: int) -> tuple[int, bool]:
    """Returns how many rounds of this concurrency there are, and whether one of them was not disturbed."""
    rounds = [each for each in results.rounds if each.clients == clients]
    return len(rounds), any(DISTURBED not in each.marks for each in rounds)


class Reporter(Protocol):
    """Where rows and progress go."""

    def begin(self, clients: int, number: int, count: int) -> None: ...

    def progress(self, progress: Progress) -> None: ...

    def row(self, result: Round) -> None: ...


Measure = Callable[[Target, Generator, Load, Limits, Reporter], Round]


class Series:
    """Measures each concurrency, appends each round as it ends, and continues behind what the file has."""

    def __init__(self, settings: Settings, target: Target, generator: Generator, writer: ResultsWriter,
                 reporter: Reporter, measure: Measure, limits: Limits = Limits(), repeats: int = 2):
        self.settings, self.target, self.generator, self.writer = settings, target, generator, writer
        self.reporter, self.measure, self.limits, self.repeats = reporter, measure, limits, repeats
        self.session = ""
        self.rounds: list[Round] = list(writer.results.rounds)

    def open_session(self, command: list, agent: dict) -> None:
        """Writes the lines that stand before the rounds."""
        earlier = self.writer.results.of(Session)
        self.session = uuid.uuid4().hex[:12]
        self.writer.append(Session(
            id=self.session, started=now_text(), wr=VERSION, command=command, machine=describe_machine(),
            tools={"python": platform.python_version(), self.generator.name: self.generator.version()},
            settings=dataclasses.asdict(self.settings), agent=agent, resumes=earlier[0].id if earlier else None))
        if not earlier:
            self.writer.append(Server(self.target.name, command=read_command(self.target.pid)))
            self.writer.append(Workload("rounds", self.settings.describe(), {"url": self.settings.url}))

    def run(self) -> None:
        steps = self.settings.clients
        for number, clients in enumerate(steps, 1):
            attempts, is_done = attempts_of(self.writer.results, clients)
            if is_done or attempts > self.repeats:
                continue
            self.reporter.begin(clients, number, len(steps))
            for result in repeat_disturbed(lambda: self.measure_step(clients), self.repeats, attempts):
                self.keep(result)

    def measure_step(self, clients: int) -> Round:
        return self.measure(self.target, self.generator, self.settings.load(clients), self.limits, self.reporter)

    def keep(self, result: Round) -> None:
        numbered = dataclasses.replace(result, session=self.session, n=len(self.rounds) + 1, workload="rounds",
                                       server=self.target.name)
        self.writer.append(numbered)
        self.rounds.append(numbered)
        self.reporter.row(numbered)


def pids_of(target: Target) -> set:
    tree = ProcessTree(target.pid)
    tree.read(True)
    return tree.pids_seen
