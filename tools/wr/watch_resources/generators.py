# SPDX-License-Identifier: Apache-2.0
"""The load generators: what each can do, its command line, and its output as an Answers.

A generator says in `refuse` what it cannot do, so that a workload is never run as another one."""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Optional
from urllib.parse import urljoin, urlsplit

from . import WrError

BUILD_FOLDERS = "build/release/bin", "bin"
VERSION_SECONDS = 5
UNITS_US = {"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6}
DURATION = re.compile(r"([\d.]+)(us|ms|s|m|h)")


@dataclasses.dataclass(frozen=True)
class Load:
    """One round's work. Either `requests` or `seconds` ends it. `pipeline` counts the requests in flight on each
    connection; with `http2` these are streams."""

    url: str
    clients: int = 1
    requests: Optional[int] = None
    seconds: Optional[float] = None
    keep_alive: bool = True
    pipeline: int = 1
    threads: int = 1
    http2: bool = False
    rate: Optional[float] = None
    paths: Optional[str] = None
    pick: Optional[str] = None
    seed: Optional[int] = None
    status: Optional[int] = None
    length: Optional[int] = None
    per_connection: Optional[int] = None
    headers: tuple = ()
    ca: Optional[str] = None
    insecure: bool = False
    timeout: Optional[float] = None
    extra: tuple = ()
    prefix: tuple = ()

    @property
    def used_threads(self) -> int:
        return max(1, min(self.threads, self.clients))


@dataclasses.dataclass(frozen=True)
class Answers:
    """What a generator counted. A status may be a class such as "2xx" where it counts no more than that."""

    count: int
    seconds: float
    rps: float
    statuses: dict
    errors: dict
    latency_us: dict = dataclasses.field(default_factory=dict)
    cpu_us: dict = dataclasses.field(default_factory=dict)
    cpu_share: Optional[float] = None
    hdr: Optional[str] = None

    @property
    def failed(self) -> int:
        return sum(self.errors.values())


def find_program(name: str) -> Optional[str]:
    """Looks next to this program, in the build of a checkout, then in PATH."""
    checkout = pathlib.Path(__file__).resolve().parents[3]
    places = [pathlib.Path(sys.argv[0]).absolute().parent, *(checkout / folder for folder in BUILD_FOLDERS)]
    for place in places:
        if os.access(place / name, os.X_OK) and (place / name).is_file():
            return str(place / name)
    return shutil.which(name)


def drop_empty(counts: dict) -> dict:
    return {name: count for name, count in counts.items() if count}


def bad_statuses(statuses: dict) -> int:
    return sum(count for status, count in statuses.items() if status >= "400")


def parse_duration_us(text: str) -> float:
    match = DURATION.fullmatch(text)
    if not match:
        raise ValueError(f"no duration: {text}")
    return float(match[1]) * UNITS_US[match[2]]


def count_of(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match[1]) if match else 0


class Generator:
    """What all have in common. A subclass has command() and parse()."""

    name = ""
    version_options: tuple = ("--version",)
    version_pattern = r"(\d+\.\d+[\w.-]*)"
    cpus = len(os.sched_getaffinity(0))  # that its threads may use
    can: frozenset = frozenset()  # of: requests seconds close pipeline http2 rate paths answers ca
    always_insecure = True  # certificates are not checked

    def __init__(self, program: Optional[str] = None):
        self.program = program or find_program(self.name) or self.name
        self.known_version: Optional[str] = None

    def is_available(self) -> bool:
        return shutil.which(self.program) is not None

    def version(self) -> str:
        """Asks the program once; empty where it does not say."""
        if self.known_version is None:
            self.known_version = self.ask_version()
        return self.known_version

    def ask_version(self) -> str:
        try:
            done = subprocess.run([self.program, *self.version_options], capture_output=True, text=True,
                                  timeout=VERSION_SECONDS, stdin=subprocess.DEVNULL, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        match = re.search(self.version_pattern, done.stdout + done.stderr)
        return match[1] if match else ""

    def refuse(self, load: Load) -> None:
        """Raises WrError with what this generator cannot do of the load."""
        wanted = {
            "requests": load.requests is not None and "ends after a time only: give -d SECONDS, not -n",
            "seconds": load.seconds is not None and "ends after a number of requests only: give -n REQUESTS, not -d",
            "close": not load.keep_alive and "keeps connections open always: add -k",
            "pipeline": load.pipeline > 1 and not load.http2 and "does not pipeline",
            "http2": load.http2 and "does not speak HTTP/2",
            "rate": load.rate is not None and "has no open loop at a rate",
            "paths": load.paths is not None and "takes no list of paths",
            "answers": (load.status is not None or load.length is not None) and "does not check answers",
            "ca": load.ca is not None and "takes no file of authorities",
            "idle clients": load.requests is not None and load.requests < load.clients
            and f"needs at least one request for each of {load.clients} clients: raise -n {load.requests}",
        }
        for ability, sentence in wanted.items():
            if sentence and ability not in self.can:
                raise WrError(f"{self.name} {sentence}")

    def command(self, load: Load, folder: str) -> list[str]:
        raise NotImplementedError

    def parse(self, load: Load, stdout: str, stderr: str, folder: str) -> Answers:
        raise NotImplementedError

    def progress(self, load: Load, stdout: str, stderr: str) -> Optional[float]:
        """Returns the share that is done of a load that counts requests; None when it is not known."""
        return None

    def read(self, load: Load, stdout: str, stderr: str, folder: str) -> Answers:
        """Parses the output; raises WrError with the end of it when there is no result in it."""
        try:
            return self.parse(load, stdout, stderr, folder)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            tail = " / ".join((stderr + "\n" + stdout).strip().splitlines()[-3:])
            raise WrError(f"{self.name} printed no result: {tail or 'nothing at all'} ({error})") from error


def number(value) -> str:
    """Writes a number without an exponent, which generators do not read."""
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def option(name: str, value) -> list[str]:
    return [] if value is None else [name, number(value)]


def header_options(load: Load, *more: str) -> list[str]:
    return [word for header in (*load.headers, *more) for word in ("-H", header)]


class WrLoad(Generator):
    """Our own."""

    name = "wr-load"
    can = frozenset({"requests", "seconds", "close", "pipeline", "rate", "paths", "answers", "ca", "per_connection"})
    always_insecure = False

    def command(self, load: Load, folder: str) -> list[str]:
        return [
            *load.prefix, self.program, "--progress", "-c", str(load.clients), "-t", str(load.used_threads),
            *option("-n", load.requests), *option("-d", load.seconds), *([] if load.keep_alive else ["--close"]),
            *option("--requests-per-connection", load.per_connection),
            *(["-p", str(load.pipeline)] if load.pipeline > 1 else []), *option("-r", load.rate),
            *option("--paths", load.paths), *option("--pick", load.pick), *option("--seed", load.seed),
            *option("--status", load.status), *option("--length", load.length), *option("--timeout", load.timeout),
            *option("--ca", load.ca), *(["--insecure"] if load.insecure else []), *header_options(load), *load.extra,
            urljoin(load.url, "/") if load.paths else load.url,  # the list has the paths
        ]

    def parse(self, load: Load, stdout: str, stderr: str, folder: str) -> Answers:
        said = json.loads(stdout)
        seconds, errors = float(said["seconds"]), dict(said["errors"])
        self.known_version = self.known_version or said["version"]
        if load.status is None and load.paths is None:  # no status was expected
            errors["status"] = errors.get("status") or bad_statuses(said["statuses"])
        return Answers(
            count=said["answers"], seconds=seconds, rps=said["answers"] / seconds if seconds else 0.0,
            statuses=said["statuses"], errors=drop_empty(errors), latency_us=said["latency_us"],
            cpu_us=said["cpu_us"], cpu_share=said["cpu_share"], hdr=said.get("hdr"))

    def progress(self, load: Load, stdout: str, stderr: str) -> Optional[float]:
        line = next((line for line in reversed(stderr.splitlines()) if line.startswith("{") and line.endswith("}")), "")
        try:
            return min(1.0, json.loads(line)["answers"] / load.requests)
        except (ValueError, KeyError, TypeError):
            return None


class Wrk(Generator):
    """Prints text; its percentiles are those of --latency. Pipelining needs a script."""

    name = "wrk"
    can = frozenset({"seconds", "close", "pipeline"})
    version_options = ("-v",)
    script = """init = function(args)
  local requests = {}
  for i = 1, %d do requests[i] = wrk.format() end
  joined = table.concat(requests)
end
request = function() return joined end
"""

    def command(self, load: Load, folder: str) -> list[str]:
        words = [*load.prefix, self.program, "--latency", f"-t{load.used_threads}", f"-c{load.clients}",
                 f"-d{max(1, round(load.seconds or 0))}s"]
        if load.pipeline > 1:
            path = pathlib.Path(folder, "pipeline.lua")
            path.write_text(self.script % load.pipeline, encoding="ascii")
            words += ["-s", str(path)]
        words += ["--timeout", f"{max(1, round(load.timeout))}s"] if load.timeout else []
        return [*words, *header_options(load, *([] if load.keep_alive else ["Connection: close"])), *load.extra,
                load.url]

    def parse(self, load: Load, stdout: str, stderr: str, folder: str) -> Answers:
        total = re.search(r"(\d+) requests in ([\d.]+\w+),", stdout)
        count, seconds = int(total[1]), parse_duration_us(total[2]) / 1e6
        bad = count_of(r"Non-2xx or 3xx responses: (\d+)", stdout)
        errors = {name: count_of(rf"Socket errors:.*?{name} (\d+)", stdout)
                  for name in ("connect", "read", "write", "timeout")}
        return Answers(
            count=count, seconds=seconds, rps=float(re.search(r"Requests/sec: +([\d.]+)", stdout)[1]),
            statuses=drop_empty({"2xx-3xx": count - bad, "other": bad}), errors=drop_empty({**errors, "status": bad}),
            latency_us=self.parse_latency(stdout))

    @staticmethod
    def parse_latency(stdout: str) -> dict:
        latency = {}
        line = re.search(r"^ +Latency +(\S+) +(\S+) +(\S+) ", stdout, re.M)
        if line:
            latency = {"mean": parse_duration_us(line[1]), "max": parse_duration_us(line[3])}
        for percent, value in re.findall(r"^ +(\d+)% +(\S+)$", stdout, re.M):
            latency[f"p{percent}"] = parse_duration_us(value)
        return latency


class H2Load(Generator):
    """HTTP/1.1 and HTTP/2. It prints no percentiles."""

    name = "h2load"
    can = frozenset({"requests", "seconds", "close", "pipeline", "http2"})

    def command(self, load: Load, folder: str) -> list[str]:
        end = ["-n", str(load.requests)] if load.requests is not None else ["-D", number(load.seconds)]
        return [*load.prefix, self.program, *([] if load.http2 else ["--h1"]), "-t", str(load.used_threads),
                "-c", str(load.clients), "-m", str(load.pipeline), *end,
                *header_options(load, *([] if load.keep_alive else ["Connection: close"])),
                *option("--connection-inactivity-timeout", load.timeout), *load.extra, load.url]

    def parse(self, load: Load, stdout: str, stderr: str, folder: str) -> Answers:
        finished = re.search(r"finished in ([\d.]+\w+), ([\d.]+) req/s", stdout)
        counts = re.search(r"requests: .*?(\d+) done, \d+ succeeded, (\d+) failed, (\d+) errored, (\d+) timeout",
                           stdout)
        done, failed, errored, timeout = (int(each) for each in counts.groups())
        statuses = {name: int(count) for count, name in re.findall(r"(\d+) ([2345]xx)", stdout)}
        errors = {"read": max(0, errored - timeout), "timeout": timeout, "status": max(0, failed - errored)}
        return Answers(
            count=max(0, done - errored) if load.requests is not None else done,
            seconds=parse_duration_us(finished[1]) / 1e6, rps=float(finished[2]), statuses=drop_empty(statuses),
            errors=drop_empty(errors), latency_us=self.parse_latency(stdout))

    @staticmethod
    def parse_latency(stdout: str) -> dict:
        words = re.search(r"^time for request: +(\S+) +(\S+) +(\S+) ", stdout, re.M)
        if not words:
            return {}
        return {name: parse_duration_us(word) for name, word in zip(("min", "max", "mean"), words.groups())}

    def progress(self, load: Load, stdout: str, stderr: str) -> Optional[float]:
        percents = re.findall(r"progress: (\d+)% done", stdout)
        return int(percents[-1]) / 100 if percents else None


class Ab(Generator):
    """ApacheBench: HTTP/1.0, one thread. Its file of percentiles is finer than what it prints."""

    name = "ab"
    can = frozenset({"requests", "seconds", "close"})
    version_options = ("-V",)
    version_pattern = r"Version (\S+)"
    percentiles = {"50": "p50", "75": "p75", "90": "p90", "99": "p99"}
    requests_max = 5_000_000  # it allocates 32 bytes for each
    file = "ab.csv"

    def command(self, load: Load, folder: str) -> list[str]:
        if load.requests is not None:
            end = ["-n", str(load.requests)]
        else:  # -t sets a number of requests too, which -n raises again
            end = ["-t", str(max(1, round(load.seconds or 0))), "-n", str(self.requests_max)]
        url = load.url if urlsplit(load.url).path else load.url + "/"  # it insists on a path
        return [*load.prefix, self.program, "-r", "-l", *(["-k"] if load.keep_alive else []), "-c", str(load.clients),
                *end, *option("-s", load.timeout and max(1, round(load.timeout))),
                "-e", str(pathlib.Path(folder, self.file)),
                *header_options(load), *load.extra, url]

    def parse(self, load: Load, stdout: str, stderr: str, folder: str) -> Answers:
        count = int(re.search(r"Complete requests: +(\d+)", stdout)[1])
        bad = count_of(r"Non-2xx responses: +(\d+)", stdout)
        details = {name.lower(): count_of(rf"\(Connect:.*{name}: (\d+)", stdout) for name in ("Receive", "Exceptions")}
        connect = count_of(r"\(Connect: (\d+)", stdout)
        failed = count_of(r"Failed requests: +(\d+)", stdout)
        return Answers(
            count=max(0, count - failed),
            seconds=float(re.search(r"Time taken for tests: +([\d.]+)", stdout)[1]),
            rps=float(re.search(r"Requests per second: +([\d.]+)", stdout)[1]),
            statuses=drop_empty({"2xx": max(0, count - failed - bad), "other": bad}),
            errors=drop_empty({"connect": connect, "read": details["receive"], "other": details["exceptions"],
                               "status": bad}),
            latency_us=self.parse_latency(stdout, pathlib.Path(folder, self.file)))

    def parse_latency(self, stdout: str, path: pathlib.Path) -> dict:
        latency = {}
        total = re.search(r"^Total: +(\d+) +(\d+) +[\d.]+ +\d+ +(\d+)", stdout, re.M)
        if total:
            latency = {name: int(word) * 1000.0 for name, word in zip(("min", "mean", "max"), total.groups())}
        lines = path.read_text(encoding="ascii").splitlines()[1:] if path.exists() else []
        for percent, milliseconds in (line.split(",") for line in lines):
            if percent in self.percentiles:
                latency[self.percentiles[percent]] = round(float(milliseconds) * 1000)
        return latency

    def progress(self, load: Load, stdout: str, stderr: str) -> Optional[float]:
        counts = re.findall(r"Completed (\d+) requests", stderr)
        return int(counts[-1]) / load.requests if counts and load.requests else None


class Oha(Generator):
    """Prints JSON, with times in seconds."""

    name = "oha"
    can = frozenset({"requests", "seconds", "close", "http2", "rate", "ca"})
    always_insecure = False
    percentiles = "p50", "p75", "p90", "p99", "p99.9", "p99.99"

    def command(self, load: Load, folder: str) -> list[str]:
        end = ["-n", str(load.requests)] if load.requests is not None else ["-z", number(load.seconds) + "s"]
        return [*load.prefix, self.program, "--no-tui", "--json", "-c", str(load.clients), *end,
                *([] if load.keep_alive else ["--disable-keepalive"]), *option("-q", load.rate),
                *(["--latency-correction"] if load.rate else []),
                *(["--http2", "-p", str(load.pipeline)] if load.http2 else []),
                *(["--insecure"] if load.insecure else []), *option("--cacert", load.ca),
                *(["-t", number(load.timeout) + "s"] if load.timeout else []), *header_options(load), *load.extra,
                load.url]

    def parse(self, load: Load, stdout: str, stderr: str, folder: str) -> Answers:
        said = json.loads(stdout)
        summary, statuses = said["summary"], said["statusCodeDistribution"]
        errors = {name: count for name, count in said["errorDistribution"].items() if "deadline" not in name}
        bad = bad_statuses(statuses)
        times = {name: said["latencyPercentiles"].get(name) for name in self.percentiles}
        times |= {"min": summary["fastest"], "mean": summary["average"], "max": summary["slowest"]}
        count = sum(statuses.values())
        return Answers(
            count=count, seconds=summary["total"], rps=count / summary["total"], statuses=statuses,
            errors=drop_empty({**errors, "status": bad}),
            latency_us={name: round(value * 1e6, 1) for name, value in times.items() if value is not None})


class Weighttp(Generator):
    """The generator of the original `wr`. Version 0.4 prints sentences, later ones JSON."""

    name = "weighttp"
    can = frozenset({"requests", "close", "pipeline"})
    version_options = ("-V",)
    classes = "2xx", "3xx", "4xx", "5xx"

    def command(self, load: Load, folder: str) -> list[str]:
        return [*load.prefix, self.program, "-n", str(load.requests), "-c", str(load.clients),
                "-t", str(load.used_threads), *(["-k"] if load.keep_alive else []),
                *(["-K", str(load.pipeline)] if load.pipeline > 1 else []), *header_options(load), *load.extra,
                load.url]

    def parse(self, load: Load, stdout: str, stderr: str, folder: str) -> Answers:
        opening = re.search(r"^\{", stdout, re.M)
        return self.parse_json(stdout[opening.start():]) if opening else self.parse_text(stdout)

    def parse_json(self, text: str) -> Answers:
        said = json.loads(text)
        return self.answers(said["request_counts"]["retired"], said["secs_elapsed"],
                            said["response_counts"]["errs"], said["status_codes"])

    def parse_text(self, text: str) -> Answers:
        words = re.search(r"finished in (\d+) sec, (\d+) millisec and (\d+) microsec", text)
        seconds = int(words[1]) + int(words[2]) / 1e3 + int(words[3]) / 1e6
        counts = re.search(r"(\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored", text)
        statuses = {name: count_of(rf"(\d+) {name}", text) for name in self.classes}
        return self.answers(int(counts[1]), seconds, int(counts[4]), statuses)

    def answers(self, done: int, seconds: float, errored: int, statuses: dict) -> Answers:
        bad = statuses["4xx"] + statuses["5xx"]
        count = sum(statuses.values())
        return Answers(count=count, seconds=seconds, rps=count / seconds if seconds else 0.0,
                       statuses=drop_empty(statuses),
                       errors=drop_empty({"read": max(errored, done - count), "status": bad}))

    def progress(self, load: Load, stdout: str, stderr: str) -> Optional[float]:
        percents = re.findall(r"progress: +(\d+)% done", stdout)
        return int(percents[-1]) / 100 if percents else None


GENERATORS = {each.name: each for each in (WrLoad, Wrk, H2Load, Ab, Oha, Weighttp)}


def make_generator(name: str) -> Generator:
    """Returns the generator of this name; raises WrError when it is unknown or not installed."""
    if name not in GENERATORS:
        raise WrError(f"there is no generator {name}; there are: {', '.join(GENERATORS)}")
    generator = GENERATORS[name]()
    if not generator.is_available():
        known = ", ".join(other for other, kind in GENERATORS.items() if kind().is_available())
        raise WrError(f"the generator {name} is not installed; installed are: {known or 'none'}")
    return generator
