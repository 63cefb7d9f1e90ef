# SPDX-License-Identifier: Apache-2.0
"""The file of results: JSON lines, one for each record, appended as rounds end.

A writer holds a lock. A crash amid a write leaves a torn last line: readers ignore it, and a writer that resumes cuts
it. Any other line that cannot be read is an error that names the file and the line, and nothing is cut."""

import dataclasses
import fcntl
import json
import lzma
import os
from typing import Any, Callable, Iterable, Iterator, Optional, Type, TypeVar

from . import WrError
from .fields import check_fields

Numbers = dict[str, float]
DISTURBED, GENERATOR_LIMITED, REPEATED, ERRORS = "disturbed", "generator_limited", "repeated", "errors"
Item = TypeVar("Item")


def choose_counted(items: Iterable[Item], is_disturbed: Callable[[Item], bool]) -> list[Item]:
    """Those that estimates are made of: without disturbed ones, unless there are no others."""
    items = list(items)
    return [item for item in items if not is_disturbed(item)] or items


def mapping() -> Any:
    return dataclasses.field(default_factory=dict)


def listing() -> Any:
    return dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Session:
    """One run of `wr`. A resumed one has the settings of the first and its id in `resumes`."""

    id: str
    started: str
    wr: str
    command: list
    machine: dict
    tools: dict
    cpus: dict = mapping()
    settings: dict = mapping()
    agent: dict = mapping()  # the machine of the generator; empty: this one
    resumes: Optional[str] = None


@dataclasses.dataclass
class Server:
    name: str
    version: str = ""
    command: list = listing()
    config: dict = mapping()
    limit: bool = False
    text: str = ""
    build: list = listing()  # the command that made it, and its compiler's version
    compiler: str = ""


@dataclasses.dataclass
class Workload:
    """`keys` are the keys of its TOML file; in the results they stand beside `name` and `text`."""

    name: str
    text: str = ""
    keys: dict = mapping()


@dataclasses.dataclass
class Round:
    session: str
    n: int
    workload: str
    server: str
    clients: int
    started: str
    seconds: float
    generator: dict
    answers: int
    errors: Numbers
    statuses: Numbers
    rps: float
    latency_us: Numbers
    hdr: Optional[str]
    cpu_us: Numbers
    cost_us: Numbers
    memory_kb: Numbers
    threads: int
    switches: Numbers
    faults: Numbers
    descriptors_max: Optional[int]
    tcp: Numbers
    others_share: float
    pressure: Numbers
    page_cache_kb: int
    marks: list[str] = listing()
    samples: list = listing()
    sampler_us: int = 0
    io: Numbers = mapping()  # bytes that its processes read from disks and wrote to them; empty: not known


@dataclasses.dataclass
class Pair:
    workload: str
    first: str
    second: str
    rounds: list[int]
    ratio: Optional[float]


@dataclasses.dataclass
class Counts:
    """Of a server: what is counted rather than timed. None: not known."""

    server: str
    pss_kb: int
    dirty_kb: int
    binary_kb: int
    calls: Optional[float]
    connection_bytes: Optional[int]
    crowd_dirty_kb: Optional[int]
    start_ms: Optional[float] = None  # from starting the program to its first answer
    idle_cpu_us: Optional[float] = None  # a second, without any request
    idle_wakeups: Optional[float] = None  # a second, likewise


@dataclasses.dataclass
class Qualification:
    """What the checks before a contest found of a server."""

    server: str
    workload: str
    features: dict[str, str]


@dataclasses.dataclass
class Exclusion:
    """A server that was not measured, or not to the end. `workload` is empty where it is all of them."""

    server: str
    workload: str
    kind: str  # one of EXCLUSIONS
    reason: str


# What a kind of exclusion means
EXCLUSIONS = {
    "absent": "cannot be had as a package",
    "missing": "is not installed on this machine",
    "unable": "cannot do the workload",
    "disqualified": "is wrong in what it answers, or does more than the others",
    "failed": "did not start, died or hung",
}
TYPES: dict[str, type] = {
    "session": Session, "server": Server, "workload": Workload, "round": Round, "pair": Pair, "counts": Counts,
    "exclusion": Exclusion, "qualification": Qualification,
}
PARTS = {("round", "cpu_us"): ("user", "system"), ("round", "cost_us"): ("total",)}  # what they must hold
NAMES = {kind: name for name, kind in TYPES.items()}
Record = TypeVar("Record")


def to_fields(record: Any) -> dict:
    """The members of a record's line."""
    fields = dataclasses.asdict(record)
    if isinstance(record, Workload):
        fields |= fields.pop("keys")
    return {"type": NAMES[type(record)], **fields}


def to_line(record: Any) -> str:
    return json.dumps(to_fields(record), ensure_ascii=False, separators=(", ", ": ")) + "\n"


def from_fields(fields: dict) -> Any:
    """Builds the record of a line. Keys that this version does not know are ignored, but for workloads."""
    name = fields.get("type", "")
    kind = TYPES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"there is no type {name!r}")
    known = {field.name: field for field in dataclasses.fields(kind)}
    missing = [name for name, field in known.items() if name not in fields and name != "keys"
               and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING]
    if missing:
        raise ValueError(f"the {name} has no {', '.join(missing)}")
    values = {name: value for name, value in fields.items() if name in known}
    check_fields(kind, values)
    check_parts(name, values)
    if kind is Workload:
        values["keys"] = {name: value for name, value in fields.items() if name not in ("type", "name", "text")}
    return kind(**values)


def check_parts(kind: str, values: dict) -> None:
    """Raises ValueError for a record that lacks what every reader takes from it."""
    for (owner, name), wanted in PARTS.items():
        missing = [part for part in wanted if owner == kind and part not in values[name]]
        if missing:
            raise ValueError(f"{name} has no {', '.join(missing)}")
    if kind == "pair" and len(values["rounds"]) != 2:
        raise ValueError("the rounds of a pair are two")


def parse_line(line: str) -> Any:
    try:
        fields = json.loads(line)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(fields, dict):
        raise ValueError("it is no JSON object")
    return from_fields(fields)


@dataclasses.dataclass
class Results:
    """What a file holds, in its order."""

    path: str
    records: list
    good_bytes: int = 0  # what is before a torn last line
    torn: bool = False

    def of(self, kind: Type[Record]) -> list[Record]:
        return [record for record in self.records if isinstance(record, kind)]

    @property
    def rounds(self) -> list[Round]:
        return self.of(Round)


def split_lines(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yields each line with its newline, and whether it is the last one."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]  # what is behind the last newline
    lines = lines if lines[-1] else lines[:-1]
    for number, line in enumerate(lines, 1):
        yield line, number == len(lines)


def parse_results(path: str, data: bytes) -> Results:
    results = Results(path, [])
    for number, (line, is_last) in enumerate(split_lines(data), 1):
        try:
            results.records.append(parse_line(line.decode()))
        except ValueError as error:
            if is_last and (not line.endswith(b"\n") or isinstance(error, json.JSONDecodeError)):
                results.torn = True
                break
            raise WrError(f"{path}:{number}: {describe(error)}") from error
        results.good_bytes += len(line)
    return results


def describe(error: ValueError) -> str:
    return f"no JSON: {error}" if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)) else str(error)


def read_results(path: str) -> Results:
    """A file that ends in .xz is a compressed one."""
    try:
        with (lzma.open if str(path).endswith(".xz") else open)(path, "rb") as file:
            return parse_results(path, file.read())
    except (OSError, lzma.LZMAError) as error:
        raise WrError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


class ResultsWriter:
    """Appends records under a lock. `results` is what the file held when it was opened."""

    def __init__(self, path: str, resume: bool = False):
        self.path = path
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (0 if resume else os.O_CREAT)
        try:
            self.fd = os.open(path, flags, 0o644)
        except OSError as error:
            raise WrError(f"{path}: {error.strerror}") from error
        try:
            self.lock()
            self.results = self.load(resume)
        except BaseException:
            os.close(self.fd)
            raise

    def lock(self) -> None:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise WrError(f"{self.path}: another wr writes to this file") from error

    def load(self, resume: bool) -> Results:
        with open(self.path, "rb") as file:
            data = file.read()
        if data and not resume:
            raise WrError(f"{self.path} exists: give another file, or continue in it with --resume {self.path}")
        results = parse_results(self.path, data)
        os.ftruncate(self.fd, results.good_bytes)
        if results.good_bytes and data[results.good_bytes - 1:results.good_bytes] != b"\n":
            self.write(b"\n")
        return results

    def write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self.fd, data):]
        except OSError as error:
            raise WrError(f"{self.path}: {error.strerror}; the results up to here are kept") from error

    def append(self, record: Any) -> None:
        """Writes one line at once, so that what was measured survives the end of `wr`."""
        self.write(to_line(record).encode())

    def close(self) -> None:
        os.close(self.fd)

    def __enter__(self) -> "ResultsWriter":
        return self

    def __exit__(self, *_) -> None:
        self.close()
