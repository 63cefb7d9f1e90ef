# SPDX-License-Identifier: Apache-2.0
"""Access by address, limits and logins over each way to ask: plain, TLS, HTTP/2, and behind a PROXY header.

`./dev test slow` runs the rest; the smaller run has each way once, and each topic once."""

import itertools
import re
import time

import pytest

from harness import build
from harness.certificates import Authority, TlsClient
from harness.client import Client, ProtocolError
from harness.content import populate
from harness.h2 import H2Client
from harness.messages import request
from harness.server import await_true, section
from test_auth import ADA, BOB, FREE, basic, users  # noqa: F401
from test_auth_token import SECRET, bearer, hs256

NEEDED = ("mandril", "auth")
FILES = {"index.html": b"home\n", "a.txt": b"a\n", "big.bin": b"x" * 100_000, "in/x.txt": b"in\n"}
PROXY = b"PROXY TCP4 192.0.2.1 10.0.0.9 4711 80\r\n"

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / f"{name}.so").exists() for name in NEEDED),
        reason="the preset has no plugin mandril or auth",
    ),
]


class Site:
    """A server, and clients in one of the ways: "h1", "h2", with "tls" and behind "proxy"."""

    def __init__(self, serve, folder, way, sections="", shared="", settings=None):
        self.h2, self.tls, self.proxied = ("h2" in way, "tls" in way, "proxy" in way)
        for protocol in ("h2",) * self.h2 + ("tls",) * self.tls:
            if not build.speaks(protocol):
                pytest.skip(f"the preset {build.PRESET} has no {protocol}")
        listen = "127.0.0.1:0" + " tls" * self.tls + " proxy" * self.proxied
        proxies = {"TrustedProxies": "127.0.0.1"} if self.proxied else {}
        main = {"Listen": listen, "KeepAliveTimeout": "60s", **proxies, **(settings or {})}
        text = section("HOST", {"ServerName": "localhost", "DocumentRoot": populate(folder / "root", FILES)})
        if self.tls:
            self.ca = Authority(folder / "ca")
            keys = self.ca.make("localhost", "localhost").keys()
            text += section("TLS", {**keys, "ClientCertificate": "Optional", "ClientCA": self.ca.cert})
        config = {"sites/default": text + sections, "monkey.conf": section("SERVER", main) + shared}
        self.server = serve(config=config)

    def connect(self, pair=None):
        first = {"first": PROXY} if self.proxied else {}
        address = self.server.addresses[0]
        if self.h2:
            context = self.ca.context(alpn=["h2"], pair=pair) if self.tls else None
            client = H2Client(address, context=context, **first)
        elif self.tls:
            client = TlsClient(address, self.ca.context(pair=pair), **first)
        else:
            client = Client(address)
            if first:
                client.send(PROXY)
        self.server.clients.append(client)
        return client

    def is_served(self):
        """Is a new connection let in? Keeps it then."""
        try:
            client = self.connect()
            return client.ask("/a.txt").status == 200
        except (ProtocolError, OSError, EOFError) as error:
            assert "timed out" not in str(error)
            return False


def begin(client, target):
    """Sends a request, whose response is not read yet."""
    return client.begin(target) if isinstance(client, H2Client) else client.send(request(target))


# ── topics; each asks a site of its own ──


def check_connections(start):
    site = start(shared=section("CONNECTIONS", {"MaxConnections": 2}))
    first, second = site.connect(), site.connect()
    for client in (first, second):
        assert [client.ask("/a.txt").status for _ in range(3)] == [200] * 3
    assert not site.is_served()
    first.close()
    await_true(site.is_served, 30, "a free place")
    assert not site.is_served()


def check_drop(start):
    site = start(shared=section("CONNECTIONS", {"Network": "127.0.0.0/8 192.0.2.1", "Action": "drop"}))
    assert not site.is_served()
    site.server.wait_log(r"access: .*drop (127\.0\.0\.1|192\.0\.2\.1); 1 so far")


def check_rate(start):
    client = start(section("CLIENT_LIMITS", {"Rate": "3/d", "Name": "few"})).connect()
    answers = [client.ask("/a.txt") for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert [re.match(r'"few";r=(\d);', answer["RateLimit"])[1] for answer in answers] == ["2", "1", "0", "0"]
    assert answers[3]["Retry-After"].isdecimal()


def check_requests(start):
    text = section("CLIENT_LIMITS", {"MaxRequests": 1, "SendRate": "2K"})
    site = start(text)
    slow, other = site.connect(), site.connect()
    begin(slow, "/big.bin")
    assert slow.head().status == 200  # otherwise the other one may come first
    await_true(lambda: other.ask("/a.txt").status == 429, 30, "429")
    slow.close()
    await_true(lambda: other.ask("/a.txt").status == 200, 30, "200")


def check_send_rate(start, send_rate_for):
    site = start(section("CLIENT_LIMITS", {"SendRate": "100K", "SendRateFor": send_rate_for}))
    clients = [site.connect() for _ in range(1 + (send_rate_for == "client"))]
    began = time.monotonic()
    begun = [(client, begin(client, "/big.bin")) for client in clients]
    for client, stream in begun:
        answer = client.response() if stream is None else client.response(stream)
        assert answer.status == 200 and answer.body == FILES["big.bin"]
    least = 100_000 * len(clients) / 102_400 - 0.1  # a burst is a tenth of a second
    assert least * 0.95 < time.monotonic() - began < 60 * len(clients)


def check_login(start, users, folder):
    client = start(section("AUTH", {"Match": "/in", "Users": users})).connect()
    assert client.ask("/a.txt").body == b"a\n"
    for login, status in [((), 401), ((basic("ada", "no"),), 401), ((ADA,), 200), ((BOB,), 200)]:
        assert client.ask("/in/x.txt", *login).status == status


def check_bearer(start, users, folder):
    secret = folder / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    client = start(section("AUTH", {"Match": "/in", "Type": "Bearer", "Secret": secret})).connect()
    good = bearer(hs256(sub="eve"))
    assert [client.ask("/in/x.txt", *login).status for login in ((), (good,), (good,))] == [401, 200, 200]
    assert client.ask("/in/x.txt", good[:-4] + "AAAA").status == 401


def check_certificate(start, users, folder):
    """One path needs one, the other does not."""
    site = start(section("AUTH", {"Match": "/in", "Type": "Off", "ClientCertificate": "On"}))
    pair = site.ca.make("ada", subject="/CN=ada", use="clientAuth")
    assert [site.connect().ask(path).status for path in ("/a.txt", "/in/x.txt")] == [200, 403]
    assert [site.connect(pair).ask(path).status for path in ("/a.txt", "/in/x.txt")] == [200, 200]


def check_satisfy(start, users, folder, satisfy):
    """The rule denies this client; a login takes its place with `any` only."""
    rules = section("RULES", {"Match": "/in", "Action": "deny"})
    rules += section("RULES", {"Match": "/a.txt", "Action": "allow"})
    logins = [{"Match": path, "Users": users, "Satisfy": satisfy} for path in ("/in", "/a.txt")]
    client = start(rules + "".join(section("AUTH", keys) for keys in logins)).connect()
    by_login, by_address = ((401, 200), (200, 200)) if satisfy == "any" else ((403, 403), (401, 200))
    assert tuple(client.ask("/in/x.txt", *login).status for login in ((), (BOB,))) == by_login
    assert tuple(client.ask("/a.txt", *login).status for login in ((), (BOB,))) == by_address


LIMITS = {
    "connections": check_connections,
    "drop": check_drop,
    "rate": check_rate,
    "requests": check_requests,
    "rate of a connection": lambda start: check_send_rate(start, "connection"),
    "rate of a client": lambda start: check_send_rate(start, "client"),
}
LOGINS = {
    "login": check_login,
    "bearer": check_bearer,
    "certificate": check_certificate,
    "satisfy any": lambda *args: check_satisfy(*args, "any"),
    "satisfy all": lambda *args: check_satisfy(*args, "all"),
}
WAYS = ["h1", "h2", "h1 tls", "h2 tls"]
PROXIED = [f"{way} proxy" for way in WAYS]


def combine(ways, topics):
    """All combinations; those off the diagonal are `slow`."""
    kept = {(ways[n % len(ways)], topic) for n, topic in enumerate(topics)}
    for way, topic in itertools.product(ways, topics):
        if topic == "certificate" and "tls" not in way:
            continue
        marks = () if (way, topic) in kept or topic == "certificate" and way == "h2 tls" else pytest.mark.slow
        yield pytest.param(way, topic, id=f"{way}-{topic}".replace(" ", "_"), marks=marks)


@pytest.mark.parametrize("way, topic", combine(WAYS + PROXIED, LIMITS))
def test_limits(serve, tmp_path, way, topic):
    LIMITS[topic](lambda text="", **rest: Site(serve, tmp_path, way, text, **rest))


@pytest.mark.parametrize("way, topic", combine(WAYS, LOGINS))
def test_logins(serve, tmp_path, users, way, topic):  # noqa: F811
    shared = section("AUTH_LIMITS", FREE)
    LOGINS[topic](lambda text: Site(serve, tmp_path, way, text, shared), users, tmp_path)
