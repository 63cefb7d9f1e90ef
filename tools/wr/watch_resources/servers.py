# SPDX-License-Identifier: Apache-2.0
"""Servers: data/servers/*.toml says how each is configured and started; this starts them, asks them and ends them."""

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass

from . import builds, data
from .data import DATA, Key, Problem
from .environment import ANSWERS
from .proc import list_family
from .redis import Redis

START_SECONDS, STOP_SECONDS, ACCEPT_SECONDS = 30, 5, 5  # 10,000 certificates take ten
POLL_SECONDS = 0.02  # between two attempts to connect to a server that starts
LAST_LINES = 5  # of a server's output, in messages
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, CAP_SYS_RESOURCE = 1, 24, 24
PLACEHOLDER = re.compile(r"@(\w+)@")
BUILTINS = ("program", "port", "root", "folder", "cert", "key", "pem", "built", "peers", "checkout")
BUILTINS += ("redis", "backend", "backend2", "backend3", "backend4")  # ports of other servers
PEERS = DATA / "peers"  # the sources of servers that are built
CHECKOUT = DATA.parent.parent.parent
# Of programs, before what the system has: next to this program (a build, an installation), then the release.
PLACES = pathlib.Path(sys.argv[0]).absolute().parent, CHECKOUT / "build/release/bin"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
PARTS = {
    "config": Key(dict, default=dict, of=str),
    "values": Key(dict, default=dict, of=str),
    "build": Key(list, default=list, of=str, example='["cc", "-o", "@built@/hello", "@peers@/own/hello.c"]'),
    "compiler": Key(list, default=list, of=str, example='["cc", "--version"]'),
}
SCHEMA = {
    "name": Key(str, required=True, example='"nginx"', pattern=data.NAME),
    "text": Key(str, required=True, example='"nginx"'),
    "limit": Key(bool, default=False),
    "keep_alive": Key(bool, default=True),
    "package": Key(str, default=""),
    "conflicts": Key(str, default=""),
    "needs": Key(list, default=list, of=str, example='["/usr/include/microhttpd.h"]'),
    "programs": Key(list, required=True, of=str, example='["nginx"]'),
    "command": Key(list, required=True, of=str, example='["@program@", "-c", "@folder@/some.conf"]'),
    "version": Key(list, default=list, of=str, example='["@program@", "--version"]'),
    "files": Key(list, default=list, of=str, example='["13.txt"]'),
    "variants": Key(dict, default=dict, of=Key(dict, of=PARTS)),
    **PARTS,
}

libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Kind:
    """A server file. `keep_alive`: it can keep connections. `files`: the only ones that it can serve, or none for all.
    `needs`: files without which it is not installed. `conflicts`: a package with which its own cannot be installed.
    `build`: a command that is run once before the server is started, with its results in @built@."""

    name: str
    text: str
    limit: bool
    keep_alive: bool
    package: str
    conflicts: str
    needs: list
    programs: list
    command: list
    version: list
    files: list
    variants: dict
    config: dict
    values: dict
    build: list
    compiler: list

    def lacks(self, workload):
        """What keeps it from a workload, or nothing."""
        missing = [name for name in workload.variants if name not in self.variants]
        if missing and not self.limit:
            return f"it has no variant +{missing[0]}"
        if missing:
            return f"a limit server knows no {missing[0]}"
        if not self.keep_alive and not workload.close:
            return "it closes a connection after each answer"
        if self.files and not workload.backend and not set(workload.list_paths()[:1]) <= set(self.files):
            return "it serves only " + ", ".join(self.files)
        return ""


def check_placeholders(document, values):
    """Each @name@ is a builtin or one of [values]; variants set only what [values] has, so that none is misspelt."""
    known = {*BUILTINS, *values["values"]}
    parts = [(("config",), values["config"])]
    parts += [(("variants", name, "config"), each["config"]) for name, each in values["variants"].items()]
    for keys, texts in parts:
        for name in texts:
            if not re.fullmatch(data.RELATIVE[0], name):
                raise document.problem((*keys, name), f"{name!r} is not {data.RELATIVE[1]}")
    places = [(("config", name), text) for name, text in values["config"].items()]
    places += [(("values", name), text) for name, text in values["values"].items()]
    places += [((key,), " ".join(values[key])) for key in ("command", "version", "build", "compiler")]
    for variant, parts in values["variants"].items():
        for name, text in parts["values"].items():
            keys = "variants", variant, "values", name
            if name not in values["values"]:
                raise document.problem(keys, f"[values] has no such name; {data.suggest(name, values['values'])}")
            places.append((keys, text))
        places += [(("variants", variant, "config", name), text) for name, text in parts["config"].items()]
        places += [(("variants", variant, key), " ".join(parts[key])) for key in ("build", "compiler")]
    for keys, text in places:
        for name in PLACEHOLDER.findall(text):
            if name not in known:
                raise document.problem(keys, f"@{name}@ is no placeholder; {data.suggest(name, sorted(known))}")


def load_kind(name):
    """The server of data/servers/<name>.toml, or of a path that ends in .toml."""
    document, values = data.read(data.find_file("servers", name), SCHEMA)
    check_placeholders(document, values)
    return Kind(**{field.name: values[field.name] for field in dataclasses.fields(Kind)})


@dataclass(frozen=True)
class Choice:
    """A server as the command line names it: NAME[+VARIANT...][=PROGRAM]."""

    label: str  # in results: base+log
    kind: Kind
    variants: tuple
    program: str  # "" where it is not installed
    backends: tuple = ()  # the choices of the servers that it passes requests to
    descriptors: int = 0  # the limit that it is started with; 0: that of wr

    def for_workload(self, workload):
        """With what the workload needs."""
        if self.kind.limit:
            return self
        return dataclasses.replace(self.with_variants(workload.variants), backends=workload.list_backends(),
                                   descriptors=workload.descriptors)  # fmt: skip

    def with_variants(self, more):
        added = [name for name in more if name not in self.variants]
        return dataclasses.replace(
            self, label="+".join([self.label, *added]), variants=tuple(dict.fromkeys([*self.variants, *added]))
        )

    def list_parts(self):
        """[variants] of the file that it is started with; later ones replace what earlier ones have set."""
        return [parts for name, parts in self.kind.variants.items() if set(name.split("+")) <= set(self.variants)]

    def list_values(self):
        return {name: text for values in (self.kind.values, *(parts["values"] for parts in self.list_parts()))
                for name, text in values.items()}  # fmt: skip

    def list_config(self):
        return {name: text for config in (self.kind.config, *(parts["config"] for parts in self.list_parts()))
                for name, text in config.items()}  # fmt: skip

    def find_build(self):
        """(command, the compiler's version command), with names that are still to be replaced; none: ([], [])."""
        found = [(self.kind.build, self.kind.compiler)]
        found += [(parts["build"], parts["compiler"]) for parts in self.list_parts()]
        return next((each for each in reversed(found) if each[0]), ([], []))

    def is_built(self):
        return bool(self.program and self.find_build()[0])

    def build_key(self):
        """The same for choices that share what is built."""
        return self.kind.name, *self.fill_build("")[0]

    def fill_build(self, folder):
        names = {"program": self.program, "built": folder, "peers": PEERS, "checkout": CHECKOUT}
        return tuple([fill_word(word, names, self.list_values()) for word in words] for words in self.find_build())


def fill_word(text, names, values):
    """Replaces @name@; values may hold further names."""

    def find(match):
        name = match[1]
        return fill_word(values[name], names, values) if name in values else str(names[name])

    return PLACEHOLDER.sub(find, text)


def find_program(names):
    for name in names:
        for place in PLACES:
            path = pathlib.Path(place) / os.path.expanduser(name)
            if path.is_file() and os.access(path, os.X_OK):
                return str(path)
        if found := shutil.which(name, path=SYSTEM_PATH):
            return found
    return ""


def parse_choice(text):
    """A Choice; a name without a file of its own takes that of its program's name: base=/path/to/monkey."""
    label, _, program = text.partition("=")
    name, *variants = label.split("+")
    if program and not (os.path.isfile(program) and os.access(program, os.X_OK)):
        raise Problem(f"-s {text}: {program} is no program")
    is_known = name.endswith(".toml") or name in data.list_names("servers")
    kind = load_kind(name if is_known or not program else os.path.basename(program))
    for variant in variants:
        if variant not in kind.variants:
            raise Problem(f"-s {text}: {kind.name} has no variant +{variant}; {data.suggest(variant, kind.variants)}")
    label = "+".join([kind.name if name.endswith(".toml") else name, *variants])
    if not program and all(map(os.path.exists, kind.needs)):
        program = find_program(kind.programs)
    return Choice(label, kind, tuple(variants), os.path.abspath(program) if program else "")


def free_port():
    """Below the ports that the kernel gives to clients, which may take a free one of theirs at any time."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first_of_clients = int(file.read().split()[0])
    for _ in range(1000):
        port = random.randrange(max(1024, min(10000, first_of_clients - 1000)), first_of_clients)
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
            return port
    raise Problem("no port below those of clients is free")


def make_certificate(folder):
    """ECDSA P-256, as most sites have it, also for the hosts of `wr scale`.
    {"cert": path, "key": path, "pem": both in one file}"""
    cert, key, pem = (os.path.join(folder, name) for name in ("cert.pem", "key.pem", "both.pem"))
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    names = "subjectAltName=DNS:localhost,DNS:*.hosts.test,IP:127.0.0.1"
    command = [*command.split(), "-extensions", "usr_cert", "-addext", names, "-out", cert, "-keyout", key]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        raise Problem("TLS needs the program openssl to make a certificate: install the package openssl") from None
    except subprocess.CalledProcessError as error:
        raise Problem(f"openssl cannot make a certificate: {error.stderr.decode().strip()}") from None
    with open(pem, "w", encoding="ascii") as file:
        file.write(pathlib.Path(cert).read_text("ascii") + pathlib.Path(key).read_text("ascii"))
    os.chmod(key, 0o600)
    os.chmod(pem, 0o600)
    return {"cert": cert, "key": key, "pem": pem}


class Names(dict):
    """What replaces @name@; a certificate is made when it is asked for."""

    def __missing__(self, name):
        os.makedirs(self["folder"], exist_ok=True)
        self.update(make_certificate(self["folder"]))
        return self[name]


class Server:
    """A server with its own folder and port; `built` is that of builds.build_all(), or of its own."""

    def __init__(self, choice, folder, root, cpu=None, built=None):
        self.choice, self.name, self.kind, self.cpu = choice, choice.label, choice.kind, cpu
        self.folder, self.root, self.port = str(folder), str(root), free_port()
        self.config, self.process, self.group = {}, None, None
        self.rate = 0  # of an open loop, where it depends on what this server can do
        self.congestion_control = ""  # that it is to use, where a contest checks it
        if not choice.program:
            package = f": install the Debian package {self.kind.package}" if self.kind.package else ""
            raise Problem(f"{self.name} is not installed{package or ', nor is it in ' + str(PLACES[-1])}")
        self.built = self.find_built(built or {})
        self.names = Names(program=choice.program, port=self.port, root=root, folder=folder, peers=PEERS,
                           checkout=CHECKOUT, built=self.built.folder if self.built else folder)  # fmt: skip
        self.redis = self.make_redis() if "redis" in choice.variants else None
        self.backends = [self.make_backend(name, number, built) for number, name in enumerate(choice.backends, 1)]
        self.values, self.texts = choice.list_values(), choice.list_config()
        self.command = [self.fill(word) for word in self.kind.command]

    def find_built(self, built):
        """Raises a Problem when it cannot be built."""
        found = built.get(self.choice.build_key()) or builds.build(self.choice, os.path.join(self.folder, "built"))
        if isinstance(found, Problem):
            raise found
        return found

    def make_redis(self):
        """The server that it asks; the port is @redis@."""
        self.names["redis"] = free_port()
        program = find_program(["redis-server"])
        return Redis(program, self.folder, self.names["redis"], ANSWERS["value/"], self.tie_child)

    def make_backend(self, choice, number, built):
        """
        A server that it passes requests to, on the CPU of the generator. The port of the first one is @backend@, those
        of others @backend2@ to @backend4@.
        """
        name = f"backend{number}" if number > 1 else "backend"
        backend = Server(parse_choice(choice), os.path.join(self.folder, name), self.root, built=built)
        self.names[name] = backend.port
        return backend

    def list_helpers(self):
        return [helper for helper in (self.redis, *self.backends) if helper]

    @property
    def helpers(self):
        """The ids of processes that work for it, but are not it, with those that they have started."""
        return tuple(pid for helper in self.list_helpers() if helper.process for pid in list_family(helper.pid))

    def fill(self, text):
        return fill_word(text, self.names, self.values)

    def write_config(self):
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o755)  # servers that root starts change to another user
        for name, text in self.texts.items():
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.config[name] = self.fill(text)
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.config[name])

    @staticmethod
    def tie_child():
        """In the new process: it ends with this one."""
        libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)

    def prepare_child(self):
        """The same, and it runs on the CPU of servers."""
        self.tie_child()
        if self.cpu is not None:
            os.sched_setaffinity(0, {self.cpu})
        if self.choice.descriptors:
            libc.prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0)  # root could raise the limit again
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.choice.descriptors,) * 2)

    def start(self):
        self.write_config()
        try:
            for helper in self.list_helpers():
                helper.start()
            self.start_program()
        except BaseException:
            self.stop()
            raise

    def start_program(self, poll_seconds=POLL_SECONDS):
        try:
            with open(os.path.join(self.folder, "output"), "wb") as output:
                self.process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    start_new_session=True,
                    preexec_fn=self.prepare_child,
                )
        except OSError as error:
            raise Problem(f"{self.name} does not start: {' '.join(self.command)}: {error.strerror}") from None
        self.group = self.process.pid
        self.wait_until_ready(poll_seconds)

    def wait_until_ready(self, poll_seconds):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise Problem(self.tell(f"does not start: it ended with {self.end_status()}"))
            if self.accepts():
                return
            time.sleep(poll_seconds)
        raise Problem(self.tell(f"does not start: no answer on port {self.port} within {START_SECONDS} s"))

    def accepts(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), ACCEPT_SECONDS).close()
            return True
        except OSError:
            return False

    @property
    def pid(self):
        return self.process.pid

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def end_status(self):
        code = self.process.returncode
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"

    def check_alive(self):
        if not self.is_alive():
            raise Problem(self.tell(f"died: {self.end_status()}"))

    def check_health(self):
        """Raises a Problem when it has died or does not accept connections."""
        self.check_alive()
        if not self.accepts():
            raise Problem(self.tell("hangs: it accepts no connections"))

    def last_output(self):
        """The last lines that it printed or wrote into its error logs."""
        lines = []
        for path in [os.path.join(self.folder, "output"), *map(str, pathlib.Path(self.folder).glob("*.err*"))]:
            try:
                with open(path, "rb") as file:
                    file.seek(max(0, os.path.getsize(path) - 4096))
                    lines += file.read().decode("utf-8", "replace").splitlines()
            except OSError:
                pass
        return [line.strip() for line in lines if line.strip()][-LAST_LINES:]

    def tell(self, text):
        """A sentence about this server, with its command and last output."""
        lines = self.last_output()
        last = "\n  ".join(["; its last output:", *lines]) if lines else "; it printed nothing"
        return f"{self.name} {text}; its command was {' '.join(self.command)}{last}"

    def restart(self):
        """Another process with the same configuration; what works for it continues."""
        self.stop_program()
        self.start_program()

    def stop(self):
        """Ends it and all processes of its session, by their ids, and what works for it."""
        for helper in self.list_helpers():
            helper.stop()
        self.stop_program()

    def stop_program(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.group, signal.SIGKILL)  # workers that outlived it; itself, where it hangs
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()

    def version(self):
        return builds.read_version([self.fill(word) for word in self.kind.version]) if self.kind.version else ""

    def line(self):
        """For the file of results."""
        return {
            "type": "server",
            "name": self.name,
            "text": self.kind.text,
            "version": self.version(),
            "command": self.command,
            "config": self.config,
            "limit": self.kind.limit,
            "build": self.built.command if self.built else [],
            "compiler": self.built.compiler if self.built else "",
        }
