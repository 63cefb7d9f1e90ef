# SPDX-License-Identifier: Apache-2.0
"""Workloads: what a generator asks a server for. They are data: data/workloads/*.toml."""

import dataclasses
import re
from dataclasses import dataclass, field

from . import data
from .data import DATA, NAME, Key
from .environment import ANSWERS, COLD, CONGESTION_CONTROLS, FILES

# Of wr-load
CLIENTS_MAX, PIPELINE_MAX, PATHS_MAX, RATE_MAX, SECONDS_MAX = 1_000_000, 1024, 1_000_000, 100_000_000, 1_000_000
MESSAGE_MAX, REQUESTS_MAX = 1 << 24, 1_000_000_000
HEADER = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
ENDPOINTS = {"echo": "echo", "broadcast": "all"}  # of WebSockets: kinds and their paths
# What a server may have to do for a workload
VARIANTS = ("tls", "h2", "log", "gz", "hello", "proxy", "group", "roundrobin", "redis", "sqlite", "ws")
VARIANTS += ("fastcgi", "kept", "cgi", "few")
PASSING = {"proxy", "fastcgi"}  # with these, servers pass requests to a backend
BESIDE = "cgi-bin/hello"  # what else is asked for while a round runs
MANY = {"many/@n@": PATHS_MAX, f"{COLD}/@n@": 10_000}  # folders of files, and how many a workload may ask for
DESCRIPTORS_MIN = 64  # what any server needs for itself

SCHEMA = {
    "name": Key(str, required=True, example='"W1"', pattern=NAME),  # a folder has it
    "text": Key(str, required=True, example='"13 bytes, keep-alive, 64 clients"'),
    "path": Key(str, required=True, example='"13.txt"'),
    "paths": Key(int, default=1, low=1, high=PATHS_MAX, example="10000"),
    "pick": Key(str, default="sequence", choices=("sequence", "uniform", "zipf")),
    "clients": Key(int, required=True, low=1, high=CLIENTS_MAX, example="64"),
    "steps": Key(list, default=list, of=Key(int, low=1, high=CLIENTS_MAX), example="[250, 500, 1000]"),
    "connections": Key(str, default="keep-alive", choices=("keep-alive", "close", "strangers")),
    "requests_per_connection": Key(int, default=0, low=0, high=CLIENTS_MAX, example="25"),
    "requests": Key(int, default=0, low=0, high=REQUESTS_MAX, example="100000"),
    "pipeline": Key(int, default=1, low=1, high=PIPELINE_MAX, example="16"),
    "protocol": Key(str, default="1.1", choices=("1.1", "2")),
    "streams": Key(int, default=1, low=1, high=PIPELINE_MAX, example="100"),
    "rate": Key(int, default=0, low=0, high=RATE_MAX, example="10000"),
    "capacity": Key(float, default=0.0, low=0, high=1, example="0.5"),
    "fresh": Key(bool, default=False),
    "cold": Key(bool, default=False),
    "idle": Key(int, default=0, low=0, high=CLIENTS_MAX, example="5000"),
    "slow": Key(int, default=0, low=0, high=10_000, example="100"),
    "descriptors": Key(int, default=0, low=0, high=CLIENTS_MAX, example="512"),
    "congestion": Key(str, default="", choices=("", *CONGESTION_CONTROLS)),
    "websocket": Key(str, default="", choices=("", *ENDPOINTS)),
    "message": Key(int, default=125, low=1, high=MESSAGE_MAX, example="125"),
    "headers": Key(dict, default=dict, of=Key(str, pattern=(r"[^\r\n\0]*", "the value of a header: one line"))),
    "coding": Key(str, default="", choices=("", "gzip")),
    "body": Key(str, default="", choices=("", *FILES)),
    "variants": Key(list, default=list, of=Key(str, choices=VARIANTS)),
    "backend": Key(str, default="", example='"limit-memory"'),
    "more_backends": Key(list, default=list, of=str),
    "beside": Key(int, default=0, low=0, high=RATE_MAX, example="200"),
    "generator": Key(str, default="", choices=("", "wr-load", "wrk", "h2load")),
    "seconds": Key(float, low=0.1, high=SECONDS_MAX, example="2"),
}
FIELD = {"workloads": Key(list, required=True, of=str), "servers": Key(list, required=True, of=str)}
DEFAULTS = {"default": Key(list, required=True, of=FIELD)}


@dataclass(frozen=True)
class Workload:
    """`websocket`: messages of `message` bytes, each of which comes back ("echo") or reaches all clients ("broadcast").
    `connections`: "close" is a new connection for each request, "strangers" one without a TLS ticket. `pipeline`:
    requests or messages in flight on a connection; `streams`: the same with HTTP/2. `rate`: requests a second (open
    loop), or 0. `body`: the file that each request uploads, by POST. `variants`: what the servers are started with;
    `backend`: the server that each of them passes requests to, and with the variant group `more_backends`. `beside`:
    starts of a CGI program a second while the round runs, which are not counted. `generator`: where only one can do
    it. `steps`: further numbers of clients. `requests` end a round, instead of seconds. `requests_per_connection`: a
    client opens another connection after so many. `capacity`: the rate is this share of what the server could do in the
    warm-up. `fresh`: each round begins with a new process of the server, and `cold` without its files in memory, too.
    `idle` connections are open while a round runs, and `slow` clients receive a large file, neither of which is
    counted. `descriptors`: the limit that the server is started with. `congestion`: the congestion control of all.
    `witness_of`: the workload that this one measures again, with another generator."""

    name: str
    text: str
    path: str
    clients: int
    paths: int = 1
    pick: str = "sequence"
    connections: str = "keep-alive"
    pipeline: int = 1
    protocol: str = "1.1"
    streams: int = 1
    rate: int = 0
    websocket: str = ""
    message: int = 125
    headers: dict = field(default_factory=dict)
    coding: str = ""
    body: str = ""
    backend: str = ""
    more_backends: list = field(default_factory=list)
    variants: list = field(default_factory=list)
    beside: int = 0
    generator: str = ""
    seconds: float | None = None
    steps: list = field(default_factory=list)
    requests_per_connection: int = 0
    requests: int = 0
    capacity: float = 0.0
    fresh: bool = False
    cold: bool = False
    idle: int = 0
    slow: int = 0
    descriptors: int = 0
    congestion: str = ""
    witness_of: str = ""

    @property
    def tls(self):
        return "tls" in self.variants

    @property
    def is_fresh(self):
        return self.fresh or self.cold

    @property
    def is_open_loop(self):
        return bool(self.rate or self.capacity)

    @property
    def close(self):
        return self.connections != "keep-alive"

    def list_paths(self):
        """Of all requests, without the leading slash."""
        return [self.path.replace("@n@", str(n)) for n in range(self.paths)]

    def list_steps(self):
        """This workload with each of its numbers of clients."""
        return [dataclasses.replace(self, clients=clients, steps=[]) for clients in (self.clients, *self.steps)]

    def make_warm_up(self):
        """A closed loop without what makes a round special."""
        return dataclasses.replace(self, steps=[], requests=0, rate=0, capacity=0.0, idle=0, slow=0)

    def make_witness(self, generator):
        """The same, measured with another generator."""
        text = f"{self.text}; by {generator}"
        return dataclasses.replace(self, name=f"{self.name}-{generator}", text=text, generator=generator,
                                   witness_of=self.name)  # fmt: skip

    def list_backends(self):
        return (self.backend, *self.more_backends) if self.backend else ()

    def all_headers(self):
        return {**self.headers, **({"Accept-Encoding": self.coding} if self.coding else {})}

    def url(self, port, path=None):
        scheme = ("ws" if self.websocket else "http") + ("s" if self.tls else "")
        return f"{scheme}://127.0.0.1:{port}/{self.list_paths()[0] if path is None else path}"

    def line(self):
        """For the file of results."""
        return {"type": "workload", **dataclasses.asdict(self)}


def check_websocket(document, values):
    path = ENDPOINTS[values["websocket"]]
    if values["path"] != path:
        raise document.problem(["path"], f'the path of websocket = "{values["websocket"]}" is "{path}"')
    if "ws" not in values["variants"] and not values["backend"]:
        raise document.problem(["websocket"], 'the servers have to be started for it: variants = ["ws"]')
    for key, usual in (("connections", "keep-alive"), ("protocol", "1.1"), ("paths", 1), ("coding", ""), ("body", ""),
                       ("requests_per_connection", 0)):  # fmt: skip
        if values[key] != usual:
            raise document.problem([key], "WebSockets have no such thing")


def check_load(document, values):
    """What a round is made of."""
    if values["cold"] != values["path"].startswith(f"{COLD}/"):
        raise document.problem(["cold"], f'the files that are not kept in memory are those of path = "{COLD}/@n@"')
    if values["paths"] > MANY.get(values["path"], PATHS_MAX):
        raise document.problem(["paths"], f"{values['path']} has {MANY[values['path']]:,} files")
    if values["requests"] and values["seconds"]:
        raise document.problem(["seconds"], "either requests or seconds end a round")
    if values["capacity"] and (values["rate"] or values["requests"]):
        raise document.problem(["capacity"], "the rate of an open loop is given once, and seconds end it")
    if values["requests_per_connection"] and values["connections"] != "keep-alive":
        raise document.problem(["requests_per_connection"], "only connections that are kept have several requests")
    if 0 < values["descriptors"] < DESCRIPTORS_MIN:
        raise document.problem(["descriptors"], f"{values['descriptors']} is too low: {DESCRIPTORS_MIN} is the least")


def check_fit(document, values):
    """Keys that contradict each other."""
    check_load(document, values)
    if bool(PASSING & set(values["variants"])) != bool(values["backend"]):
        raise document.problem(
            ["backend"], 'only servers with variants = ["proxy"] or ["fastcgi"] have a backend, and all of these'
        )
    if values["beside"] and "cgi" not in values["variants"]:
        raise document.problem(["beside"], 'the servers have to be started for it: variants = ["cgi"]')
    if ("group" in values["variants"]) != (len(values["more_backends"]) == 3):
        raise document.problem(["more_backends"], 'variants = ["proxy", "group"] have three more backends')
    if values["websocket"]:
        check_websocket(document, values)
        return
    if values["paths"] > 1 and "@n@" not in values["path"]:
        raise document.problem(["path"], 'with several paths it holds @n@, for example "many/@n@"')
    known = [*FILES, *ANSWERS]
    if values["paths"] == 1 and values["path"] not in known:
        raise document.problem(["path"], f"there is no file {values['path']!r}; {data.suggest(values['path'], known)}")
    if values["paths"] > 1 and values["path"] not in MANY:
        raise document.problem(["path"], f"several paths are those of {' or '.join(MANY)}")
    if values["connections"] != "keep-alive" and values["pipeline"] > 1:
        raise document.problem(["pipeline"], "a connection for each request has no pipelining")
    for name in values["headers"]:
        if not re.fullmatch(HEADER, name):
            raise document.problem(["headers", name], f"{name!r} is not the name of a header")
    if values["protocol"] == "1.1" and values["streams"] > 1:
        raise document.problem(["streams"], 'only HTTP/2 has streams: set protocol = "2", or use pipeline')
    if values["protocol"] == "2" and "h2" not in values["variants"]:
        raise document.problem(["protocol"], 'the servers have to be started for HTTP/2: variants = ["h2"]')
    if values["connections"] == "strangers" and "tls" not in values["variants"]:
        raise document.problem(["connections"], 'only TLS has strangers; without it write "close"')


def load_workload(file, /, **changes):
    """The workload of data/workloads/<file>.toml, or of a path that ends in .toml, with some keys changed."""
    document, values = data.read(data.find_file("workloads", file), SCHEMA)
    check_fit(document, values)
    return Workload(**{**values, **changes})


def read_defaults():
    """[{"workloads": names, "servers": names}]"""
    return data.read(DATA / "defaults.toml", DEFAULTS)[1]["default"]


def choose_defaults(names=()):
    """What is measured for these workloads, or without any: {"workloads": names, "servers": names}."""
    defaults = read_defaults()
    found = [each for each in defaults if set(names) & set(each["workloads"])] or defaults[:1]
    servers = dict.fromkeys(server for each in found for server in each["servers"])
    return {"workloads": list(names) or found[0]["workloads"], "servers": list(servers)}
