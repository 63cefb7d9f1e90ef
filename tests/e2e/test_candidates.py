# SPDX-License-Identifier: Apache-2.0
"""A configuration that is refused, for any reason and at any stage of a reload, changes nothing of the one in use.

    all is changed, and one mistake ─► SIGHUP, `reload` ─► refused ─► answers, counters, descriptors, threads, files ...
                                                                      are those of before
"""

import collections
import contextlib
import functools
import os
import pathlib
import re
import shutil
import signal
import socket

import pytest

from harness import build
from harness.caching import await_confirmed, await_settled
from harness.certificates import Authority, TlsClient
from harness.client import Response
from harness.content import pattern, populate
from harness.messages import request
from harness.metrics import await_status, parse, scrape, status_of, total
from harness.server import Server, await_true, free_port, section
from harness.services import DONE, HEAD, REFUSED, build_service, needs_duda, reload, web_service
from harness.ways import WAYS
from harness.websocket import WebSocket
from test_auth import basic, passwd
from test_duda_session import Browser, source
from test_shell import Shell

NEEDED = (
    "auth cache cheetah compress cors dirlisting headers "
    "health logger maintenance mandril proxy redirect respond status tls"
)
LACKS = [name for name in NEEDED.split() if not (build.PLUGINS / f"{name}.so").exists()]
pytestmark = [
    needs_duda,
    build.needs_modules,
    pytest.mark.single_protocol,
    pytest.mark.skipif(bool(LACKS) or not build.speaks("h2"), reason=f"it lacks {LACKS} or HTTP/2"),
]

MAIN = """
[SERVER]
    Listen              {http}
    Listen              {https} tls
    Listen              unix:{folder}/http.sock
    PidFile             {folder}/pid
    Workers             2
    TrustedProxies      127.0.0.1
    RealIPHeader        X-Forwarded-For
    MaxKeepAliveRequest 0
    KeepAliveTimeout    1h
    Timeout             1h
    SendTimeout         1h
    HandlerTimeout      1h
    TunnelTimeout       1h
[AUTH_LIMITS]
    FailureDelay        0s
    MaxFailures         3
    FailureTime         1h
[CACHE]
    Missing             0
[CHEETAH]
    Listen              {folder}/shell.sock
[DUDA]
    ServicesRoot        {folder}/services
[HEALTH]
    LivenessPath        /live
[LOGGER]
    Flush               1ms
[STATUS]
    Enabled             On
    Paths               On
[TLS]
    TicketKeys          {folder}/tickets
[UPSTREAM]
    Name                app
    Server              127.0.0.1:1
"""

SITE = """
[HOST]
    ServerName          localhost
    DocumentRoot        {folder}/root
    SymLink             On
[ALIAS]
    Match               /aliased
    To                  {folder}/elsewhere
[AUTH]
    Match               /members
    Users               {folder}/users
[AUTH]
    Match               /api
    Type                Bearer
    Secret              {folder}/secret
[CACHE]
    Files               Immutable
[CLIENT_LIMITS]
    Name                few
    Match               /few
    Rate                3/d
[COMPRESS]
    MinSize             100
[CORS]
    Match               /cors
    Origins             https://a.example
[DIRLISTING]
    Match               /list
    Enabled             On
[ERROR_PAGES]
    404                 /lost.html
[HEADERS]
    Set                 X-Candidate serving
[LIMITS]
    Match               /small
    MaxBodySize         100
[LOGGER]
    AccessLog           {folder}/logs/access.log
    ErrorLog            {folder}/logs/error.log
[MAINTENANCE]
    Match               /down
    FlagFile            {folder}/flag
[REDIRECT]
    Match               /old
    To                  /hello.txt
[RESPOND]
    Match               /fixed
    File                {folder}/root/hello.txt
    Header              X-Fixed yes
[REWRITE]
    Match               /rewritten
    To                  /hello.txt
[RULES]
    Match               /denied
    Action              deny
[TLS]
    Certificate         {folder}/cert
    CertificateKey      {folder}/key
[WEB_SERVICE]
    Name                web
"""

SECOND = """
[HOST]
    ServerName          second.example
    DocumentRoot        {folder}/elsewhere
[LOGGER]
    AccessLog           {folder}/logs/second.log
"""

NEXT_SECOND = """
[HOST]
    ServerName          third.example
    DocumentRoot        {folder}/root
"""

# Asks for the counters, so that what it is asked can be told apart.
WATCH = """
[HOST]
    ServerName          watch.example
    DocumentRoot        {folder}/elsewhere
"""

LOAD = """
[PLUGINS]
    Load liana
    Load tls
    Load health
    Load status
    Load maintenance
    Load respond
    Load upstream
    Load proxy
    Load fastcgi
    Load cgi
    Load redirect
    Load mandril
    Load auth
    Load cors
    Load headers
    Load logger
    Load duda
    Load {modules}/wsprobe.so
    Load cache
    Load static
    Load dirlisting
    Load cheetah
    Load compress
"""

SERVING = {
    "monkey.conf": MAIN,
    "sites/default": SITE,
    "sites/second": SECOND,
    "sites/watch": WATCH,
    "plugins.load": LOAD,
}

# The same keys with other values, and what was allowed before is not, and the other way round.
NEXT_MAIN = """
[SERVER]
    Listen              {http}
    Listen              {other}
    Listen              unix:{folder}/next-http.sock
    PidFile             {folder}/next-pid
    Workers             3
    Scheduler           fair
    LogLevel            error
    ErrorLog            {folder}/logs/next.log
    FDLimit             500
    MaxConnections      2
    MaxBodySize         10
    MemoryLimit         2M
    DiskThreads         7
    KeepAlive           Off
    KeepAliveTimeout    1s
    Timeout             1s
    SendTimeout         1s
    HandlerTimeout      5s
    TunnelTimeout       1s
    ShutdownTimeout     100ms
    DefaultMimeType     application/next
[HTTP2]
    Enabled             Off
[MIMETYPES]
    txt                 text/next
[AUTH_LIMITS]
    HashThreads         5
    CacheTime           0s
    MaxFailures         1
[CACHE]
    Memory              1M
    Descriptors         0
    Missing             0
[CHEETAH]
    Listen              {folder}/next.sock
    MaxClients          1
[COMPRESS]
    Streams             0
[CONNECTIONS]
    Action              drop
[DIRLISTING_LIMITS]
    Archives            1
[DUDA]
    ServicesRoot        {folder}/services
[HEALTH]
    ReadinessPath       /ready
[LEDGER]
    Name                next
[LOGGER]
    Buffer              32K
    Flush               1ms
[STATUS]
    Enabled             On
    MetricsPath         /next-metrics
[TLS]
    TicketLifetime      1m
    Profile             modern
[UPSTREAM]
    Name                app
    Server              127.0.0.1:1 weight=9
    Server              127.0.0.1:2
    EjectAfter          1
"""

NEXT_SITE = """
[HOST]
    ServerName          next.example
    DocumentRoot        {folder}/elsewhere
    SymLink             Off
[AUTH]
    Match               /hello.txt
    Users               {folder}/other-users
[CACHE]
    Files               Off
[CLIENT_LIMITS]
    Name                few
    Match               /few
    Rate                1000/s
    MaxClients          100
[CLIENT_LIMITS]
    Match               /
    Rate                1/d
[HEADERS]
    Set                 X-Candidate next
[LOGGER]
    AccessLog           {folder}/logs/access.log
    Format              json
[LOGGER]
    Match               /hello.txt
    AccessLog           {folder}/logs/next-access.log
[MAINTENANCE]
    FlagFile            {folder}/tickets
[RESPOND]
    Match               /
    Status              410
[RULES]
    Match               /hello.txt
    Action              deny
[WEB_SERVICE]
    Name                web
    Console             /console
[WEB_SERVICE]
    Name                more
    File                {folder}/services/web.duda
"""

NEXT_LOAD = LOAD.replace("    Load cors\n", "    Load {modules}/ledger.so\n")
NEXT = {
    "monkey.conf": NEXT_MAIN,
    "sites/default": NEXT_SITE,
    "sites/second": NEXT_SECOND,
    "sites/watch": WATCH,
    "plugins.load": NEXT_LOAD,
}

ROOT = {
    "hello.txt": b"Hello, world\n",
    "cached.txt": pattern(3000, 5),
    "text.html": b"<p>a text that can be compressed</p>\n" * 100,
    "lost.html": b"<p>lost",
    "big.bin": pattern(16 << 20, 6),
    "members/a.txt": b"for members\n",
    "few/a.txt": b"for few\n",
    "list/one.txt": b"1",
    "list/two.txt": b"22",
    "cors/a.txt": b"shared\n",
}
ADA = basic("ada", "battery9x")

ASKED = {
    "file": ("/hello.txt",),
    "cached file": ("/cached.txt",),
    "range": ("/cached.txt", "Range: bytes=10-19"),
    "compressed": ("/text.html", "Accept-Encoding: gzip"),
    "link": ("/link.txt",),
    "alias": ("/aliased/a.txt",),
    "missing": ("/nowhere",),
    "denied": ("/denied",),
    "login": ("/members/a.txt", ADA),
    "no login": ("/members/a.txt",),
    "blocked login": ("/members/a.txt", ADA, "X-Forwarded-For: 192.0.2.9"),
    "no token": ("/api/x",),
    "limit used up": ("/few/a.txt", "X-Forwarded-For: 192.0.2.1"),
    "redirect": ("/old",),
    "rewrite": ("/rewritten",),
    "fixed answer": ("/fixed",),
    "listing": ("/list/",),
    "cors": ("/cors/a.txt", "Origin: https://a.example"),
    "health": ("/live",),
    "not ready": ("/ready",),
    "service": ("/web/version",),
    "new session": ("/web/set?key=name&value=bob",),
    "console": ("/web/console",),
    "other service": ("/more/version",),
    "maintenance": ("/down",),
    "malformed path": ("/%zz",),
}
VARYING = {"date", "ratelimit", "retry-after", "set-cookie"}


def service(sessions_max=1000, works=True):
    """The service of test_duda_session.py, whose limits and result are strings, so that it is compiled once."""
    start = "if (session->init(&conf) < 0)\n"
    text = source(version=f"{sessions_max}")
    assert start in text
    return text.replace(
        start,
        f'conf.sessions_max = (unsigned)atoi(PATCHED("{sessions_max}"));\n'
        f'    if (session->init(&conf) < 0 || strcmp(PATCHED("{"works" if works else "fails"}"), "works"))\n',
    )


class Site:
    """The folder of a server, and what clients hold in it."""

    def __init__(self, folder):
        self.folder = folder
        self.conf, self.services = folder / "conf", folder / "services"
        self.taken = socket.create_server(("127.0.0.1", 0))
        self.names = {
            "folder": folder,
            "modules": build.MODULES,
            "http": f"127.0.0.1:{free_port()}",
            "https": f"127.0.0.1:{free_port()}",
            "other": f"127.0.0.1:{free_port()}",
            "taken": "127.0.0.1:%d" % self.taken.getsockname()[1],
        }
        self.write_files()
        self.make_conf(SERVING)
        await_settled(folder)  # files may be cached now
        self.server = Server("-c", self.conf, listeners=3)

    def write_files(self):
        root = populate(self.folder / "root", ROOT)
        populate(self.folder / "elsewhere", {"a.txt": b"elsewhere\n"})
        (root / "link.txt").symlink_to(self.folder / "elsewhere" / "a.txt")
        (self.folder / "logs").mkdir()
        self.ca = Authority(self.folder / "ca")
        pair, other = self.ca.make("localhost", "localhost"), self.ca.make("other", "localhost")
        self.write_secret("users", b"")
        assert passwd(self.folder / "users", "ada", password="battery9x").returncode == 0
        secrets = {"cert": pair.cert, "key": pair.key, "other-key": other.key}
        for name, path in secrets.items():
            self.write_secret(name, path.read_bytes())
        self.write_secret("tickets", os.urandom(80))
        self.write_secret("secret", b"0123456789abcdef0123456789abcdef")
        shutil.copy(self.folder / "users", self.folder / "other-users")
        build_service(self.services, "web", service())

    def write_secret(self, name, data):
        (self.folder / name).write_bytes(data)
        (self.folder / name).chmod(0o600)

    def make_conf(self, texts):
        for name, text in texts.items():
            (self.conf / name).parent.mkdir(parents=True, exist_ok=True)
            (self.conf / name).write_text(text.format_map(self.names))

    # ── the files ──

    def paths(self):
        return [path for path in sorted(self.folder.rglob("*")) if path.is_file() and path.parent.name != "logs"]

    def read_all(self):
        """What a row may change: the small files."""
        small = [path for path in self.paths() if path.stat().st_size < 1 << 20]
        return {path: (path.read_bytes(), path.stat().st_mode) for path in small}

    def restore(self):
        for path, (data, mode) in self.good.items():
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)
                path.chmod(mode)
        for path in set(self.paths()) - set(self.good):
            if path.stat().st_size < 1 << 20:
                path.unlink()

    def write_candidate(self, changes):
        self.make_conf(NEXT)
        for file, text in changes.items():
            self.change(file, text)

    def change(self, file, text):
        """Appends a text to a file; bytes replace it, None removes it."""
        path = self.folder / file
        if text is None:
            path.unlink()
        elif isinstance(text, bytes):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        else:
            with open(path, "a") as out:
                out.write(text.format_map(self.names))

    # ── clients ──

    def open_clients(self):
        server = self.server
        server.way, server.open = WAYS["h1"], lambda **rest: server.connect(**rest)
        self.client, self.watcher = server.connect(), server.connect()
        self.context = self.ca.context()
        self.others = {"h2": server.connect_h2(), "tls": server.connect(1, TlsClient, context=self.context)}
        self.shell = Shell(self.folder / "shell.sock")
        assert self.shell.ask("log level debug")  # it holds until the next reload
        self.received, self.slow = 0, server.connect(rcvbuf=4096)
        self.slow.send(request("/big.bin"))
        assert self.slow.head().status == 200
        self.socket = WebSocket(server, "/ws/plain")
        assert self.others["tls"].ask("/hello.txt").status == 200
        self.session = self.others["tls"].sock.session
        browser = Browser(server)
        assert browser.set("name", "ada") == 0
        browser.client.close()
        self.asked = {**ASKED, "session": ("/web/get?key=name", f"Cookie: web-session={browser.id}")}
        for _ in range(3):
            assert self.client.ask("/few/a.txt", "X-Forwarded-For: 192.0.2.1").status == 200
            wrong = self.client.ask("/members/a.txt", basic("ada", "?"), "X-Forwarded-For: 192.0.2.9")
            assert wrong.status == 401

    def ask_all(self):
        """What clients get, on connections that were there before and on others."""
        got = {name: facts(self.client.ask(*row)) for name, row in self.asked.items()}
        for kind, client in self.others.items():
            got[f"file over {kind}"] = facts(client.ask("/hello.txt"))
        resumed = self.server.connect(1, TlsClient, context=self.context, session=self.session)
        with self.server.connect() as client, resumed, self.server.connect(2) as local:
            news = client, resumed, local
            got["new connections"] = [facts(one.ask("/hello.txt")) for one in news]
            got["certificate"] = resumed.fingerprint, resumed.sock.session_reused
            client.send(request("/a.txt", host="second.example"))
            got["second host"] = facts(client.response())
        self.socket.assert_echo()
        assert self.slow.exactly(1000) == ROOT["big.bin"][self.received : self.received + 1000]
        self.received += 1000
        return got

    def prepare(self):
        """Asks until files are cached, and finds out what each round of questions adds to the figures."""
        self.reload(DONE)  # the first one begins a thread that stays
        self.good = self.read_all()
        self.open_clients()
        self.write_candidate(CANDIDATES["start of a plugin in one worker"][0])
        self.reload(REFUSED)  # its modules are kept until the next reload, and what WebSockets need in a third worker
        self.restore()
        for _ in range(2):
            self.ask_all()
            await_confirmed(self.client, "/cached.txt")
        self.answers = self.ask_all()
        _, before = self.look()
        self.ask_all()
        self.things, self.figures = self.look()
        self.step = growth(before, self.figures)
        self.memory = self.count_memory()

    # ── reloads ──

    def reload(self, outcome, by_shell=False):
        """Returns the lines that a SIGHUP, or the shell's command, has written."""
        seen = len(self.server.lines)
        if by_shell:
            assert self.shell.answer_to("reload")[1]["ok"] == (outcome == DONE)
        else:
            self.server.send_signal(signal.SIGHUP)

        def find_outcome():  # only in the new lines: the log becomes long
            return any(DONE in line or REFUSED in line for line in self.server.lines[seen:])

        with self.server.news:
            self.server.news.wait_for(lambda: find_outcome() or self.server.ended, 60)
            lines = "\n".join(self.server.lines[seen:])
        assert outcome in lines, lines
        return lines

    # ── what can be seen of the server ──

    def look(self):
        """(what stays the same, what is counted), when all of the questions have been counted."""
        figures = {}

        def is_settled():
            figures.update(self.read_figures())
            count = functools.partial(total, figures, "monkey_requests_total")
            ended = count(host="localhost"), count(host="localhost", status="4xx"), count(host="second.example")
            written = tuple(figures[name, frozenset()] for name in LOGS)
            return ended == written and total(figures, "monkey_connections") == HELD

        await_true(is_settled, 30, "the end of all requests")
        return self.read_things(), figures

    def read_things(self):
        things = {line: read_shell(self.shell, line) for line in SHOWN}
        # without folders: the file cache keeps some open for a moment
        things["descriptors"] = [name for name in self.server.open_files() if not os.path.isdir(name)]
        things["threads"] = sorted(path.read_text() for path in self.proc("task/*/comm"))
        things["limits"] = next(self.proc("limits")).read_text()
        maps = next(self.proc("maps")).read_text()
        things["modules"] = sorted(set(re.findall(rf"{build.LIB}\S+|\S*memfd.*", maps)))
        return things

    def list_files(self):
        return {str(path): describe_file(path) for path in sorted(self.folder.rglob("*"))}

    def read_figures(self):
        self.watcher.send(request("/metrics", host="watch.example"))
        samples = parse(self.watcher.response().body.decode())
        figures = {key: value for key, value in samples.items() if is_counted(*key)}
        for name in LOGS:
            figures[name, frozenset()] = (self.folder / "logs" / f"{name}.log").read_bytes().count(b"\n")
        figures.update({(row["rule"], frozenset()): row["hits"] for row in self.shell.ask("rules")})
        return figures

    def count_memory(self):
        return sum(row["account_bytes"] for row in self.shell.ask("memory"))

    def proc(self, what):
        return pathlib.Path(f"/proc/{self.server.pid}").glob(what)


HELD = 6  # connections of open_clients()
LOGS = ("access", "error", "second")  # of all requests, of those that failed, and of another host
SHOWN = ("config", "config second.example", "plugins", "vhosts", "rules", "log level", "status", "workers", "memory")
PASSING = {"hits", "uptime_s", "workers_memory_bytes", "account_bytes", "spare_chunks", "disk_jobs", "requests"}


def read_shell(shell, line):
    """The rows without what changes with each request."""
    rows, end = shell.answer_to(line)
    return [{key: value for key, value in row.items() if key not in PASSING} for row in [*rows, end]]


def is_counted(name, labels):
    of_time = ("process_", "monkey_worker_", "monkey_cache_revalidated", "monkey_cache_watched_folders")
    is_bucket = name.endswith(("_bucket", "_sum"))
    return not name.startswith(of_time) and not is_bucket and ("host", "watch.example") not in labels


def describe_file(path):
    info = path.lstat()
    changes = None if path.suffix == ".log" else (info.st_size, info.st_mtime_ns)
    return oct(info.st_mode), info.st_ino, changes


def facts(answer):
    return answer.status, sorted(row for row in answer.fields if row[0].lower() not in VARYING), answer.body


def difference(before, after):
    """What is not the same, by key; of lists, what is only before and only after."""
    found = {}
    for key in {*before, *after}:
        one, other = before.get(key), after.get(key)
        if isinstance(one, list) and one != other:
            one, other = (collections.Counter(map(str, rows)) for rows in (one, other))
            found[key] = [*(one - other).elements()], [*(other - one).elements()]
        elif one != other:
            found[key] = one, other
    return found


def growth(before, after):
    """By key; what has not grown is left out."""
    steps = {key: after.get(key, 0) - before.get(key, 0) for key in {*before, *after}}
    return {key: step for key, step in steps.items() if step}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The server of all rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Response, "type_is_owed", False)  # services choose it themselves
        one = Site(tmp_path_factory.mktemp("candidates"))
        try:
            one.prepare()
            yield one
            one.shell.close()
            one.server.stop()
        finally:
            one.server.kill()
            one.taken.close()


# ── candidates ──

MONKEY, DEFAULT, PLUGINS = "conf/monkey.conf", "conf/sites/default", "conf/plugins.load"
OTHER = "conf/sites/other"

# name: what is changed in files, and the message. A text is appended, bytes replace a file, None removes it.
CANDIDATES = {
    "syntax": ({MONKEY: "[SERVER\n    Workers 1\n"}, "monkey.conf"),
    "unknown key": ({MONKEY: "[SERVER]\n    Wrokers 1\n"}, "Wrokers"),
    "unknown section": ({MONKEY: "[SREVER]\n    Workers 1\n"}, "SREVER"),
    "value out of range": ({MONKEY: "[SERVER]\n    MaxRequestLine 0\n"}, "MaxRequestLine"),
    "include of a missing file": ({MONKEY: "@INCLUDE nowhere.conf\n"}, "nowhere.conf"),
    "no monkey.conf": ({MONKEY: None}, "monkey.conf"),
    "no default host": ({DEFAULT: None}, "sites/default is missing"),
    "missing DocumentRoot": ({OTHER: "[HOST]\n    ServerName bad\n    DocumentRoot /nowhere\n"}, "/nowhere"),
    "duplicate host": ({OTHER: "[HOST]\n    ServerName third.example\n    DocumentRoot /\n"}, "third.example"),
    "missing plugin": ({PLUGINS: "    Load ghost\n"}, "ghost"),
    "plugin of another interface": ({PLUGINS: "    Load {modules}/older.so\n"}, "older"),
    "plugin with a short struct": ({PLUGINS: "    Load {modules}/shorter.so\n"}, "shorter"),
    "plugin with another name": ({PLUGINS: "    Load {modules}/nameless.so\n"}, "nameless"),
    "plugin twice": ({PLUGINS: "    Load static\n"}, "static"),
    "address in use": ({MONKEY: "[SERVER]\n    Listen {taken}\n"}, "{taken}"),
    "address of another machine": ({MONKEY: "[SERVER]\n    Listen 192.0.2.1:1\n"}, "192.0.2.1"),
    "address twice": ({MONKEY: "[SERVER]\n    Listen {other}\n"}, "covered"),
    "unknown transport": ({MONKEY: "[SERVER]\n    Listen 127.0.0.1:1 carrier\n"}, "carrier"),
    "socket that is a file": ({MONKEY: "[SERVER]\n    Listen unix:{folder}/users\n"}, "users"),
    "error log in a missing folder": ({MONKEY: "[SERVER]\n    ErrorLog {folder}/nowhere/log\n"}, "nowhere"),
    "bad expression": ({DEFAULT: "[REDIRECT]\n    Match ~^/(\n    To /\n"}, "REDIRECT|Match|expression"),
    "missing users": ({"other-users": None}, "other-users"),
    "damaged users": ({"other-users": b"ada:nonsense\n"}, "other-users"),
    "short secret": (
        {DEFAULT: "[AUTH]\n    Match /api\n    Type Bearer\n    Secret {folder}/secret\n", "secret": b"short"},
        "secret",
    ),
    "two rates": ({DEFAULT: "[CLIENT_LIMITS]\n    Name few\n    Rate 7/s\n    MaxClients 100\n"}, "rate|Rate"),
    "networks missing": ({DEFAULT: "[RULES]\n    Action deny\n    File {folder}/nowhere\n"}, "nowhere"),
    "log that is a folder": ({DEFAULT: "[LOGGER]\n    Match /x\n    AccessLog {folder}/logs\n"}, "logs"),
    "log in a missing folder": ({DEFAULT: "[LOGGER]\n    Match /x\n    AccessLog {folder}/none/log\n"}, "none"),
    "format of a log": ({DEFAULT: '[LOGGER]\n    Match /x\n    AccessLog {folder}/x.log\n    Format "$nix"\n'}, "nix"),
    "shell's path is a file": ({MONKEY: "[CHEETAH]\n    Listen {folder}/users\n"}, "users"),
    "missing certificate": (
        {DEFAULT: "[TLS]\n    Certificate {folder}/none\n    CertificateKey {folder}/key\n"},
        "none",
    ),
    "key of another certificate": (
        {DEFAULT: "[TLS]\n    Certificate {folder}/cert\n    CertificateKey {folder}/other-key\n"},
        "other-key",
    ),
    "damaged ticket keys": ({"tickets": b"x" * 81, MONKEY: "[TLS]\n    TicketKeys {folder}/tickets\n"}, "tickets"),
    "service twice": ({DEFAULT: "[WEB_SERVICE]\n    Name web\n"}, "web"),
    "service without a folder": ({DEFAULT: "[WEB_SERVICE]\n    Name x\n    DataDir {folder}/none\n"}, "none"),
    "theme missing": ({DEFAULT: "[DIRLISTING]\n    Enabled On\n    Theme {folder}/none\n"}, "none"),
    "page missing": ({DEFAULT: "[MAINTENANCE]\n    FlagFile {folder}/x\n    Page {folder}/none\n"}, "none"),
    "error page missing": ({DEFAULT: "[ERROR_PAGES]\n    404 /none.html\n"}, "none.html"),
    "handler of no plugin": ({DEFAULT: "[HANDLERS]\n    /x ghost\n"}, "ghost"),
    "start of a plugin": ({MONKEY: "[LEDGER]\n    Fail generation_start\n"}, "ledger"),
    "start of a plugin for a host": ({MONKEY: "[LEDGER]\n    Fail host_start\n"}, "ledger"),
    "start of a plugin in all workers": ({MONKEY: "[LEDGER]\n    Fail worker_start\n"}, "ledger"),
    "start of a plugin in one worker": ({MONKEY: '[LEDGER]\n    Fail "worker 1"\n'}, "ledger"),
}

# A new version of the service, with lower limits for sessions, and a mistake elsewhere.
SERVICES = {
    "service that fails behind session->init()": (1, False),
    "service that has less room for sessions": (1, True),
}


def refuse(site, changes, message):
    """Has the server refuse the candidate in both ways, and compares all of it with what was before."""
    site.write_candidate(changes)
    files, expected = site.list_files(), message.format_map(site.names)
    answers, things, figures = site.answers, site.things, site.figures
    step = {**site.step, FAILED: 2}

    def is_as_before():
        site.things, site.figures = site.look()
        return not difference(things, site.things) and not difference(step, growth(figures, site.figures))

    try:
        for by_shell in (False, True):
            lines = site.reload(REFUSED, by_shell)
            assert re.search(expected, lines), lines
        left = difference(files, site.list_files())
        seen = site.ask_all()
        with contextlib.suppress(AssertionError):  # some of it ends in a thread
            await_true(is_as_before, 30)
    finally:
        site.restore()
    assert difference(answers, seen) == {}
    assert difference(things, site.things) == {}
    assert left == {}
    assert difference(step, growth(figures, site.figures)) == {}
    assert abs(site.count_memory() - site.memory) < MEMORY_BYTES


FAILED = "monkey_reloads_total", frozenset({("result", "failed")})
MEMORY_BYTES = 256 * 1024


@pytest.mark.parametrize("name", CANDIDATES)
def test_a_refused_configuration_changes_nothing(site, name):
    refuse(site, *CANDIDATES[name])


@pytest.mark.parametrize("mistake", ["two rates", "start of a plugin in one worker"])
@pytest.mark.parametrize("name", SERVICES)
def test_a_new_version_of_a_service(site, name, mistake):
    """Its duda_main() was called already, and has asked for less room than the sessions of the serving version take."""
    build_service(site.services, "web", service(*SERVICES[name]))
    refuse(site, *CANDIDATES[mistake])


def test_names_of_counters(site):
    """What only a refused configuration has is not among the figures of the serving one."""
    text = "[WEB_SERVICE]\n    Name never\n    File {folder}/services/web.duda\n"
    site.write_candidate({DEFAULT: text, MONKEY: "[SERVER]\n    Wrokers 1\n"})
    try:
        site.reload(REFUSED)
    finally:
        site.restore()
    assert [key for key in site.read_figures() if ("service", "never") in key[1]] == []


def test_without_the_mistake(site):
    """The candidate itself is used, and changes all that the tests above have seen to stay."""
    before = site.read_things()
    site.make_conf(NEXT)
    assert site.shell.answer_to("reload")[1]["ok"]
    changed = difference(before, site.read_things())
    site.restore()
    assert site.shell.answer_to("reload")[1]["ok"]
    assert {*before} - {*changed} == set()


# ── what belongs to the process, and has settings of the configuration ──


class Late:
    """A server, and candidates that are refused when all plugins have started in its worker."""

    def __init__(self, server, main):
        self.server, self.main = server, main

    def refuse(self, **names):
        path = self.server.conf / "monkey.conf"
        path.write_text(self.main.format(**names) + section("LEDGER", {"Fail": "worker_start"}))
        reload(self.server, accepted=False)

    def accept(self, **names):
        (self.server.conf / "monkey.conf").write_text(self.main.format(**names))
        reload(self.server)


@pytest.fixture
def late(serve, tmp_path):
    """Starts a server: late(sections of monkey.conf with {names}, sections of the host, names)."""

    def start(main, text, plugins, **names):
        root = populate(tmp_path / "root", {"a.txt": b"a\n"})
        plugins = ["liana", *plugins, "static", build.MODULES / "ledger.so"]
        main = section("SERVER", {"Listen": "127.0.0.1:0", "Workers": 1}) + main
        site = section("HOST", {"ServerName": "localhost", "DocumentRoot": root}) + text
        load = section("PLUGINS", {"Load": plugins})
        config = {"monkey.conf": main.format(**names), "sites/default": site, "plugins.load": load}
        return Late(serve(config=config), main)

    return start


def test_when_lines_of_logs_are_written(late, tmp_path):
    """Flush of the candidate does not hold lines of the serving configuration back."""
    log = tmp_path / "access.log"
    one = late("[LOGGER]\n    Flush {flush}\n", section("LOGGER", {"AccessLog": log}), ["logger"], flush="1ms")
    one.refuse(flush="1m")
    with one.server.connect() as client:
        assert client.ask("/a.txt").status == 200
    await_true(lambda: log.exists() and log.read_bytes().count(b"\n") == 1, 30, "the line")


def test_how_many_passwords_are_checked(late, tmp_path):
    """HashThreads and HashQueue of the candidate do not refuse logins."""
    users = tmp_path / "users"
    users.touch(0o600)
    assert passwd(users, "ada", "-C", "9", password="battery9x").returncode == 0
    limits = "[AUTH_LIMITS]\n    FailureDelay 0s\n    MaxFailures 0\n    HashThreads 1\n    HashQueue {queue}\n"
    one = late(limits, section("AUTH", {"Users": users}), ["auth"], queue=100)
    one.refuse(queue=1)
    clients = [one.server.connect() for _ in range(8)]
    for n, client in enumerate(clients):
        client.send(request("/a.txt", basic("ada", f"wrong {n}")))
    assert [client.response().status for client in clients] == [401] * 8


def test_the_number_of_a_configuration(late):
    """One that was refused has none: monkey_generation counts those that were in use."""
    one = late("[STATUS]\n    Enabled On\n", "", ["status"])
    one.refuse()
    one.accept()
    with one.server.connect() as client:
        assert total(scrape(client), "monkey_generation") == 2


def test_what_counts_paths(late):
    """Paths Off of the candidate does not end the lists of the serving configuration."""
    one = late("[STATUS]\n    Enabled On\n    Paths {paths}\n", "", ["status"], paths="On")
    with one.server.connect() as client:
        assert client.ask("/a.txt").status == 200
        one.refuse(paths="Off")
        assert client.ask("/a.txt").status == 200
        rows = await_status(client, lambda status: status["paths"], "the paths")["paths"]["busiest"]
    assert [row["requests"] for row in rows if row["path"] == "/a.txt"] == [2]


def test_what_does_not_count_paths(late):
    """Paths On of the candidate does not begin the lists that the serving configuration does not permit."""
    one = late("[STATUS]\n    Enabled On\n    Paths {paths}\n", "", ["status"], paths="Off")
    with one.server.connect() as client:
        one.refuse(paths="On")
        assert client.ask("/a.txt").status == 200
        assert status_of(client)["paths"] is None


def test_clients_of_limits(late):
    """What a client has used is counted at the Rate of the serving configuration."""
    limits = section("CLIENT_LIMITS", {"Name": "few", "Match": "/a.txt", "Rate": "{rate}"})
    one = late(limits, "", ["mandril"], rate="2/d")
    with one.server.connect() as client:
        assert [client.ask("/a.txt").status for _ in range(3)] == [200, 200, 429]
        one.refuse(rate="1000/s")
        assert client.ask("/a.txt").status == 429


# ── a service that the candidate shares with the serving configuration ──

WAITING = HEAD + """
static void wait_forever(duda_request_t *dr)
{
    (void)dr;
}

int duda_main(void)
{
    return router->get("/", wait_forever) ? 0 : -1;
}
"""


def test_the_time_for_requests_of_a_removed_service(serve_services):
    """It is the ShutdownTimeout of the configuration that serves, not that of one that was refused meanwhile."""
    load = section("PLUGINS", {"Load": ["liana", "duda", build.MODULES / "ledger.so", "static"]})
    settings = {"HandlerTimeout": "5m", "ShutdownTimeout": "100ms"}
    server = serve_services({"web": WAITING}, settings, files={"plugins.load": load})
    client, conf, site = server.connect(), server.conf / "monkey.conf", server.conf / "sites" / "default"
    client.send(request("/web/"))
    before = conf.read_text()
    conf.write_text(before.replace("100ms", "1h") + section("LEDGER", {"Fail": "worker_start"}))
    reload(server, accepted=False)
    conf.write_text(before)
    site.write_text(site.read_text().replace(web_service("web"), ""))
    reload(server)
    assert client.rest() == b"", "the request was not cut, but answered after HandlerTimeout"
