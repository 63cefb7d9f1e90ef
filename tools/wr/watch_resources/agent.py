# SPDX-License-Identifier: Apache-2.0
"""The generator on another machine, over ssh, so that a real network lies between it and the server.

    wr ── ssh, one connection ──► sh: cat                 as long as wr lives; also measures the round trip
       ── ssh through it ───────► sh: wr-load, watchdog   one for each round

wrap() makes a command for this machine of one for the agent, so that a round runs it as it runs a generator here:
output and exit status are those of the generator. The watchdog ends the generator when its standard input ends, which
happens when wr, its ssh or the connection ends. Clocks of both machines are never compared.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import os
import platform
import re
import select
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence
from urllib.parse import urlsplit

import click

from . import WrError

CONNECT_SECONDS = 10
CALL_SECONDS = 60
END_SECONDS = 5
PINGS = 20
GENERATOR = "wr-load"
FILE_OPTIONS = ("--paths", "--body", "--ca")  # of wr-load; the files are copied
OPTIONS = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}", "-o", "ServerAliveInterval=5",
           "-o", "ControlPersist=no", "-T")

# Scripts for the agent's sh; none contains a single quote.
HELLO = 'echo wr-agent "$(uname -s)" "$(uname -m)" "$(uname -r)" "$(getconf _NPROCESSORS_ONLN)"; exec cat'
FOLDER = 'd=${XDG_CACHE_HOME:-$HOME/.cache}/wr; f=$d/$1; '
FIND = FOLDER + 'if [ -x "$f" ]; then printf %s "$f"; fi'
STORE = FOLDER + ('umask 077; mkdir -p "$d" && cat >"$f.$$" && [ "$(wc -c <"$f.$$")" -eq "$2" ] && '
                  'chmod 700 "$f.$$" && mv "$f.$$" "$f" && printf %s "$f"; status=$?; rm -f "$f.$$"; exit $status')
RUN = ('exec 3<&0 </dev/null; "$@" 3<&- & child=$!; '
       '{ while read -r line; do :; done <&3; kill -TERM $child; sleep 2; kill -KILL $child; } >/dev/null 2>&1 & '
       'watchdog=$!; exec 3<&-; wait $child; status=$?; kill $watchdog 2>/dev/null; exit $status')

# What ssh says, and what it means for the user.
FAILURES = (
    (r"Could not resolve hostname", "{host} is not known: check the name"),
    (r"Permission denied|Too many authentication failures",
     "{host} does not let you in without a password: make a key for it, and try `ssh {host}`"),
    (r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED",
     "the key of {host} is not in known_hosts, or is another one: connect once with `ssh {host}` and compare it"),
    (r"Connection refused", "{host} has no ssh server on that port"),
    (r"timed out|No route to host|Network is unreachable", "{host} cannot be reached"),
)


@dataclass(frozen=True)
class Output:
    stdout: str
    stderr: str
    status: int


@dataclass(frozen=True)
class Machine:
    """What the agent says of itself, for the file of results."""

    system: str
    architecture: str
    kernel: str
    cores: int


def refuse_loopback(url: str) -> None:
    """The agent would take such a URL for itself."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback or ipaddress.ip_address(host).is_unspecified:
            host = "localhost"
    if host == "localhost" or host.endswith(".localhost"):
        raise WrError(f"{url} would be the agent itself: write the name or address by which it reaches the server")


def explain(host: str, stderr: str) -> str:
    for pattern, sentence in FAILURES:
        if re.search(pattern, stderr):
            return sentence.format(host=host)
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return f"ssh to {host} failed: {lines[-1] if lines else 'it said nothing'}"


class Agent:
    """A machine that runs generators. A context manager: at its end everything that it started has ended."""

    def __init__(self, target: str, wr_load: str | None = None, ssh: Sequence[str] = ("ssh",)):
        if not re.fullmatch(r"[^\s-]\S*", target):
            raise WrError(f"--agent {target!r} is no USER@HOST")
        self.target, self.wr_load, self.ssh = target, wr_load, list(ssh)
        self.host = target.rpartition("@")[2]
        self.files: dict[str, str] = {}  # path here: path there
        self.installed = ""
        self.master: subprocess.Popen[bytes] | None = None
        self.folder, self.keeper = "", -1
        self.machine: Machine | None = None
        self.buffer = b""

    def __enter__(self) -> Agent:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── the connection ──

    def connect(self) -> None:
        if not shutil.which(self.ssh[0]):
            raise WrError(f"there is no program {self.ssh[0]}: install the Debian package openssh-client")
        # not below a long TMPDIR: the path of a socket has at most 107 bytes
        self.folder = tempfile.mkdtemp(prefix="wr-", dir="/tmp" if os.access("/tmp", os.W_OK) else None)
        try:
            os.mkfifo(self.fifo)
            self.keeper = os.open(self.fifo, os.O_RDWR | os.O_CLOEXEC)  # standard input of all rounds; never written
            with open(self.errors, "wb") as errors:
                self.master = subprocess.Popen(self.ssh_command("-M", script=HELLO), stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
            self.machine = self.read_hello()
        except BaseException:
            self.close()
            raise

    @property
    def fifo(self) -> str:
        return f"{self.folder}/input"

    @property
    def errors(self) -> str:
        return f"{self.folder}/errors"

    def ssh_command(self, *options: str, script: str, arguments: Sequence[str] = ()) -> list[str]:
        """Words for the login shell of the agent: `sh -c SCRIPT sh ARGUMENTS`."""
        return [*self.ssh, *OPTIONS, "-S", f"{self.folder}/control", *options, "--", self.target,
                shlex.join(["sh", "-c", script, "sh", *arguments])]

    def read_hello(self) -> Machine:
        """Skips what the files of the agent's shell print before."""
        deadline = time.monotonic() + 2 * CONNECT_SECONDS
        while line := self.read_line(deadline):
            words = line.decode("utf-8", "replace").split()
            if words[:1] == ["wr-agent"] and len(words) >= 4:
                return Machine(words[1], words[2], words[3], int(words[4]) if words[4:] and words[4].isdigit() else 0)
        raise WrError(self.explain_end())

    def read_line(self, deadline: float) -> bytes:
        """Returns b"" when ssh has ended, or at the deadline."""
        assert self.master and self.master.stdout
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.master.stdout], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self.master.stdout.fileno(), 65536) if ready else b""
            if not data:
                return b""
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line + b"\n"

    def explain_end(self) -> str:
        assert self.master
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.master.wait(1)
        if self.master.poll() is None:
            return f"{self.host} did not answer within {2 * CONNECT_SECONDS} s"
        return explain(self.host, Path(self.errors).read_text(encoding="utf-8", errors="replace"))

    def close(self) -> None:
        """Ends the connection, and with it all generators there."""
        if self.keeper >= 0:
            os.close(self.keeper)
            self.keeper = -1
        if self.master:
            assert self.master.stdin and self.master.stdout
            with contextlib.suppress(OSError):
                self.master.stdin.close()
            for end in (self.master.terminate, self.master.kill):
                try:
                    self.master.wait(END_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    end()
            self.master.wait()
            self.master.stdout.close()
            self.master = None
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = ""

    # ── calls ──

    def check_connection(self) -> None:
        if not self.master or self.master.poll() is not None:
            raise WrError(f"the connection to {self.host} has ended")

    def call(self, script: str, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        self.check_connection()
        try:
            return subprocess.run(self.ssh_command(script=script, arguments=arguments), input=data, capture_output=True,
                                  timeout=CALL_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise WrError(f"{self.host} did not answer within {CALL_SECONDS} s") from error

    def round_trip_us(self) -> dict[str, float]:
        """From a line sent to its echo: the network's, and the work of both ssh programs."""
        self.check_connection()
        assert self.master and self.master.stdin
        times = []
        for number in range(PINGS):
            line, begin = b"ping %d\n" % number, time.perf_counter()
            with contextlib.suppress(OSError):
                self.master.stdin.write(line)
                self.master.stdin.flush()
            if self.read_line(time.monotonic() + CONNECT_SECONDS) != line:
                raise WrError(f"the connection to {self.host} has ended")
            times.append((time.perf_counter() - begin) * 1e6)
        return {"min": round(min(times), 1), "median": round(statistics.median(times), 1)}

    def copy(self, path: str, name: str) -> str:
        """Returns the path of the file there. The name has a checksum, so that each version is copied once."""
        if path in self.files:
            return self.files[path]
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise WrError(f"{path} cannot be read: {error.strerror}") from error
        name = f"{name}-{hashlib.sha256(data).hexdigest()[:20]}"
        done = self.call(FIND, name)
        if not done.stdout:
            done = self.call(STORE, name, str(len(data)), data=data)
        if done.returncode or not done.stdout:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise WrError(f"{path} cannot be copied to {self.host}: {said[-1] if said else 'it was cut'}")
        self.files[path] = done.stdout.decode()
        return self.files[path]

    def install(self) -> str:
        """Copies wr-load and starts it once. Another architecture needs a wr-load in the agent's PATH."""
        assert self.machine
        if (self.machine.system, self.machine.architecture) != (platform.system(), platform.machine()):
            return self.find(f"{self.host} is {self.machine.system} on {self.machine.architecture}, and {GENERATOR} "
                             f"here is for {platform.system()} on {platform.machine()}: install wr there")
        if not self.wr_load:
            return self.find(f"there is no {GENERATOR} here or on {self.host}: ./dev build makes it")
        there = self.copy(self.wr_load, GENERATOR)
        done = self.call('"$@" </dev/null', there, "--version")
        if done.returncode in (126, 127) or b"GLIBC" in done.stderr:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise WrError(f"{GENERATOR} does not run on {self.host}: {said[-1] if said else done.returncode}")
        return there

    def find(self, otherwise: str, program: str = GENERATOR) -> str:
        path = self.call('command -v "$1"', program).stdout.decode("utf-8", "replace").strip()
        if not path:
            raise WrError(otherwise)
        return path

    # ── generators ──

    def translate(self, command: Sequence[str]) -> list[str]:
        """The command with the program of the agent and with copies of the files that it names."""
        program, *arguments = command
        name = os.path.basename(program)
        if name == GENERATOR and not self.installed:
            self.installed = self.install()
        there = self.installed if name == GENERATOR else self.find(f"there is no {name} on {self.host}", name)
        if name == GENERATOR:
            for at, word in enumerate(arguments):
                option, equals, path = word.partition("=")
                if option in FILE_OPTIONS and equals:
                    arguments[at] = f"{option}={self.copy(path, 'file')}"
                elif option in FILE_OPTIONS and at + 1 < len(arguments):
                    arguments[at + 1] = self.copy(arguments[at + 1], "file")
        return [there, *arguments]

    def wrap(self, command: Sequence[str]) -> list[str]:
        """The command that runs this one on the agent; to be started here, with any standard input."""
        self.check_connection()
        words = self.ssh_command(script=RUN, arguments=self.translate(command))
        return ["sh", "-c", f'exec "$@" <{shlex.quote(self.fifo)}', "sh", *words]

    def run(self, command: Sequence[str], on_progress: Callable[[str], None] | None = None) -> Output:
        """Runs it to its end; lines of its standard error go to `on_progress` as they come."""
        process = subprocess.Popen(self.wrap(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        assert process.stdout and process.stderr
        try:
            with tempfile.TemporaryFile("w+") as stdout:
                lines = self.stream(process, stdout, on_progress)
                stdout.seek(0)
                output = Output(stdout.read(), "".join(lines), process.wait())
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
            process.stdout.close()
            process.stderr.close()
        if output.status == 255:
            raise WrError(f"the connection to {self.host} broke: {explain(self.host, output.stderr)}")
        return output

    @staticmethod
    def stream(process: subprocess.Popen[str], stdout, on_progress: Callable[[str], None] | None) -> list[str]:
        """Reads both outputs until their end; returns the lines of standard error."""
        sources = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
        errors, open_ends, lines = process.stderr.fileno(), set(sources), []
        while open_ends:
            for fd in select.select(list(open_ends), [], [])[0]:
                data = os.read(fd, 65536)
                sources[fd] += data
                if not data:
                    open_ends.discard(fd)
                while fd == errors and (b"\n" in sources[fd] or (not data and sources[fd])):
                    line, _, sources[fd] = sources[fd].partition(b"\n")
                    lines.append(line.decode("utf-8", "replace") + "\n")
                    if on_progress:
                        on_progress(lines[-1].rstrip("\n"))
        stdout.write(next(data for fd, data in sources.items() if fd != errors).decode("utf-8", "replace"))
        return lines


class RemoteGenerator:
    """A generator as rounds know it, whose command runs on the agent."""

    cpus = 1 << 16  # not known

    def __init__(self, generator: Any, agent: Agent):
        self.generator, self.agent = generator, agent

    def __getattr__(self, name: str) -> Any:
        return getattr(self.generator, name)

    def command(self, load: Any, folder: str) -> list[str]:
        refuse_loopback(load.url)
        return self.agent.wrap(self.generator.command(load, folder))


@contextlib.contextmanager
def open_agent(target: str | None, generator: Any, url: str) -> Iterator[tuple[Any, dict[str, object]]]:
    """Gives the generator as it runs on the agent, and what the file of results says; without a target, as it is."""
    if not target:
        yield generator, {}
        return
    refuse_loopback(url)
    with Agent(target, generator.program) as agent:
        yield RemoteGenerator(generator, agent), describe(agent)


def describe(agent: Agent) -> dict[str, object]:
    """What a file of results says of the agent."""
    assert agent.machine
    return {"target": agent.target, "system": agent.machine.system, "architecture": agent.machine.architecture,
            "kernel": agent.machine.kernel, "cores": agent.machine.cores, "round_trip_us": agent.round_trip_us()}


def find_wr_load() -> str | None:
    """Next to this program, in the build of a checkout, or in PATH."""
    from .generators import find_program

    return find_program(GENERATOR)


@click.command("agent", short_help="Check a machine that is to run the generator.")
@click.argument("target", metavar="USER@HOST")
@click.option("--ssh-config", type=click.Path(exists=True, dir_okay=False), help="A configuration file of ssh.")
def command(target: str, ssh_config: str | None) -> None:
    """Connects to USER@HOST, copies wr-load there, and measures the round trip.

    Rounds use the agent with --agent USER@HOST. ssh must let you in without a password, and know the key of the host.
    The URL must name the server as the agent sees it. When wr ends, the generator ends too.

    \b
    wr agent load@generator.example
    wr -p PID -u http://192.0.2.7:2001/ -c 64 --agent load@generator.example
    """
    ssh = ("ssh", "-F", ssh_config) if ssh_config else ("ssh",)
    with Agent(target, find_wr_load(), ssh) as agent:
        there = agent.install()
        about = describe(agent)
        trip = about["round_trip_us"]
        click.echo(f"{agent.host}: {about['system']} {about['kernel']}, {about['architecture']}, {about['cores']} CPUs")
        click.echo(f"round trip over ssh: {trip['min']:.0f} µs at least, median {trip['median']:.0f} µs")
        click.echo(f"{GENERATOR}: {there}")
