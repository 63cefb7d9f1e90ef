# SPDX-License-Identifier: Apache-2.0
"""What the plugins count of their own: logins, decisions of rules, compressed bytes, archives, redirects, origins,
probes, files."""

import gzip
import signal

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

pytestmark = [needs_status, pytest.mark.single_protocol, pytest.mark.concurrent]

SECRET = "0123456789abcdef0123456789abcdef"
TEXT = b"a text that can be compressed\n" * 1000
FILES = {"index.html": b"home\n", "a/x.txt": b"x\n", "b/x.txt": b"y\n", "t/x.txt": b"z\n", "text.txt": TEXT}


def needs(plugin):
    missing = not (build.PLUGINS / f"{plugin}.so").exists()
    return pytest.mark.skipif(missing, reason=f"the preset has no plugin {plugin}")


@pytest.fixture
def site(count, tmp_path):  # noqa: F811
    """A server whose default host has more sections and keys; `main`: sections of monkey.conf, `sites`: other hosts."""

    def start(text, main="", settings=None, way=None, listener=0, keys=None, sites=None, **rest):
        config = {"sites/default": section("HOST", {"ServerName": "localhost", "DocumentRoot": tmp_path / "root"})}
        if way and way.tls:
            way.ca, config["sites/default"] = secure(tmp_path, tmp_path / "root")
            settings = {"Listen": ["127.0.0.1:0 tls", "127.0.0.2:0"], **(settings or {})}
            rest["listeners"], listener = 2, 1
        config["sites/default"] += text
        if keys:
            config["sites/default"] = config["sites/default"].replace("[HOST]\n", section("HOST", keys))
        config.update({f"sites/{name}": each for name, each in (sites or {}).items()})
        given = {"Listen": "127.0.0.1:0", "KeepAliveTimeout": "60s", **(settings or {})}
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
    """They are counted in addition to the login behind them."""
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
    await_count(server, 7, "auth_logins")


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
    await_count(server, 1, "mandril_decisions", section="rules", action="deny", dry_run="yes")
    await_count(server, 4, "mandril_decisions", section="client_limits", action="deny")
    await_count(server, sum(wanted.values()) + 1 + 4, "mandril_decisions")


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
    await_count(server, 6, "compress_responses")
    await_count(server, 0, "compress_skipped_responses")


@needs("compress")
def test_responses_without_room(site):
    server = site(section("COMPRESS", {"Types": "text/plain"}), section("COMPRESS", {"Streams": 0}))
    with server.connect() as client:
        for _ in range(3):
            assert client.ask("/text.txt", "Accept-Encoding: gzip").body == TEXT
    await_count(server, 3, "compress_skipped_responses", coding="gzip")
    await_count(server, 0, "compress_responses")


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
    await_count(server, 3, "dirlisting_archives")
    await_count(server, sum(len(archive.body) for archive in archives), "dirlisting_archive_bytes")


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
            lambda: client.ask("/a/?archive=tar", "X-Forwarded-For: 192.0.2.1").status == 429, 30, "room for another"
        )
    for result, n in wanted.items():
        assert server.count("dirlisting_archives", result=result) >= n
    await_count(server, 2, "dirlisting_archives", result="begun")
    await_count(server, 1, "dirlisting_archives", result="too_many_of_client")


@needs("dirlisting")
@pytest.mark.parametrize("name", WAYS)
def test_archives_that_are_cut(site, name):
    way = skip_way(WAYS[name])
    server = site(section("DIRLISTING", {"Match": "/", "Archives": "tar", "ArchiveMaxBytes": 1}), way=way)
    for n in (1, 2):
        with way.connect(server) as client, pytest.raises(Exception, match="reset|closed|ended|cut"):
            client.ask("/a/?archive=tar")
        await_count(server, n, "dirlisting_archives", result="truncated")
    await_count(server, 2, "dirlisting_archives", result="begun")


# ── redirect ──

REDIRECTS = """
[REDIRECT]
    Match       ~^/long(.*)$
    To          https://example.org/$1$1$1$1$1$1$1$1$1

[REDIRECT]
    Match       ~^/(c+)+$
    To          /elsewhere

[REWRITE]
    Match       =/first
    To          /second

[REWRITE]
    Match       =/second
    To          /a/x.txt

[REWRITE]
    Match       ~^/grow
    To          /grow$0

[REWRITE]
    Match       ~^/up(.*)$
    To          /a/.$1
"""


@needs("redirect")
@pytest.mark.parametrize("name", WAYS)
def test_redirects(site, name):
    """By status. A request that several rules rewrite is one."""
    way = skip_way(WAYS[name])
    statuses = {301: 1, 302: 2, 303: 3, 307: 4, 308: 5}
    rules = "".join(section("REDIRECT", {"Match": f"/to{n}", "To": "/a", "Status": n}) for n in statuses)
    server = site(rules + REDIRECTS, way=way)
    with way.connect(server) as client:
        for status, times in statuses.items():
            for _ in range(times):
                assert client.ask(f"/to{status}/x").status == status
        for path in ("/first", "/second", "/first"):
            assert client.ask(path).body == b"x\n"
        assert client.ask("/a/x.txt").status == 200
    for status, times in statuses.items():
        await_count(server, times, "redirect_redirects", status=str(status))
    await_count(server, sum(statuses.values()), "redirect_redirects")
    await_count(server, 3, "redirect_rewrites")
    await_count(server, 0, "redirect_failures")


@needs("redirect")
def test_redirects_of_a_whole_host(site, tmp_path):
    moved = section("HOST", {"ServerName": "moved.test", "DocumentRoot": tmp_path, "Redirect": "https://example.org"})
    server = site("", sites={"moved": moved})
    with server.connect() as client:
        for _ in range(2):
            client.send(request("/x", host="moved.test"))
            assert client.response().status == 301
    assert server.count("redirect_redirects", status="301") == server.count("redirect_redirects") == 2


@needs("redirect")
def test_redirects_that_fail(site):
    server = site(REDIRECTS)
    asked = {
        "loop": (500, ["/grow/x", "/grow"]),
        "pattern": (500, ["/" + 3000 * "c" + "!"]),
        "too_long": (414, ["/long" + "x" * 8000] * 3),
        "invalid_path": (404, ["/up.", "/up./x", "/up.", "/up"]),
    }
    with server.connect() as client:
        for reason, (status, paths) in asked.items():
            for path in paths:
                assert client.ask(path).status == status, path[:20]
            await_count(server, len(paths), "redirect_failures", reason=reason)
    assert server.count("redirect_failures") == sum(len(paths) for _, paths in asked.values())
    assert server.count("redirect_redirects") == server.count("redirect_rewrites") == 0


# ── cors ──


@needs("cors")
@pytest.mark.parametrize("name", WAYS)
def test_origins(site, name):
    """Preflights by result; other requests only if a page of another host has no permission."""
    way = skip_way(WAYS[name])
    server = site(section("CORS", {"Match": "/a", "Origins": "https://app.test", "Methods": "GET PUT"}), way=way)
    good, bad = "Origin: https://app.test", "Origin: https://app.test.evil"
    preflight = "Access-Control-Request-Method: PUT"
    with way.connect(server) as client:
        for times, origin, status in ((2, good, 204), (3, bad, 403)):
            for _ in range(times):
                assert client.ask("/a/x.txt", origin, preflight, method="OPTIONS").status == status
        for origin in (bad, "Origin: null", bad, "Origin: https://localhost.evil", "Origin: ://"):
            assert client.ask("/a/x.txt", origin)["Access-Control-Allow-Origin"] is None
        for path, *fields in (
            ("/a/x.txt",), ("/a/x.txt", good), ("/b/x.txt", bad), ("/a/x.txt", "Origin: https://localhost"),
            ("/a/x.txt", "Origin: http://LOCALHOST:8080"),
        ):
            assert client.ask(path, *fields).status == 200
    await_count(server, 2, "cors_preflights", result="allowed")
    await_count(server, 3, "cors_preflights", result="refused")
    await_count(server, 5, "cors_refused_requests")


# ── headers ──


@needs("headers")
@pytest.mark.parametrize("name", WAYS)
def test_headers_that_fail(site, name):
    """Paths for which a pattern takes too much time, and headers above the number that a response may have."""
    way = skip_way(WAYS[name])
    rules = section("HEADERS", {"Match": "~^/(c+)+$", "Set": "X-Seen yes"})
    rules += section("HEADERS", {"Match": "/a", "Add": [f"X-{n} y" for n in range(140)]})
    server = site(rules, way=way)
    with way.connect(server) as client:
        for _ in range(3):
            assert client.ask("/" + 3000 * "c" + "!").status == 500
        await_count(server, 3, "headers_rejected_requests")
        await_count(server, 0, "headers_lost_headers")
        answer = client.ask("/a/x.txt")
        missing = sum(answer[f"X-{n}"] is None for n in range(140))
    assert missing > 0
    await_count(server, missing, "headers_lost_headers")
    await_count(server, 3, "headers_rejected_requests")


# ── health ──


@needs("health")
@pytest.mark.parametrize("name", WAYS)
def test_probes(site, name):
    """Those that are answered; while the server stops, readiness is another result."""
    way = skip_way(WAYS[name])
    health = section("HEALTH", {"LivenessPath": "/healthz", "ReadinessPath": "/readyz"})
    server = site("", health, {"ShutdownDelay": "1h"}, way=way)
    with way.connect(server) as client:
        for path, times in (("/healthz", 2), ("/readyz", 3)):
            for n in range(times):
                assert client.ask(path, method="HEAD" if n else "GET").status == 200
        assert client.ask("/healthz", method="DELETE").status == 405
        assert client.ask("/healthz/x").status == 404
        await_count(server, 5, "health_probes")
        server.send_signal(signal.SIGTERM)
        server.wait_log(r"\(ShutdownDelay\)")
    statuses = []

    def probe(path):
        with way.connect(server) as client:
            statuses.append(client.ask(path).status)
        return statuses[-1]

    await_true(lambda: probe("/readyz") == 503, 30, "a worker that knows of the stop")
    assert probe("/healthz") == 200
    await_count(server, 3, "health_probes", kind="liveness", result="ok")
    await_count(server, 3 + statuses.index(503), "health_probes", kind="readiness", result="ok")
    await_count(server, 1, "health_probes", kind="readiness", result="draining")
    server.send_signal(signal.SIGTERM)


# ── maintenance ──


@needs("maintenance")
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("waits", [False, True])
def test_maintenance(site, tmp_path, name, waits):
    """By host: what is answered because of the file, at once or after a disk thread has looked for it."""
    way, flag = skip_way(WAYS[name]), tmp_path / "flag"
    path = "/proc/self/cwd/flag" if waits else flag  # the kernel never resolves it without waiting
    server = site(section("MAINTENANCE", {"FlagFile": path, "Match": "/a", "Except": "*.css"}), way=way, cwd=tmp_path)
    with way.connect(server) as client:
        assert client.ask("/a/x.txt").status == 200
        await_count(server, 0, "maintenance_responses")
        flag.touch()
        answered = []
        await_true(lambda: answered.append(client.ask("/a/x.txt").status) or answered[-1] == 503, 30, "503")
        assert [client.ask(path).status for path in ("/a/y", "/b/x.txt", "/a/x.css")] == [503, 200, 404]
    assert server.count("maintenance_responses", host="localhost") == server.count("maintenance_responses") == 2


# ── respond ──


@needs("respond")
@pytest.mark.parametrize("name", WAYS)
def test_fixed_answers(site, tmp_path, name):
    way, file = skip_way(WAYS[name]), tmp_path / "file"
    file.touch()
    text = section("RESPOND", {"Match": "~^/(b+)+$", "Text": "b"}) + section("RESPOND", {"Match": "/a", "File": file})
    server = site(text, way=way)
    with way.connect(server) as client:
        assert [client.ask(path).status for path in ("/a", "/bb", "/a/y", "/c")] == [200, 200, 200, 404]
        file.unlink()
        assert [client.ask(path).status for path in ("/a", "/" + 3000 * "b" + "!")] == [404, 500]
    await_count(server, 4, "respond_responses")
    await_count(server, 1, "respond_failures", reason="file")
    await_count(server, 1, "respond_failures", reason="pattern")


# ── static ──


@needs("status")
@pytest.mark.parametrize("name", WAYS)
def test_files(site, tmp_path, name):
    """By kind. What is not sent as a file is none."""
    way = skip_way(WAYS[name])
    server = site("", keys={"Precompressed": "gzip"}, way=way)
    (tmp_path / "root" / "text.txt.gz").write_bytes(gzip.compress(TEXT))
    with way.connect(server) as client:
        for _ in range(4):
            answer = client.ask("/a/x.txt")
            assert answer.body == b"x\n"
        for _ in range(3):
            assert client.ask("/a/x.txt", f"If-None-Match: {answer['ETag']}").status == 304
        for ranges in ("0-9", "5-"):
            assert client.ask("/text.txt", f"Range: bytes={ranges}").status == 206
        assert client.ask("/text.txt", "Accept-Encoding: gzip")["Content-Encoding"] == "gzip"
        for path, fields, status in (
            ("/nothing", (), 404), ("/a", (), 301), ("/text.txt", ("Range: bytes=99999999-",), 416),
            ("/a/x.txt", ('If-Match: "other"',), 412),
        ):
            assert client.ask(path, *fields).status == status
    for kind, n in {"whole": 4, "not_modified": 3, "part": 2, "precompressed": 1}.items():
        await_count(server, n, "static_files", kind=kind)
    await_count(server, 10, "static_files")


def test_lookups_on_a_disk(site, tmp_path):
    """A name of /proc that nothing has asked for yet is not in the kernel's cache: a disk thread looks it up."""
    server = site(section("ALIAS", {"Match": "/proc", "To": "/proc/self"}))
    with server.connect() as client:
        assert client.ask("/a/x.txt").status == 200
        before = server.count("static_disk_lookups")
        for file in ("oom_score", "coredump_filter", "personality", "coredump_filter"):
            assert client.ask(f"/proc/{file}").status == 200
        await_count(server, before + 3, "static_disk_lookups")
