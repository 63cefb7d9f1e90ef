# SPDX-License-Identifier: Apache-2.0
"""What a reload takes away is taken away, also from clients whose connections were open before.

    hosts with all rights ─► clients use them ─► one reload without the rights ─► the same connections ask again
"""

import dataclasses
import gzip
import os
import pathlib
import pwd
import shutil
import ssl
import tempfile

import jwt
import pytest

from harness import build
from harness.backend import Backend, answer
from harness.caching import await_settled
from harness.certificates import Authority, TlsClient
from harness.client import ProtocolError, Response
from harness.content import populate
from harness.h2 import H2Client
from harness.messages import request
from harness.metrics import Events, await_status, scrape, status_of, status_section, total
from harness.server import Server, await_true, free_port, is_refused, section, write_config
from harness.services import HEAD, build_service, reload, web_service
from harness.ways import WAYS
from test_auth import basic, passwd
from test_duda_tunnel import SERVICE as TUNNELS, Tunnel
from test_shell import Shell
from test_userdir import WRAPPER, needs_root, place  # noqa: F401

NEEDED = "auth cache cheetah cors dirlisting duda health maintenance mandril proxy redirect status tls"
LACKS = [name for name in NEEDED.split() if not (build.PLUGINS / f"{name}.so").exists()]
pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(bool(LACKS) or not build.speaks("h2"), reason=f"it lacks {LACKS} or HTTP/2"),
]

FILES = {
    "a.txt": b"a\n",
    "other.txt": b"other\n",
    "list/b.txt": b"b\n",
    ".hidden": b"hidden\n",
    "index.html": b"<p>index",
    "page.txt.gz": gzip.compress(b"page\n", mtime=0),
    "page.txt": b"page\n",
}
SECRET, OTHER_SECRET = "0123456789abcdef0123456789abcdef", "abcdef0123456789abcdef0123456789"
ADA = basic("ada", "battery9x")
TOKEN = "Authorization: Bearer " + jwt.encode({"sub": "ada", "exp": 4_000_000_000}, SECRET, "HS256")
ALLOW_HERE = "[RULES]\n    Network 127.0.0.0/8\n    Action allow\n"
DENY = "[RULES]\n    Action deny\n"
AUTH = "[AUTH]\n    Users {folder}/users\n"
BEARER = "[AUTH]\n    Type Bearer\n    Secret {folder}/secret\n"
KEPT = "[CACHE]\n    Files Immutable\n"
SERVICE = "[WEB_SERVICE]\n    Name web\n"
PASSED = "[PROXY]\n    To {backend}\n"


@dataclasses.dataclass
class Right:
    """The text of a host's file with and without it, behind the line [HOST] and its name; what is asked, and the
    statuses."""

    given: str
    taken: str | None  # None: the file is removed
    target: str = "/a.txt"
    fields: tuple = ()
    body: bytes = b""
    before: int = 200
    after: int = 403
    times: int = 1  # how often the right is used before
    method: str = "GET"
    host: str = ""  # the one that is asked, if it is another one


RIGHTS = {
    "path": Right("", DENY),
    "path of a file that the client has": Right(KEPT, KEPT + DENY, fields=("If-None-Match: *",), before=304, times=3),
    "path of a file in the cache": Right(KEPT, KEPT + DENY, times=3),
    "network": Right(ALLOW_HERE + DENY, DENY),
    "network of a file": Right(
        "[RULES]\n    File {folder}/networks\n    Action allow\n" + DENY,
        "[RULES]\n    File {folder}/other-networks\n    Action allow\n" + DENY,
    ),
    "header": Right(
        "[RULES]\n    When !header X-Key =old\n    Action deny\n",
        "[RULES]\n    When !header X-Key =new\n    Action deny\n",
        fields=("X-Key: old",),
    ),
    "public": Right("", AUTH, after=401),
    "user": Right(AUTH, "[AUTH]\n    Users {folder}/others\n", fields=(ADA,), after=401),
    "user by name": Right(AUTH + "    Require user ada\n", AUTH + "    Require user bob\n", fields=(ADA,)),
    "group": Right(
        AUTH + "    Groups {folder}/groups\n    Require group team\n",
        AUTH + "    Groups {folder}/other-groups\n    Require group team\n",
        fields=(ADA,),
    ),
    "address instead of a login": Right(
        ALLOW_HERE + DENY + AUTH + "    Satisfy any\n", ALLOW_HERE + DENY + AUTH + "    Satisfy all\n", after=401
    ),
    "token": Right(BEARER, "[AUTH]\n    Type Bearer\n    Secret {folder}/other-secret\n", fields=(TOKEN,), after=401),
    "scope of a token": Right(BEARER, BEARER + "    Scope admin\n", fields=(TOKEN,)),
    "issuer of a token": Right(BEARER, BEARER + "    Issuer https://x.example\n", fields=(TOKEN,), after=401),
    "size of a body": Right(
        "[LIMITS]\n    MaxBodySize 1K\n",
        "[LIMITS]\n    MaxBodySize 10\n",
        method="POST",
        body=b"x" * 100,
        before=405,
        after=413,
    ),
    "rate": Right("[CLIENT_LIMITS]\n    Rate 100/d\n", "[CLIENT_LIMITS]\n    Rate 2/d\n", after=429, times=3),
    "host": Right("", None, target="/other.txt", after=404),
    "document root": Right("", "    DocumentRoot {folder}/elsewhere\n", target="/other.txt", after=404),
    "document root of a file in the cache": Right(
        KEPT,
        "    DocumentRoot {folder}/elsewhere\n" + KEPT,
        target="/other.txt",
        after=404,
        times=3,
    ),
    "listener": Right("    Listener {http}\n", "    Listener {other}\n", target="/other.txt", after=404),
    "alias": Right("[ALIAS]\n    Match /x\n    To {folder}/root\n", "", target="/x/a.txt", after=404),
    "link": Right("    SymLink On\n", "    SymLink Off\n", target="/link.txt", after=404),
    "link to a file in the cache": Right(
        "    SymLink On\n" + KEPT,
        "    SymLink Off\n" + KEPT,
        target="/link.txt",
        after=404,
        times=3,
    ),
    "link within the root": Right("    SymLink Inside\n", "    SymLink Off\n", target="/inside.txt", after=404),
    "hidden file": Right("    DotFiles On\n", "    DotFiles Off\n", target="/.hidden", after=404),
    "hidden file in the cache": Right(
        "    DotFiles On\n" + KEPT,
        "    DotFiles Off\n" + KEPT,
        target="/.hidden",
        after=404,
        times=3,
    ),
    "range": Right("    Resume On\n", "    Resume Off\n", fields=("Range: bytes=0-0",), before=206, after=200),
    "name that is tried": Right("    TryFiles $path /a.txt\n", "", target="/nowhere", after=404),
    "index": Right("    Indexfile index.html\n", "    Indexfile none.html\n", target="/", after=404),
    "listing": Right("[DIRLISTING]\n    Enabled On\n", "[DIRLISTING]\n    Enabled Off\n", target="/list/", after=404),
    "archive": Right(
        "[DIRLISTING]\n    Enabled On\n    Archives tar.gz\n",
        "[DIRLISTING]\n    Enabled On\n",
        target="/list/?archive=tar.gz",
        after=404,
    ),
    "maintenance": Right("", "[MAINTENANCE]\n    FlagFile {folder}/secret\n", after=503),
    "redirect": Right("", "    Redirect https://x.example\n", after=301),
    "preflight": Right(
        AUTH + "    AllowPreflight On\n[CORS]\n    Origins https://a.example\n",
        AUTH + "[CORS]\n    Origins https://a.example\n",
        method="OPTIONS",
        fields=("Origin: https://a.example", "Access-Control-Request-Method: GET"),
        before=204,
        after=401,
    ),
    "origin": Right(
        "[CORS]\n    Origins https://a.example\n",
        "[CORS]\n    Origins https://b.example\n",
        method="OPTIONS",
        fields=("Origin: https://a.example", "Access-Control-Request-Method: GET"),
        before=204,
    ),
    "service": Right(SERVICE, "", target="/web/", after=404),
    "service that is switched off": Right(SERVICE, SERVICE + "    Enabled Off\n", target="/web/", after=404),
    "console": Right(SERVICE + "    Console /c/\n", SERVICE, target="/web/c/", after=404),
    "console's network": Right(
        SERVICE + "    Console /c/\n    ConsoleAllow 127.0.0.0/8\n",
        SERVICE + "    Console /c/\n    ConsoleAllow 192.0.2.0/24\n",
        target="/web/c/",
    ),
    "backend": Right(PASSED, "", target="/backend", after=404),
    "backend of a path": Right(PASSED, PASSED + "    Match /other\n", target="/backend", after=404),
    "backend behind a rule": Right(PASSED, PASSED + DENY, target="/backend"),
    "backend behind a login": Right(PASSED, PASSED + AUTH, target="/backend", after=401),
    "method of a backend": Right(PASSED, "", target="/a.txt", method="DELETE", after=405),
    "files before a backend": Right(
        "    TryFiles $path\n" + PASSED, "    TryFiles $path\n" + PASSED + DENY, target="/a.txt"
    ),
    "status": Right("", "", target="/status", host="localhost", after=404),
    "metrics": Right("", "", target="/metrics", host="localhost", after=404),
    "health": Right("", "", target="/live", after=404),
}

HOSTS = {name: right.host or f"host{n}.example" for n, (name, right) in enumerate(RIGHTS.items())}

MAIN = """
[SERVER]
    Listen              {http}
    Listen              {other}
    MaxKeepAliveRequest 0
    KeepAliveTimeout    1h
    Timeout             1h
[AUTH_LIMITS]
    FailureDelay        0s
    MaxFailures         0
[DUDA]
    ServicesRoot        {folder}/services
"""
SHOWN = """
[HEALTH]
    LivenessPath        /live
[STATUS]
    Enabled             On
"""

HELLO = HEAD + """
static void hello(duda_request_t *dr)
{
    response->http_header(dr, "Content-Type: text/plain");
    response->printf(dr, "hello");
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/", hello) ? 0 : -1;
}
"""


# ── rights of hosts ──


class Site:
    """A server with a host for each right; `results` holds what the clients of each right got, by kind of client."""

    def __init__(self, folder):
        self.folder, self.conf, self.results = folder, folder / "conf", {}
        ports = {name: f"127.0.0.1:{free_port()}" for name in ("http", "other")}
        self.backend = Backend(answer(b"hello", "Content-Type: text/plain"))
        self.names = {"folder": folder, "backend": self.backend.url, **ports}
        self.write_files()
        await_settled(folder)  # files may be cached now
        self.write_conf(given=True)
        self.server = Server("-c", self.conf, listeners=2)
        self.server.conf = self.conf

    def take_away(self):
        self.clients = {name: self.use(name) for name in RIGHTS}
        with self.server.connect() as client:
            samples = scrape(client)
            assert total(samples, "monkey_cache_hits_total") >= sum(KEPT in right.given for right in RIGHTS.values())
            await_status(client, lambda status: status["connections"]["read_head"] == len(RIGHTS), "the parts of heads")
        self.write_conf(given=False)
        reload(self.server)

    def use(self, name):
        """Clients that have used the right, and one that has sent a part of its head."""
        right, half = RIGHTS[name], self.server.connect()
        clients = {"h1": self.server.connect(), "h2": self.server.connect_h2()}
        for kind, client in clients.items():
            seen = {ask(client, name) for _ in range(right.times)}
            assert seen == {right.before}, f"{name} over {kind}: {seen}"
        half.send(split(name)[0])
        return {**clients, "half": half}

    def write_files(self):
        root = populate(self.folder / "root", FILES)
        populate(self.folder / "elsewhere", {"a.txt": b"a\n"})
        (root / "link.txt").symlink_to(self.folder / "elsewhere" / "a.txt")
        (root / "inside.txt").symlink_to("a.txt")
        texts = {"secret": SECRET, "other-secret": OTHER_SECRET, "groups": "team: ada\n", "other-groups": "team: bob\n"}
        texts.update(users="", others="", networks="127.0.0.0/8\n")
        texts["other-networks"] = "192.0.2.0/24\n"
        for name, text in texts.items():
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o600)
        for name, user in (("users", "ada"), ("users", "bob"), ("others", "bob")):
            assert passwd(self.folder / name, user, password="battery9x").returncode == 0
        build_service(self.folder / "services", "web", HELLO)

    def write_conf(self, given):
        texts = {"monkey.conf": MAIN + SHOWN * given}
        texts["sites/default"] = "[HOST]\n    ServerName localhost\n    DocumentRoot {folder}/elsewhere\n"
        for name, right in RIGHTS.items():
            host, text = HOSTS[name], right.given if given else right.taken
            if text is None or right.host:
                continue
            root = "" if "DocumentRoot" in text else "    DocumentRoot {folder}/root\n"
            texts[f"sites/{host}"] = f"[HOST]\n    ServerName {host}\n{root}{text}"
        shutil.rmtree(self.conf, ignore_errors=True)
        for name, text in texts.items():
            (self.conf / name).parent.mkdir(parents=True, exist_ok=True)
            (self.conf / name).write_text(text.format_map(self.names))


def ask(client, name):
    """The status of a request on this connection."""
    right, host = RIGHTS[name], HOSTS[name]
    if isinstance(client, H2Client):
        rest = {"method": right.method, "body": right.body, "authority": host}
        return client.ask(right.target, *right.fields, **rest).status
    client.send(make_request(name))
    return client.response(right.method).status


def make_request(name):
    right = RIGHTS[name]
    return request(right.target, *right.fields, method=right.method, host=HOSTS[name], body=right.body)


def split(name):
    """A request in two parts, of which the first one is a head without its last line."""
    head, end, rest = bytes(make_request(name)).partition(b"\r\n\r\n")
    return head + b"\r\n", b"\r\n" + rest


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Response, "type_is_owed", False)
        one = Site(tmp_path_factory.mktemp("rights"))
        try:
            one.take_away()
            yield one
            one.server.stop()
        finally:
            one.server.kill()
            one.backend.kill()


@pytest.mark.parametrize("name", RIGHTS)
def test_a_connection_that_is_kept(site, name):
    """Its next request is refused."""
    assert ask(site.clients[name]["h1"], name) == RIGHTS[name].after


@pytest.mark.parametrize("name", RIGHTS)
def test_a_connection_of_http_2(site, name):
    """Its next stream is refused, and is the last one of the connection."""
    client = site.clients[name]["h2"]
    assert ask(client, name) == RIGHTS[name].after
    assert client.await_goaway() == 0


@pytest.mark.parametrize("name", RIGHTS)
def test_a_request_that_has_begun(site, name):
    """A part of its head came before the reload, the end behind it."""
    client = site.clients[name]["half"]
    client.send(split(name)[1])
    assert client.response(RIGHTS[name].method).status == RIGHTS[name].after


@pytest.mark.parametrize("name", RIGHTS)
def test_a_new_connection(site, name):
    with site.server.connect() as client:
        assert ask(client, name) == RIGHTS[name].after


# ── rights of the whole server ──


@pytest.fixture
def folder():
    """A folder that all users may enter."""
    with tempfile.TemporaryDirectory(prefix="monkey-rights-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


def rewrite(server, file, before, after):
    """Replaces a text in a file of the configuration, which is in use when this returns."""
    path = server.conf / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    reload(server)


def test_a_listener(serve):
    """No client can connect to it any more; those that have are served, as docs/internals/server.md says."""
    address = f"127.0.0.1:{free_port()}"
    server = serve({"Listen": ["127.0.0.1:0", address]}, listeners=2, files=FILES)
    client = server.connect(1)
    assert client.ask("/a.txt").status == 200
    rewrite(server, "monkey.conf", f"    Listen {address}\n", "")
    assert is_refused(server.addresses[1])
    assert client.ask("/a.txt").status == 200


@pytest.mark.parametrize("h2", [False, True], ids=["h1", "h2"])
def test_a_network_that_may_connect(serve, h2):
    """A connection that was let in ends with its next request."""
    server = serve({"LogLevel": "info"}, files=FILES)
    client = server.connect_h2() if h2 else server.connect()
    assert client.ask("/a.txt").status == 200
    drop = section("CONNECTIONS", {"Network": "127.0.0.0/8", "Action": "drop"})
    rewrite(server, "monkey.conf", "[SERVER]\n", f"{drop}[SERVER]\n")
    with pytest.raises((ProtocolError, ConnectionError)):
        client.ask("/a.txt")
    with server.connect() as late, pytest.raises((ProtocolError, ConnectionError)):
        late.ask("/a.txt")


def test_a_proxy(serve):
    """What it says of its clients counts no longer."""
    proxies, behind = "    TrustedProxies 127.0.0.1\n", "X-Forwarded-For: 192.0.2.1"
    text = section("RULES", {"Network": "192.0.2.0/24", "Action": "allow"}) + DENY
    settings = {"TrustedProxies": "127.0.0.1", "RealIPHeader": "X-Forwarded-For"}
    server = serve(settings, files=FILES, text=text)
    with server.connect() as client:
        assert client.ask("/a.txt", behind).status == 200
        rewrite(server, "monkey.conf", proxies, "")
        assert client.ask("/a.txt", behind).status == 403


def test_a_page_of_the_status(serve):
    """Its stream of events ends, although it began before the reload."""
    server = serve(files=FILES, config={"plugins/status/status.conf": status_section()})
    events = Events(server.connect())
    assert events.next()["generation"] == 1
    rewrite(server, "plugins/status/status.conf", "Enabled On", "Enabled Off")
    await_true(lambda: events.next() is None, 30, "the end of the stream")
    with server.connect() as client:
        assert client.ask("/status/events").status == 404


def test_the_paths_of_the_status(serve):
    """They may hold what others should not read."""
    server = serve(files=FILES, config={"plugins/status/status.conf": status_section(Paths="On")})
    with server.connect() as client:
        assert client.ask("/a.txt").status == 200
        await_status(client, lambda status: "/a.txt" in str(status["paths"]), "the path")
        rewrite(server, "plugins/status/status.conf", "Paths On", "Paths Off")
        assert status_of(client)["paths"] is None


def test_a_shell(serve, tmp_path):
    """It is told so, and the socket is closed."""
    conf = {"plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": tmp_path / "shell.sock"})}
    server = serve(files=FILES, config=conf)
    with Shell(tmp_path / "shell.sock") as shell:
        assert shell.ask("uptime")
        (server.conf / "plugins" / "cheetah" / "cheetah.conf").unlink()
        reload(server)
        assert not shell.answer()[1]["ok"] and shell.file.read() == b""
    assert not (tmp_path / "shell.sock").exists()


@pytest.mark.parametrize("way", ["h1", "h2"])
def test_a_tunnel_of_a_service(serve_services, tmp_path, way):
    """It is told after ShutdownTimeout, may write its last bytes, and ends."""
    way = WAYS[way]
    server = way.start(serve_services, tmp_path, {"web": TUNNELS}, {"ShutdownTimeout": "100ms"})
    tunnel = Tunnel(server, way)
    assert tunnel.echo(b"hello") == b"hello"
    rewrite(server, "sites/default", web_service("web"), "")
    with server.connect() as client:
        assert client.ask("/web/counts").status == 404
    assert tunnel.rest() == b"old\n"


def as_others(root, text, folder, wrapper=(), **rest):
    """A server that runs as another user than root."""
    conf = write_config(folder / "conf", root, text=text, **rest)
    server = Server("-c", conf, wrapper=list(map(str, wrapper)), program=build.for_others())
    server.conf = conf
    return server


OWN_RUN = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /run && exec "$@"', "sh"]


@needs_root
def test_the_socket_of_shells_after_user(folder):
    """Without Listen it stays where root has put it, over reloads, although the server could not put it there now."""
    root = populate(folder / "root", FILES)
    conf = {"plugins/cheetah/cheetah.conf": section("CHEETAH", {"Timeout": "30s"})}
    server = as_others(root, "", folder, OWN_RUN, server={"User": "nobody"}, files=conf)
    path = f"/proc/{server.pid}/root/run/monkey-shell.sock"
    before = os.stat(path).st_ino
    (server.conf / "plugins" / "cheetah" / "cheetah.conf").write_text(section("CHEETAH", {"Timeout": "20s"}))
    reload(server)
    assert os.stat(path).st_ino == before
    assert not os.path.exists(f"/tmp/monkey-shell-{pwd.getpwnam('nobody').pw_uid}.sock")
    server.settle()
    server.stop()


@needs_root
@pytest.mark.parametrize("mode", ["Immutable", "Off"])
def test_a_file_that_becomes_unreadable(folder, mode):
    """Also one that is kept in the cache, from the reload on."""
    root = populate(folder / "root", FILES)
    await_settled(root)
    as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    server = as_others(root, section("CACHE", {"Files": mode}), folder, as_user)
    try:
        with server.connect() as client:
            assert [client.ask("/a.txt").status for _ in range(3)] == [200] * 3
            (root / "a.txt").chmod(0o600)
            reload(server)
            assert client.ask("/a.txt").status == 403
        server.settle()
        server.stop()
    finally:
        server.kill()


@needs_root
def test_the_folders_of_users(place, folder):  # noqa: F811
    shutil.copytree(place / "root", folder / "root")
    wrapper = ["unshare", "-m", "sh", "-c", WRAPPER, place / "passwd"]
    server = as_others(folder / "root", "", folder, wrapper, host={"UserDir": "public_html"})
    try:
        with server.connect() as client:
            assert client.ask("/~bob/").body == b"<p>bob"
            rewrite(server, "sites/default", "    UserDir public_html\n", "")
            assert client.ask("/~bob/").status == 404
        server.settle()
        server.stop()
    finally:
        server.kill()


# ── rights that belong to TLS ──

REQUIRED, OPTIONAL = (f"    ClientCertificate {mode}\n    ClientCA " for mode in ("Required", "Optional"))
LOGIN = "[AUTH]\n    Type Off\n    ClientCertificate On\n"


@dataclasses.dataclass
class Policy:
    """Keys of [TLS] and sections behind it, before and after."""

    given: str
    taken: str
    after: int = 421  # the status on connections that are open
    has_certificate: bool = True
    continues: bool = False  # whether new connections are served


POLICIES = {
    "authority of clients": Policy(REQUIRED + "{ca}\n", REQUIRED + "{other}\n"),
    "authority of clients that need none": Policy(OPTIONAL + "{ca}\n", OPTIONAL + "{other}\n"),
    "one of two authorities": Policy(REQUIRED + "{both}\n", REQUIRED + "{other}\n"),
    "no certificate": Policy(OPTIONAL + "{ca}\n", REQUIRED + "{ca}\n", has_certificate=False),
    "no login by certificate": Policy(
        OPTIONAL + "{ca}\n", OPTIONAL + "{ca}\n" + LOGIN, after=403, has_certificate=False
    ),
    "depth": Policy(REQUIRED + "{ca}\n    ClientDepth 3\n", REQUIRED + "{ca}\n    ClientDepth 2\n", continues=True),
    "version": Policy("    Profile intermediate\n", "    Profile modern\n"),
}


@pytest.fixture
def secure(serve, ca, certificate, tmp_path):
    """Starts a server behind TLS with the function take_away()."""
    other = Authority(tmp_path / "other", "other")
    (tmp_path / "both").write_text(ca.cert.read_text() + other.cert.read_text())
    names = {"ca": ca.cert, "other": other.cert, "both": tmp_path / "both"}
    root = populate(tmp_path / "root", FILES)
    begin = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})

    def start(text, pair=certificate):
        def make(text, pair):
            return begin + section("TLS", pair.keys()) + text.format_map(names)

        server = serve({"Listen": "127.0.0.1:0 tls"}, config={"sites/default": make(text, pair)})

        def take_away(text, pair=certificate):
            (server.conf / "sites" / "default").write_text(make(text, pair))
            reload(server)

        server.take_away = take_away
        return server

    return start


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_of_tls(secure, ca, name):
    """Connections that are open get 421, and new ones the policy of now."""
    policy, most = POLICIES[name], ssl.TLSVersion.TLSv1_2
    server = secure(policy.given)
    pair = ca.make("client") if policy.has_certificate else None
    context = ca.context(pair=pair, maximum_version=most)
    clients = [
        server.connect(kind=TlsClient, context=context),
        server.connect_h2(context=ca.context(pair=pair, maximum_version=most, alpn=["h2"])),
    ]
    assert [client.ask("/a.txt").status for client in clients] == [200, 200]
    session = clients[0].sock.session
    server.take_away(policy.taken)
    assert [client.ask("/a.txt").status for client in clients] == [policy.after] * 2
    for kept in (None, session):
        assert is_let_in(server, context, kept) == policy.continues


def is_let_in(server, context, session):
    try:
        with server.connect(kind=TlsClient, context=context, session=session) as client:
            return client.ask("/a.txt").status == 200
    except (ssl.SSLError, ConnectionError, ProtocolError):
        return False


def test_a_certificate(secure, ca, certificate):
    """New handshakes show the new one; connections and sessions of the old one continue, as plugins/tls/tls.md says."""
    server, context, other = secure(""), ca.context(), ca.make("next", "localhost")
    with server.connect(kind=TlsClient, context=context) as client:
        assert client.ask("/a.txt").status == 200 and client.fingerprint == certificate.fingerprint
        session = client.sock.session
        server.take_away("", other)
        assert client.ask("/a.txt").status == 200
        with server.connect(kind=TlsClient, context=context) as late:
            assert late.ask("/a.txt").status == 200 and late.fingerprint == other.fingerprint
        with server.connect(kind=TlsClient, context=context, session=session) as late:
            assert late.ask("/a.txt").status == 200 and late.sock.session_reused
