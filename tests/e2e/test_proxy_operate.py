# SPDX-License-Identifier: Apache-2.0
"""What operators of a proxy see and set: counters by backend, fields of the log, files before the backend, `monkey
proxy URL`, idle connections when resources run short."""

import contextlib
import json
import re
import select
import ssl
import subprocess

import pytest

from harness import build
from harness.backend import Backend, answer, replay
from harness.certificates import TlsClient
from harness.few_descriptors import no_descriptor_left
from harness.messages import lines, sized
from harness.metrics import needs_status, scrape, status_of, status_section, total
from harness.names import needs_localhost
from harness.protocol import Client
from harness.proxies import TEXT, proxy_section
from harness.server import Server, await_true, run, section, write_config
from harness.services import CONTROL_THREAD, reload
from test_shell import Shell

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
]

STATUS = {"plugins/status/status.conf": status_section()}
PREFIX = "monkey_proxy_backend_"


def status_lines(status):
    return lines(f"HTTP/1.1 {status} Some", TEXT, sized(b"hello")) + b"hello"


def stay_silent(peer):
    """Reads a request, and never answers."""
    peer.request()
    peer.wait_end()


@pytest.fixture
def proxy(serve):
    """A server that passes /b to a backend, and has the pages of the plugin status."""

    def start(backend, keys=None, settings=None, text="", **rest):
        section_text = proxy_section(backend, {"Match": "/b", **(keys or {})})
        config = {**STATUS, **rest.pop("config", {})}
        return serve({"Workers": 1, **(settings or {})}, text=section_text + text, config=config, **rest)

    return start


def numbers(client, url):
    """The counters of a backend, by their names, with a second label behind them."""
    found = {}
    for (name, labels), value in scrape(client).items():
        labels = dict(labels)
        if name.startswith(PREFIX) and labels.pop("backend", None) == url and "le" not in labels:
            found[" ".join([name.removeprefix(PREFIX), *labels.values()])] = value
    return found


# ── counters ──


@needs_status
def test_headers_that_are_ambiguous(proxy):
    """Counted, and in the log, but not each of them."""
    with Backend(answer(b"hello", TEXT)) as backend:
        server = proxy(backend, {"RequestSet": "X-User $user", "RequestRemove": "X-Gone"})
        lies = ["X_Real_IP: 192.0.2.3", "X-Forwarded_Host: evil", "X_User: root", "X-User: root", "X_Gone: 1"]
        with server.connect() as client:
            for _ in range(3):
                assert client.ask("/b", *lies, "Own_Name: 1").status == 200
            assert total(scrape(client), "monkey_proxy_ambiguous_headers_total") == 9
        assert [request["Own_Name"] for request in backend.requests] == ["1"] * 3
    assert server.log.count("is not passed on: a backend that reads _ as -") == 1
    server.wait_log("the header X_Real_IP is not passed on")


@needs_status
def test_counters_of_a_backend(proxy):
    heads = [status_lines(200), status_lines(404), status_lines(503), b"HTTP/1.1 200 OK\r\nBad\r\n\r\n"]

    def respond(peer):
        for head in heads:
            peer.request()
            peer.send(head)
        peer.wait_end()

    with Backend(respond) as backend:
        with proxy(backend).connect() as client:
            assert [client.ask("/b").status for _ in heads] == [200, 404, 503, 502]
            backend.wait_open(0)
            found = numbers(client, backend.url)
            sent = len(b"".join(peer.raw for peer in backend.peers))
    assert found["sent_bytes_total"] == sent
    assert found["received_bytes_total"] == sum(map(len, heads))
    for name, value in {"requests_total": 4, "responses_total 2xx": 1, "responses_total 4xx": 1,
                        "responses_total 5xx": 1, "responses_total 1xx": 0, "failures_total": 1,
                        "retries_total stale_connection": 0,
                        "timeouts_total": 0, "opened_connections_total": 1, "connections busy": 0,
                        "connections idle": 0, "head_duration_seconds_count": 3,
                        "duration_seconds_count": 3}.items():  # fmt: skip
        assert found[name] == value, name


@needs_status
@pytest.mark.budget
def test_connections_are_used_again(proxy, serve):
    """By more clients at a time than KeepAlive, for 99.9 % of the requests at least."""
    endless = {"MaxKeepAliveRequest": 0, "Workers": 1}
    origin = serve(endless, files={"b": b"hello"})
    server = proxy(None, {"To": origin.url}, endless)
    command = ["h2load", "--h1", "-n", "100000", "-c", "64", "-t", "1", f"{server.url}/b"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    assert "100000 succeeded" in result.stdout, result.stdout
    with server.connect() as client:
        found = numbers(client, origin.url)
    print(f"{found['opened_connections_total']} connections for {found['requests_total']} requests")
    assert found["requests_total"] == 100_000
    assert found["opened_connections_total"] <= 100


@needs_status
def test_connections_and_timeouts(proxy):
    def once(peer):
        peer.request()
        peer.respond(b"hello", TEXT)
        peer.wait("reset")
        peer.reset()

    with Backend([once, stay_silent]) as backend:
        server = proxy(backend, {"ResponseTimeout": "5s"}, {"KeepAliveTimeout": "60s"})
        with server.connect() as client, server.connect() as other:
            assert client.ask("/b").status == 200
            found = numbers(client, backend.url)
            assert (found["connections idle"], found["connections busy"]) == (1, 0)
            backend.tell("reset")
            await_true(lambda: numbers(client, backend.url)["connections idle"] == 0, 30, "the end of the connection")
            other.send("GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n")
            backend.wait_requests(2)
            assert numbers(client, backend.url)["connections busy"] == 1
            assert other.response().status == 504
            found = numbers(client, backend.url)
            assert (found["timeouts_total"], found["connections busy"]) == (1, 0)


@needs_status
def test_retries_are_counted(proxy):
    def once(peer):
        peer.request()
        peer.respond(b"hello", TEXT)
        peer.head()
        peer.reset()

    with Backend([once, answer(b"hello", TEXT)]) as backend:
        with proxy(backend).connect() as client:
            assert [client.ask("/b").status for _ in range(2)] == [200, 200]
            found = numbers(client, backend.url)
            names = ("retries_total stale_connection", "requests_total", "opened_connections_total")
            assert [found[name] for name in names] == [1, 2, 2]


@needs_status
def test_bytes_that_are_not_copied_are_counted(proxy):
    with Backend(answer(b"x" * 300_000, TEXT)) as backend:
        with proxy(backend).connect() as client:
            assert len(client.ask("/b").body) == 300_000
            assert numbers(client, backend.url)["received_bytes_total"] > 300_000


@needs_status
def test_tunnels_are_counted(proxy):
    def upgrade(peer):
        peer.head()
        peer.send(lines("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: echo"))
        peer.send(peer.exactly(5))
        peer.wait_end()

    with Backend(upgrade) as backend:
        server = proxy(backend, {"Upgrade": "echo"})
        with server.connect() as client, server.connect() as tunnel:
            tunnel.send("GET /b HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
            tunnel.until(b"\r\n\r\n")
            tunnel.send(b"hello")
            assert tunnel.exactly(5) == b"hello"
            found = numbers(client, backend.url)
            assert (found["responses_total 1xx"], found["connections busy"]) == (1, 1)
            assert found["sent_bytes_total"] == len(backend.peers[0].raw)
            tunnel.close()
            backend.wait_open(0)
            await_true(lambda: numbers(client, backend.url)["connections busy"] == 0, 30, "the end of the tunnel")


@needs_status
def test_series_of_removed_backends_end(proxy):
    with Backend(answer(b"one", TEXT)) as one, Backend(answer(b"two", TEXT)) as two:
        server = proxy(one)
        write = lambda *all: write_config(
            server.conf, server.root, text="".join(proxy_section(each, {"Match": "/b"}) for each in all), files=STATUS)

        def is_shown(client, backend):
            return bool(numbers(client, backend.url))

        with server.connect() as client:
            assert client.ask("/b").body == b"one"
            write(two)
            reload(server)
            await_true(lambda: not is_shown(client, one), 30, "the end of the counters")
            assert is_shown(client, two)
            assert client.ask("/b").body == b"two"
            assert total(scrape(client), "monkey_proxy_requests_total") == 2
            write(one)
            reload(server)
            await_true(lambda: not is_shown(client, two), 30, "the end of the counters")
            assert numbers(client, one.url)["requests_total"] == 1  # as before
    server.baseline += CONTROL_THREAD


@needs_status
def test_series_after_an_upgrade(chain, tmp_path):
    with Backend(answer(b"one", TEXT)) as one, Backend(answer(b"two", TEXT)) as two:
        def sites(backend):
            host = section("HOST", {"ServerName": "localhost", "DocumentRoot": tmp_path})
            return {"sites/default": host + proxy_section(backend, {"Match": "/b"})}

        server = chain(modules=("proxy.so", "status.so"), files={**STATUS, **sites(one)})
        with Client(server.server.addresses[0]) as client:
            assert client.ask("/b").body == b"one"
        write_config(tmp_path / "conf", tmp_path, server.settings, files={**STATUS, **sites(two)})
        server.upgrade()
        server.await_old()
        with Client(server.server.addresses[0]) as client:
            assert client.ask("/b").body == b"two"
            assert (numbers(client, one.url), numbers(client, two.url)["requests_total"]) == ({}, 1)


@needs_status
def test_status_of_backends(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        keys = {"To": f"{backend.url}/v2", "Match": "/b"}
        with proxy(None, keys).connect() as client:
            for _ in range(3):
                client.ask("/b")
            status = status_of(client)
        (row,) = status["backends"]
        assert (row["name"], row["requests"], row["status"]["2xx"]) == (backend.url, 3, 3)
        assert (row["opened_connections"], row["idle_connections"], row["busy_connections"]) == (1, 1, 0)
        assert (row["latency"]["count"], row["head_latency"]["count"]) == (3, 3)
        assert 0 < row["head_latency"]["p50_ms"] <= row["latency"]["p99_ms"]
        assert status["omits_backends"] is False


@pytest.mark.skipif(not (build.PLUGINS / "cheetah.so").exists(), reason=f"the preset {build.PRESET} has no shell")
def test_backends_in_the_shell(proxy, tmp_path):
    path = tmp_path / "shell.sock"
    with Backend(answer(b"hello", TEXT)) as one, Backend(answer(b"no", TEXT, status=404)) as two:
        config = {"plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": path})}
        server = proxy(one, text=proxy_section(two, {"Match": "/two"}), config=config)
        with server.connect() as client, Shell(path) as shell:
            for target in ("/b", "/b", "/two"):
                client.ask(target)
            rows = {row["backend"]: row for row in shell.ask("backends")}
            assert set(rows) == {one.url, two.url}
            first, second = rows[one.url], rows[two.url]
            assert [first[key] for key in ("requests", "4xx", "idle", "busy")] == [2, 0, 1, 0]
            assert [second[key] for key in ("requests", "4xx", "retries", "failures")] == [1, 1, 0, 0]
            assert 0 < first["head_p50_us"] <= first["head_p99_us"]
            assert first["sent_bytes"] == len(one.peers[0].raw)


# ── the log ──


LOG = (build.PLUGINS / "logger.so").exists()
FIELDS = "$status $upstream $upstream_status $upstream_connect_us $upstream_head_us $upstream_us $retries"
needs_log = pytest.mark.skipif(not LOG, reason=f"the preset {build.PRESET} has no logger")


@pytest.fixture
def logged(proxy, tmp_path):
    """Starts a server that logs the fields of upstreams, and returns it with a function that waits for the rows."""

    def start(backend, keys=None, **rest):
        path = tmp_path / "access.log"
        text = section("LOGGER", {"AccessLog": path, "Format": f'"json {FIELDS}"'})
        config = {"plugins/logger/logger.conf": section("LOGGER", {"Flush": "20ms"})}
        server = proxy(backend, keys, text=text, config=config, **rest)

        def rows(count):
            read = lambda: path.read_text().splitlines() if path.exists() else []
            await_true(lambda: len(read()) >= count, 60, f"{count} lines of the log")
            return [json.loads(line) for line in read()]

        return server, rows

    return start


USUAL = ["upstream", "upstream_status", "upstream_connect_us", "upstream_head_us", "upstream_us", "retries"]


@needs_log
@pytest.mark.single_protocol
@pytest.mark.parametrize("kind", ["PROXY", "FASTCGI", "SCGI", None])
def test_the_usual_json_of_hosts_that_forward_requests(serve, tmp_path, kind):
    """It says where a request went; a file was not forwarded."""
    path = tmp_path / "access.log"
    log = section("LOGGER", {"AccessLog": path, "Format": "JSON"})
    flush = {"plugins/logger/logger.conf": section("LOGGER", {"Flush": "20ms"})}
    with Backend(answer(b"hello", TEXT)) as backend:
        to = {"Match": "/x", "To": backend.url if kind == "PROXY" else "127.0.0.1:1"}
        text = log + (section(kind, to) if kind else "")
        host = section("HOST", {"DocumentRoot": tmp_path, "ServerName": "plain.example"}) + log
        server = serve({"Workers": 1}, text=text, files={"a.txt": b"a"}, config={"sites/plain": host, **flush})
        with server.connect() as client:
            client.ask("/x/")
            client.ask("/a.txt")
            client.ask("/a.txt", host="plain.example")
        read = lambda: path.read_text().splitlines() if path.exists() else []
        await_true(lambda: len(read()) == 3, 60, "3 lines of the log")
        rows = [json.loads(line) for line in read()]
    assert [[name for name in USUAL if name in row] for row in rows] == [USUAL if kind else []] * 2 + [[]]
    if kind == "PROXY":
        assert (rows[0]["upstream"], rows[0]["upstream_status"], rows[0]["retries"]) == (backend.url, "200", 0)
    if kind:
        assert [rows[1][name] for name in USUAL] == [None] * len(USUAL)


def times_of(row):
    return [row[name] for name in ("upstream_connect_us", "upstream_head_us", "upstream_us")]


@needs_log
def test_fields_of_the_log(logged):
    with Backend(answer(b"hello", TEXT)) as backend:
        server, rows = logged(backend)
        with server.connect() as client:
            client.ask("/b")
            client.ask("/b", method="POST", body=b"x")
            client.ask("/none")
        for row in rows(3)[:2]:
            assert (row["status"], row["upstream"], row["upstream_status"]) == (200, backend.url, "200")
            assert row["retries"] == 0
            assert 0 <= row["upstream_connect_us"] <= row["upstream_head_us"] <= row["upstream_us"]
        assert rows(3)[2] == {**dict.fromkeys(rows(3)[0]), "status": 404}


@needs_log
def test_fields_of_failures(logged):
    scripts = [replay(b"HTTP/1.1 200 OK\r\nBad\r\n\r\n", end="wait"),
               replay(lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 10") + b"short", end="close")]  # fmt: skip
    with Backend(scripts) as backend:
        server, rows = logged(backend)
        for _ in scripts:
            with server.connect() as client:
                client.send("GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n")
                client.rest() if _ is scripts[1] else client.response()
        malformed, cut = rows(2)
        assert (malformed["status"], malformed["upstream_head_us"]) == (502, None)
        assert malformed["upstream_status"] == "http_protocol_error"
        assert malformed["upstream_us"] >= malformed["upstream_connect_us"] >= 0
        assert (cut["status"], None in times_of(cut)) == (200, False)
        assert cut["upstream_status"] == "200, http_response_incomplete"
        backend.refuse()
        with server.connect() as client:
            assert client.ask("/b").status == 502
        row = rows(3)[2]
        assert (row["upstream"], row["upstream_connect_us"], row["upstream_head_us"]) == (backend.url, None, None)
        assert (row["upstream_us"] > 0, row["upstream_status"]) == (True, "connection_refused")


@needs_log
def test_fields_of_retries_and_clients_that_leave(logged):
    def once(peer):
        peer.request()
        peer.respond(b"hello", TEXT)
        peer.head()
        peer.reset()

    with Backend([once, answer(b"hello", TEXT, count=1), stay_silent]) as backend:
        server, rows = logged(backend)
        with server.connect() as client:
            client.ask("/b")
            client.ask("/b")
        assert [row["retries"] for row in rows(2)] == [0, 1]
        assert [row["upstream_status"] for row in rows(2)] == ["200", "connection_terminated, 200"]
        assert [row["upstream"] for row in rows(2)] == [backend.url, f"{backend.url}, {backend.url}"]
        with server.connect() as client:
            client.send("GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n")
            backend.wait_requests(3)
        left = rows(3)[2]
        assert (left["upstream"], left["upstream_head_us"], left["upstream_us"]) == (backend.url, None, None)
        assert left["upstream_connect_us"] >= 0


@needs_log
def test_fields_of_tunnels(logged):
    def upgrade(peer):
        peer.head()
        peer.send(lines("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: echo"))
        peer.wait_end()

    with Backend(upgrade) as backend:
        server, rows = logged(backend, {"Upgrade": "echo"})
        with server.connect() as client:
            client.send("GET /b HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
            client.until(b"\r\n\r\n")
        (row,) = rows(1)
        assert (row["status"], row["upstream"], None in times_of(row)) == (101, backend.url, False)


# ── files before the backend ──


FILES = {"a.txt": b"file", "dir/index.html": b"index", "dir/b.txt": b"below", "empty/x/c.txt": b"c", ".env": b"secret"}
TRIES = {"TryFiles": "$path", "Indexfile": "index.html"}


@pytest.fixture
def tries(serve):
    def start(backend, keys=None, host=None, text="", **rest):
        files = rest.pop("files", FILES)
        section_text = proxy_section(backend, keys)
        return serve({"Workers": 1}, files=files, host={**TRIES, **(host or {})}, text=section_text + text, **rest)

    return start


@pytest.mark.parametrize("way", ["h1", "h2"])
def test_files_come_first(tries, way):
    with Backend(answer(b"hello", TEXT)) as backend:
        server = tries(backend)
        with server.connect() if way == "h1" else server.connect_h2() as client:
            assert client.ask("/a.txt").body == b"file"
            assert client.ask("/a.txt", method="HEAD").length == 4
            assert client.ask("/dir/b.txt").body == b"below"
            assert not backend.requests
            for target in ("/", "/none", "/a.txt/x", "/empty/", "/empty", "/.env", "/dir%20x", "/a.txtx?q=1"):
                assert (target, client.ask(target).body) == (target, b"hello")
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
                got = client.ask("/a.txt", method=method)
                assert (method, got.status, got.body) == (method, 200, b"hello")
            assert client.ask("/none", method="HEAD").status == 200
        assert backend.requests[-1].method == "HEAD"


def test_directories_and_index(tries):
    with Backend(answer(b"hello", TEXT)) as backend:
        with tries(backend, host={"TryFiles": "$path $path/"}).connect() as client:
            assert client.ask("/dir/").body == b"index"
            assert (client.ask("/dir").status, client.ask("/dir")["Location"]) == (301, "/dir/")
            assert client.ask("/empty/").body == b"hello"
            assert client.ask("/").body == b"hello"


def test_sections_keep_their_paths(tries):
    with Backend(answer(b"hello", TEXT)) as backend:
        server = tries(backend, {"Match": "/api"}, files={**FILES, "api/x.txt": b"x"})
        with server.connect() as client:
            assert client.ask("/api/x.txt").body == b"x"
            assert client.ask("/api/none").body == b"hello"
            assert client.ask("/none").status == 404
        assert [each.target for each in backend.requests] == ["/api/none"]


def test_status_of_tryfiles_and_encoded_slashes(tries):
    with Backend(answer(b"hello", TEXT)) as backend:
        with tries(backend, {"EncodedSlash": "Keep"}, host={"TryFiles": "$path =410"}).connect() as client:
            assert client.ask("/none").status == 410
            assert client.ask("/a%2Fb").body == b"hello"


@pytest.mark.parametrize("last", ["/index.html", "=404"])
def test_a_narrow_section_comes_before_files_that_answer_all(tries, last):
    """A single-page application and its API."""
    with Backend(answer(b"hello", TEXT)) as backend:
        files = {"index.html": b"page", "a.txt": b"a", "api/x.txt": b"x"}
        server = tries(backend, {"Match": "/api"}, host={"TryFiles": f"$path {last}"}, files=files)
        with server.connect() as client:
            for method in ("GET", "POST"):
                for target in ("/api/users", "/api/x.txt"):
                    assert (method, target, client.ask(target, method=method).body) == (method, target, b"hello")
            assert client.ask("/api/users", method="HEAD")["Content-Length"] == "5"
            assert client.ask("/a.txt").body == b"a"
            got = client.ask("/about")
            assert got.body == b"page" if last == "/index.html" else got.status == 404
        assert len(backend.requests) == 5


@pytest.mark.parametrize("match", ["/", "*", "/**", "/*", "~^/", "~^/(?!static)"])
def test_a_pattern_with_the_root_comes_after_files_that_answer_all(tries, match):
    with Backend(answer(b"hello", TEXT)) as backend:
        host, files = {"TryFiles": "$path /index.html"}, {"index.html": b"page", "a.txt": b"a"}
        with tries(backend, {"Match": match}, host=host, files=files).connect() as client:
            for target, body in (("/a.txt", b"a"), ("/", b"page"), ("/about", b"page")):
                assert (target, client.ask(target).body) == (target, body)
            assert client.ask("/about", method="POST").body == b"hello"


def test_a_section_for_all_paths_comes_after_files_that_answer_all(tries):
    with Backend(answer(b"hello", TEXT)) as backend:
        host, files = {"TryFiles": "$path /index.html"}, {"index.html": b"page"}
        server = tries(backend, {"Match": "/api"}, host=host, files=files, text=proxy_section(backend))
        with server.connect() as client:
            assert client.ask("/about").body == b"page"
            assert client.ask("/about", method="POST").body == b"hello"
            assert client.ask("/api/users").body == b"hello"


def test_handlers_and_files(tries):
    """A line of [HANDLERS] that names one plugin keeps the others away."""
    with Backend(answer(b"hello", TEXT)) as backend:
        text = section("HANDLERS", {"Match": ["/app proxy", "/files static"]})
        files = {"app/a.txt": b"app", "files/a.txt": b"file"}
        with tries(backend, text=text, files=files).connect() as client:
            assert client.ask("/app/a.txt").body == b"hello"
            assert client.ask("/files/a.txt").body == b"file"
            assert client.ask("/files/none").status == 404


def test_without_tryfiles_the_backend_comes_first(serve):
    with Backend(answer(b"hello", TEXT)) as backend:
        with serve(files=FILES, text=proxy_section(backend)).connect() as client:
            assert client.ask("/a.txt").body == b"hello"


def test_failing_fallback(tries):
    with Backend(answer(b"hello", TEXT)) as backend:
        backend.refuse()
        with tries(backend).connect() as client:
            assert client.ask("/a.txt").status == 200
            assert client.ask("/none").status == 502


# ── idle connections end first ──


PATIENT = {"Timeout": "60s", "KeepAliveTimeout": "60s"}


def has_ended(sock):
    """Whether the server has closed its side, which the kernel knows before the backend's thread does."""
    poll = select.poll()
    with contextlib.suppress(ValueError):  # the thread has closed it
        poll.register(sock, select.POLLRDHUP)
        return bool(poll.poll(0))
    return True


def test_low_memory(proxy):
    """Idle connections end before those of clients, and none is kept while memory is low."""
    with Backend(answer(b"hello", TEXT)) as backend:
        server = proxy(backend, {"KeepAliveTimeout": "60s"}, {**PATIENT, "MemoryLimit": "1M"})
        with server.connect() as client:
            assert client.ask("/b").status == 200
            kept, greedy = backend.peers[0].sock, []
            while not has_ended(kept):
                assert len(greedy) < 400, "the idle connection has not ended"
                greedy.append(server.connect())
                greedy[-1].send("GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nX: " + "y" * 3000)
                client.assert_open()
            assert client.ask("/b").status == 200
            backend.wait_accepted(2)
            backend.wait_open(0)
            for each in greedy:
                each.close()
            await_true(lambda: client.ask("/b").status == 200 and backend.open == 1, 60, "a connection that is kept")


def test_dial_without_a_descriptor(serve):
    """An idle connection to another backend gives its own."""
    with Backend(answer(b"one", TEXT)) as one, Backend(answer(b"two", TEXT)) as two:
        text = proxy_section(one, {"Match": "/one", "KeepAliveTimeout": "60s"}) + proxy_section(two, {"Match": "/two"})
        server = serve(PATIENT, text=text)
        with server.connect() as client:
            assert client.ask("/one").body == b"one"
            with no_descriptor_left(server):
                assert client.ask("/two").body == b"two"
            one.wait_open(0)


# ── names without an address ──


@pytest.mark.parametrize(
    "name, warned",
    [
        ("no-such-name.invalid", True),
        pytest.param("localhost", False, marks=needs_localhost),
        ("127.0.0.1", False),
    ],
)
def test_names_without_an_address(tmp_path, name, warned):
    write_config(tmp_path / "conf", tmp_path, text=proxy_section(None, {"To": f"http://{name}:8080"}))
    done = run("-t", "-c", tmp_path / "conf")
    assert done.returncode == 0, done
    assert (f"warning: {name} has no address now" in done.stderr) == warned
    assert bool(re.search(r"sites/default:\d+:\d+: warning", done.stderr)) == warned


def test_a_server_does_not_wait_for_names(serve):
    server = serve(text=proxy_section(None, {"To": "http://no-such-name.invalid:8080"}))
    with server.connect() as client:
        assert client.ask("/").status == 502
    assert "has no address now" not in server.log


# ── monkey proxy URL ──


needs_tls = pytest.mark.skipif(not build.speaks("tls"), reason=f"NOT TESTED: the preset {build.PRESET} has no TLS")
URL = re.compile(r"    (\S+)")


@pytest.fixture
def passing(tmp_path):
    """Starts `monkey proxy ...`; its standard output goes to the file `stdout`."""
    servers = []

    def start(*args, **rest):
        wrapper = ["/bin/sh", "-c", f'exec "$@" >>"{tmp_path}/stdout"', "sh"]
        servers.append(Server(*args, "-l", "127.0.0.1:0", wrapper=wrapper, cwd=tmp_path, **rest))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@needs_tls
@pytest.mark.parametrize("words", [["proxy"], ["--proxy"], ["-w", "2", "--https", "--supervise", "proxy"]], ids=str)
def test_one_line(passing, tmp_path, words):
    with Backend(answer(b"hello", TEXT)) as backend:
        server = passing(*words, backend.url)
        context = ssl._create_unverified_context()
        with TlsClient(server.addresses[0], context) as client:
            got = client.ask("/a?b", "X-Mine: 1")
            assert (got.status, got.body) == (200, b"hello")
        assert (backend.requests[0].target, backend.requests[0]["X-Forwarded-Proto"]) == ("/a?b", "https")
        wanted = f'monkey serves {backend.url} at\n    https://127.0.0.1:{server.port}/\n'
        line = re.compile(r'127\.0\.0\.1 - - \[[^]]+\] "GET /a\?b HTTP/1\.1" 200 5')
        text = lambda: (tmp_path / "stdout").read_text()
        await_true(lambda: text().startswith(wanted) and line.search(text()), 60, "the URL and the line of the request")


@needs_tls
@pytest.mark.parametrize("form", ["127.0.0.1:{port}", "localhost:{port}/", ":{port}", "{port}"])
def test_parts_of_a_url_that_may_be_left_out(passing, form):
    with Backend(answer(b"hello", TEXT)) as backend:
        server = passing("proxy", form.format(port=backend.address.rpartition(":")[2]))
        with TlsClient(server.addresses[0], ssl._create_unverified_context()) as client:
            assert client.ask("/a").body == b"hello"


BAD_LINES = [
    (["proxy", "ftp://example.org"], 1, "a backend is http://HOST:PORT"),
    (["proxy", "127.0.0.1:port"], 1, "no address of a backend"),
    (["proxy", "/run/app.sock"], 1, "the URL has no host"),
    (["proxy", "http://"], 1, "the URL has no host"),
    (["proxy", "http://127.0.0.1:port"], 1, "no address of a backend"),
    (["--proxy", ""], 1, "To"),
    (["--proxy"], 2, "--proxy needs a value: --proxy URL"),
    (["proxy", "http://127.0.0.1:1", "--list"], 2, "leave out --list"),
    (["proxy", "http://127.0.0.1:1", "-c", "conf"], 2, "leave out --config"),
    (["--proxy", "http://127.0.0.1:1", "folder"], 2, "leave out --one-shot"),
    (["proxy", "http://127.0.0.1:1", "http://127.0.0.1:2"], 2, "one directory can be served"),
]


@pytest.mark.parametrize("words, code, sentence", BAD_LINES, ids=str)
def test_bad_lines(words, code, sentence):
    done = run(*words)
    assert done.returncode == code and sentence in done.stderr, done


def test_help_has_the_line():
    assert "monkey proxy URL" in run("--help").stdout


def test_a_folder_named_proxy(tmp_path):
    (tmp_path / "proxy").mkdir()
    (tmp_path / "proxy" / "a.txt").write_bytes(b"a file")
    server = Server("proxy", "-l", "127.0.0.1:0", cwd=tmp_path)
    with server.connect() as client:
        assert client.ask("/a.txt").body == b"a file"
    server.stop()


def test_without_the_plugin(tmp_path):
    done = run("proxy", "http://127.0.0.1:1", program=build.install(tmp_path / "copy"))
    assert done.returncode == 1 and "proxy needs" in done.stderr, done
