# SPDX-License-Identifier: Apache-2.0
"""No spelling of a denied path gets through: a few thousand of them, over HTTP/1.1 and HTTP/2."""

import itertools
import random

import pytest

from harness.client import ProtocolError
from harness.messages import request
from harness.server import section

SECRET = b"the secret\n"
FILES = {"secret/key.txt": SECRET, "open/a.txt": b"open\n", "a.txt": b"a\n"}
OTHER_PATTERNS = ["=/secret/key.txt", "/secret/*.txt", "key.*", r"~^/secret/key\.txt$"]
PATTERNS = ["/secret", *(pytest.param(pattern, marks=pytest.mark.slow) for pattern in OTHER_PATTERNS)]
COUNT = 3000


def encode(text, rng, chance):
    """Percent-encodes some of the bytes, with digits in any case."""
    return "".join(
        rng.choice([f"%{ord(c):02x}", f"%{ord(c):02X}"]) if c != "/" and rng.random() < chance else c for c in text
    )


SLASHES = ["/", "//", "///", "/./", "/%2e/", "/%2E/", "/x/../", "/x/%2e%2e/", "/x/.%2E/", "/a.txt/../", "/%2e/./"]
ODD_SLASHES = ["\\", "%5c", "%5C", "%2f", "%2F", "/\\", "/%2f", "%252f", "/%c0%af", "%c0%af", "/..%2f", "/..%5c", "/;/"]
DOTS = ["/%c0%ae%c0%ae/", "/%e0%80%ae/", "/%252e/", "/.%00/", "/..%00/", "/..;/", "/.;/", "/%u002e/"]
PREFIXES = ["", "/.", "/open/..", "/open/a.txt/..", "/secret/..", "/%2e", "/open/%2e%2e", "/x/y/../.."]
SUFFIXES = ["", "?", "?x=/../a", "#x", ";x", "%00", "%00.txt", "/", "/.", "%20", ".", "%2e", "::$DATA"]
NAMES = ["secret", "SECRET", "Secret", "s%65cret", "%73%65%63%72%65%74", "secret.", "%c1%b3ecret", "%EF%BD%93ecret"]


def make_spellings():
    """Every kind with every other one for the first ones, then random mixtures."""
    rng = random.Random(15)
    slashes = SLASHES + ODD_SLASHES + DOTS
    found = {f"{a}secret{b}key.txt" for a, b in itertools.product(slashes, slashes)}
    found |= {f"{p}/{n}/key.txt{s}" for p, n, s in itertools.product(PREFIXES, NAMES, SUFFIXES)}
    while len(found) < COUNT:
        name = encode(rng.choice(["secret", "secret", rng.choice(NAMES)]), rng, 0.4) if rng.random() < 0.8 else "secret"
        path = rng.choice(PREFIXES) + rng.choice(SLASHES if rng.random() < 0.7 else slashes) + name
        path += rng.choice(SLASHES if rng.random() < 0.7 else slashes) + encode("key.txt", rng, 0.3)
        found.add(path + (rng.choice(SUFFIXES) if rng.random() < 0.3 else ""))
    return sorted(found)


SPELLINGS = make_spellings()


@pytest.fixture
def guarded(serve, tmp_path):
    """Starts the site with a rule for a pattern."""

    def start(pattern):
        root = tmp_path / "server0" / "root"
        text = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
        text += section("RULES", {"Match": pattern, "Action": "deny"})
        return serve({"MaxKeepAliveRequest": 1_000_000}, files=FILES, config={"sites/default": text})

    return start


@pytest.fixture
def server(guarded):
    return guarded("/secret")


@pytest.fixture
def unguarded(serve, tmp_path):
    """The same site without the rule: tells which spellings lead to the file at all."""
    return serve({"MaxKeepAliveRequest": 1_000_000}, files=FILES)


class Asker:
    """Asks over one connection after the other: some spellings end them."""

    def __init__(self, connect):
        self.connect, self.client = connect, None

    def ask(self, send):
        try:
            self.client = self.client or self.connect()
            answer = send(self.client)
            if answer.closes:
                self.client.close()
                self.client = None
            return answer.status, answer.body
        except (ProtocolError, ConnectionError):
            self.client.close()
            self.client = None
            return 0, b""


def ask_h1(target):
    def send(client):
        client.send(request(target))
        return client.response()

    return send


def ask_h2(target):
    return lambda client: client.ask(target)


def check(asker, ask, targets):
    """Returns how many were denied by the rule."""
    denied = 0
    for target in targets:
        status, body = asker.ask(ask(target))
        assert SECRET not in body and status not in (200, 206, 304), target
        denied += status == 403
    return denied


def usable_over_h2(target):
    return target.startswith("/") and "#" not in target


@pytest.mark.single_protocol
@pytest.mark.parametrize("pattern", PATTERNS)
def test_http_1(guarded, unguarded, pattern):
    assert len(SPELLINGS) >= COUNT
    denied = check(Asker(guarded(pattern).connect), ask_h1, SPELLINGS)
    plain = Asker(unguarded.connect)
    served = sum(plain.ask(ask_h1(target))[1] == SECRET for target in SPELLINGS)
    assert denied >= served > 500


@pytest.mark.single_protocol
def test_http_1_absolute_form(server):
    forms = [f"http://{host}{target}" for host in ("localhost", "LOCALHOST:80") for target in SPELLINGS[::4]]
    assert check(Asker(server.connect), ask_h1, forms) > 100


@pytest.mark.single_protocol
@pytest.mark.parametrize("pattern", PATTERNS)
def test_http_2(guarded, pattern):
    targets = [target for target in SPELLINGS if usable_over_h2(target)]
    assert len(targets) > 2000
    assert check(Asker(guarded(pattern).connect_h2), ask_h2, targets) > 500


def test_the_rest_is_served(server):
    client = server.connect()
    assert client.ask("/open/a.txt").body == b"open\n"
    assert client.ask("/secretx").status == 404
    assert client.ask("/secret").status == client.ask("/secret/../secret/").status == 403
