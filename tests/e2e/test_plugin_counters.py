# SPDX-License-Identifier: Apache-2.0
"""What the plugins count of their own: logins, decisions of rules, compressed bytes, listings and archives."""

import gzip

import jwt
import pytest

from harness import build
from harness.certificates import Authority, TlsClient
from harness.codings import decode
from harness.messages import request
from harness.metrics import needs_status
from harness.server import await_true, section
from harness.ways import WAYS
from test_auth import ADA, BOB, basic, users  # noqa: F401
from test_counters import await_count, count, secure  # noqa: F401

pytestmark = [needs_status, pytest.mark.wire, pytest.mark.concurrent]

SECRET = "0123456789abcdef0123456789abcdef"
TEXT = b"a text that can be compressed\n" * 1000
FILES = {"index.html": b"home\n", "a/x.txt": b"x\n", "b/x.txt": b"y\n", "t/x.txt": b"z\n", "text.txt": TEXT}


def needs(plugin):
    missing = not (build.PLUGINS / f"{plugin}.so").exists()
    return pytest.mark.skipif(missing, reason=f"the preset has no plugin {plugin}")


@pytest.fixture
def site(count, tmp_path):  # noqa: F811
    """A server whose default host has more sections, and `main` those of monkey.conf."""

    def start(text, main="", settings=None, way=None, listener=0, **rest):
        config = {"sites/default": section("HOST", {"ServerName": "localhost", "DocumentRoot": tmp_path / "root"})}
        if way and way.tls:
            way.ca, config["sites/default"] = secure(tmp_path, tmp_path / "root")
            settings = {"Listen": ["127.0.0.1:0 tls", "127.0.0.2:0"], **(settings or {})}
            rest["listeners"], listener = 2, 1
        config["sites/default"] += text
        given = {"Listen": "127.0.0.1:0", **(settings or {})}
        config["monkey.conf"] = section("SERVER", given) + main
        for name, content in FILES.items():
            path = tmp_path / "root" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return count(settings, config, listener=listener, root=tmp_path / "root", **rest)

    return start


def skip_way(way):
    if way.h2 and not build.speaks("h2") or way.tls and not build.speaks("tls"):
        pytest.skip(f"the preset {build.PRESET} has not all protocols")
    return way


# ── auth ──


@needs("auth")
@pytest.mark.parametrize("name", WAYS)
def test_passwords(site, users, name):  # noqa: F811
    """Each login once, by what has become of it."""
    way = skip_way(WAYS[name])
    rules = section("AUTH", {"Match": "/a", "Users": users}) + section(
        "AUTH", {"Match": "/b", "Users": users, "Require": "user bob"}
    )
    limits = section("AUTH_LIMITS", {"FailureDelay": "0s", "MaxFailures": 5})
    server = site(rules, limits, way=way)
    asked = {
        "accepted": [("/a/x.txt", ADA), ("/a/x.txt", BOB), ("/b/x.txt", BOB)],
        "forbidden": [("/b/x.txt", ADA)],
        "missing": [("/a/x.txt",), ("/a/x.txt", "Authorization: Basic ?")],
        "wrong": [("/a/x.txt", basic("ada", f"wrong{n}")) for n in range(5)],
        "blocked": [("/a/x.txt", ADA), ("/b/x.txt", BOB), ("/a/x.txt", basic("eve", "?")), ("/a/x.txt", BOB)],
    }
    statuses = {"accepted": 200, "forbidden": 403, "missing": 401, "wrong": 401, "blocked": 429}
    with way.connect(server) as client:
        assert client.ask("/index.html").status == 200
        for result, words in asked.items():
            for word in words:
                assert client.ask(*word).status == statuses[result], (result, word)
            await_count(server, len(words), "auth_logins", type="password", result=result)
    assert server.count("auth_logins") == sum(map(len, asked.values()))


@needs("auth")
def test_tokens(site, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    rule = {"Match": "/t", "Type": "Bearer", "Secret": secret, "Scope": "read"}
    server = site(section("AUTH", rule), section("AUTH_LIMITS", {"FailureDelay": "0s", "MaxFailures": 3}))

    def token(key=SECRET, **more):
        return "Authorization: Bearer " + jwt.encode({"sub": "ada", "exp": 4_000_000_000, **more}, key, "HS256")

    good = token(scope="read write")
    asked = {
        "accepted": (200, [good, good]),
        "missing": (401, ["X: y"]),
        "forbidden": (403, [token(), token(scope="write")]),
        "wrong": (401, [token(exp=1, scope="read")] + [token("z" * 32, scope="read")] * 3),
        "blocked": (429, [good]),
    }
    with server.connect() as client:
        for result, (status, fields) in asked.items():
            for field in fields:
                assert client.ask("/t/x.txt", field).status == status, (result, field)
            await_count(server, len(fields), "auth_logins", type="token", result=result)
    assert server.count("auth_logins") == sum(len(fields) for _, fields in asked.values())


@needs("auth")
@pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no tls")
def test_certificates(site, users, tmp_path):  # noqa: F811
    """They are counted beside the login behind them."""
    ca = Authority(tmp_path / "ca")
    keys = {**ca.make("localhost", "localhost").keys(), "ClientCertificate": "Optional", "ClientCA": ca.cert}
    rules = [
        {"Match": "/a", "Type": "Off", "ClientCertificate": "On"},
        {"Match": "/b", "Users": users, "ClientCertificate": "On"},
    ]
    text = section("TLS", keys) + "".join(section("AUTH", rule) for rule in rules)
    settings = {"Listen": ["127.0.0.1:0 tls", "127.0.0.2:0"]}
    server = site(text, settings=settings, listener=1, listeners=2)
    pair = ca.make("ada", subject="/CN=ada/O=Test", use="clientAuth")
    with TlsClient(server.addresses[0], ca.context()) as client:
        for _ in range(2):
            assert client.ask("/a/x.txt").status == 403
    with TlsClient(server.addresses[0], ca.context(pair=pair)) as client:
        assert client.ask("/a/x.txt").status == 200
        assert client.ask("/b/x.txt").status == 401
        assert client.ask("/b/x.txt", BOB).status == 200
    wanted = {("certificate", "missing"): 2, ("certificate", "accepted"): 3, ("password", "missing"): 1}
    for (kind, result), n in {**wanted, ("password", "accepted"): 1}.items():
        await_count(server, n, "auth_logins", type=kind, result=result)
    assert server.count("auth_logins") == 7


# ── mandril ──


@needs("mandril")
@pytest.mark.parametrize("name", WAYS)
def test_decisions(site, name):
    """Of rules, limits and connections; those of a dry run apart."""
    way = skip_way(WAYS[name])
    rules = [
        {"Match": "/a", "Action": "deny", "DryRun": "On"},
        {"Match": "/a", "Action": "allow"},
        {"Match": "/b", "Action": "deny"},
        {"Match": "/d", "Action": "delay 10ms"},
        {"Match": "/e", "Action": "drop"},
    ]
    text = "".join(section("RULES", rule) for rule in rules)
    text += section("CLIENT_LIMITS", {"Match": "/t", "Rate": "2/d"})
    server = site(text, way=way)
    with way.connect(server) as client:
        for path, status, times in (("/a/x.txt", 200, 1), ("/b/x.txt", 403, 2), ("/d", 404, 3)):
            for _ in range(times):
                assert client.ask(path).status == status
        assert [client.ask("/t/x.txt").status for _ in range(6)] == [200, 200, 429, 429, 429, 429]
    for _ in range(5):
        with way.connect(server) as client, pytest.raises(Exception, match="reset|closed|ended"):
            client.ask("/e")
    wanted = {"allow": 1, "deny": 2, "delay": 3, "drop": 5}
    for action, n in wanted.items():
        await_count(server, n, "mandril_decisions", section="rules", action=action, dry_run="no")
    assert server.count("mandril_decisions", section="rules", action="deny", dry_run="yes") == 1
    assert server.count("mandril_decisions", section="client_limits", action="deny") == 4
    assert server.count("mandril_decisions") == sum(wanted.values()) + 1 + 4


@needs("mandril")
def test_dropped_connections(site, tmp_path):
    rule = section("CONNECTIONS", {"Network": "127.0.0.0/8", "Action": "drop"})
    settings = {"Listen": [f"unix:{tmp_path}/socket", "127.0.0.1:0"], "DeferAccept": 0}
    server = site("", rule, settings, listeners=2)
    local = [isinstance(address, tuple) for address in server.addresses].index(True)
    for n in range(1, 4):
        with server.connect(local) as client:
            client.assert_gone()
        await_count(server, n, "mandril_decisions", section="connections", action="drop", dry_run="no")


# ── compress ──


@needs("compress")
@pytest.mark.parametrize("name", WAYS)
def test_compressed_bytes(site, name):
    """By coding: responses, bytes before and after, as the client has received them."""
    way = skip_way(WAYS[name])
    server = site(section("COMPRESS", {"Types": "text/plain"}), way=way)
    with way.connect(server) as client:
        for times, coding in enumerate(("gzip", "br", "zstd"), 1):
            received = 0
            for _ in range(times):
                answer = client.ask("/text.txt", f"Accept-Encoding: {coding}")
                assert decode(coding, answer.body) == TEXT
                received += len(answer.body)
            await_count(server, times, "compress_responses", coding=coding)
            await_count(server, times * len(TEXT), "compress_input_bytes", coding=coding)
            await_count(server, received, "compress_output_bytes", coding=coding)
        assert client.ask("/text.txt").body == TEXT
        assert client.ask("/text.txt", "Accept-Encoding: gzip", method="HEAD")["Content-Encoding"] == "gzip"
    assert server.count("compress_responses") == 6
    assert server.count("compress_skipped_responses") == 0


@needs("compress")
def test_responses_without_room(site):
    server = site(section("COMPRESS", {"Types": "text/plain"}), section("COMPRESS", {"Streams": 0}))
    with server.connect() as client:
        for _ in range(3):
            assert client.ask("/text.txt", "Accept-Encoding: gzip").body == TEXT
    assert server.count("compress_skipped_responses", coding="gzip") == 3
    assert server.count("compress_responses") == 0


# ── dirlisting ──


@needs("dirlisting")
@pytest.mark.parametrize("name", WAYS)
def test_listings(site, name):
    way = skip_way(WAYS[name])
    server = site(section("DIRLISTING", {"Match": "/", "Archives": "tar tar.gz"}), way=way)
    with way.connect(server) as client:
        assert client.ask("/a/").status == client.ask("/b/", "Accept: application/json").status == 200
        archives = [client.ask("/a/?archive=tar"), client.ask("/b/?archive=tar.gz"), client.ask("/a/?archive=tar.gz")]
        assert all(archive.status == 200 for archive in archives)
        assert client.ask("/a/?archive=tar.zst").status == 404
        assert client.ask("/nothing/").status == 404
    assert b"y\n" in gzip.decompress(archives[1].body)
    await_count(server, 2, "dirlisting_listings")
    await_count(server, 3, "dirlisting_archives", result="begun")
    assert server.count("dirlisting_archives") == 3
    assert server.count("dirlisting_archive_bytes") == sum(len(archive.body) for archive in archives)


@needs("dirlisting")
def test_refused_archives(site, tmp_path):
    """Above the number of all archives, above that of a client, and one that is cut: each by its result."""
    limits = section("DIRLISTING_LIMITS", {"Archives": 2, "ArchivesPerClient": 1})
    settings = {"TrustedProxies": "127.0.0.1", "RealIPHeader": "X-Forwarded-For"}
    server = site(section("DIRLISTING", {"Match": "/", "Archives": "tar"}), limits, settings)
    (tmp_path / "root" / "a" / "big.bin").write_bytes(b"x" * 20_000_000)
    wanted = {"begun": 2, "too_many": 3, "too_many_of_client": 1}
    held = []
    for address in ("192.0.2.1", "192.0.2.2"):
        held.append(server.connect(rcvbuf=4096))
        held[-1].send(request("/a/?archive=tar", f"X-Forwarded-For: {address}"))
        held[-1].head()
    with server.connect() as client:
        for _ in range(3):
            assert client.ask("/a/?archive=tar", "X-Forwarded-For: 192.0.2.3").status == 503
        held.pop().reset()
        await_true(
            lambda: client.ask("/a/?archive=tar", "X-Forwarded-For: 192.0.2.1").status == 429, 10, "room for another"
        )
    for result, n in wanted.items():
        assert server.count("dirlisting_archives", result=result) >= n
    assert server.count("dirlisting_archives", result="begun") == 2
    assert server.count("dirlisting_archives", result="too_many_of_client") == 1


@needs("dirlisting")
@pytest.mark.parametrize("name", WAYS)
def test_archives_that_are_cut(site, name):
    way = skip_way(WAYS[name])
    server = site(section("DIRLISTING", {"Match": "/", "Archives": "tar", "ArchiveMaxBytes": 1}), way=way)
    for n in (1, 2):
        with way.connect(server) as client, pytest.raises(Exception, match="reset|closed|ended|cut"):
            client.ask("/a/?archive=tar")
        await_count(server, n, "dirlisting_archives", result="cut")
    assert server.count("dirlisting_archives", result="begun") == 2
