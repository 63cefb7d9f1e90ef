# SPDX-License-Identifier: Apache-2.0
"""The plugin status: formats, numbers that a client has counted too, access to them, and clients that misbehave."""

import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
import zlib

import pytest

from harness import build
from harness.certificates import Authority
from harness.messages import request
from harness.orphans import MARK
from harness.metrics import (
    OPENMETRICS, Events, await_status, check_metrics, needs_status, parse, scrape, status_of, status_section, total)
from harness.protocol import Client
from harness.server import await_true, free_port, read_threads, run, section, write_config
from harness.ways import WAYS

pytestmark = [needs_status, pytest.mark.single_protocol, pytest.mark.concurrent]

FILES = {"a.txt": b"a" * 1000, "b.txt": b"b" * 10, "status": b"a file\n", "metrics": b"another\n", "f/x.txt": b"x\n"}
TEXT, OPEN = "text/plain; version=0.0.4; charset=utf-8", "application/openmetrics-text; version=1.0.0; charset=utf-8"
CONF = "plugins/status/status.conf"
EXAMPLES = build.TOP / "docs" / "examples" / "monitoring"


@pytest.fixture
def watch(serve):
    """A server with a [STATUS] section."""

    def start(settings=None, config=None, **keys):
        rest = {name: keys.pop(name) for name in ("listeners", "host", "program", "files", "text") if name in keys}
        config = {CONF: status_section(**keys), **(config or {})}
        return serve(settings, files=rest.pop("files", FILES), config=config, **rest)

    return start


def rewrite(server, settings=None, **keys):
    """Another configuration, which is in use when this returns."""
    write_config(server.conf, server.root, settings, files={CONF: status_section(**keys)})
    reload(server)


def reload(server):
    done = len(re.findall("the new configuration is in use", server.log))
    server.baseline += 2 if done == 0 else 0  # descriptors of the thread that ends a generation
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use", done + 1)


def test_a_generation_has_its_number_whenever_the_plugin_comes(serve):
    """It is the server's, as `monkey shell` shows it; one that was refused has none."""
    server = serve(files=FILES)
    reload(server)
    (server.conf / "sites" / "default").write_text("[NONSENSE\n")
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration cannot be used")
    rewrite(server)
    with server.connect() as client:
        assert (status_of(client)["generation"], total(scrape(client), "monkey_generation")) == (3, 3)


# ── off, on, where ──


def test_off_unless_enabled(serve):
    """A section alone does nothing, and the paths are those of the site."""
    for config in ({}, {CONF: section("STATUS", {"Paths": "On"})}):
        with serve(files=FILES, config=config).connect() as client:
            assert client.ask("/status").body == b"a file\n"
            assert client.ask("/metrics").body == b"another\n"
            assert client.ask("/status/").status == 404


def test_paths_of_ones_choice(watch):
    server = watch(StatusPath="/a/look", MetricsPath="/a/prom")
    with server.connect() as client:
        assert client.ask("/status").body == b"a file\n"
        assert json.loads(client.ask("/a/look").body)["generation"] == 1
        assert client.ask("/a/prom")["Content-Type"] == TEXT
        assert client.ask("/a/look/")["Content-Type"] == "text/html; charset=utf-8"
        for other in ("/a/looks", "/a/look/x", "/a/prom/", "/a"):
            assert client.ask(other).status == 404
        answer = client.ask("/a/look", "Accept: text/html")
        assert (answer.status, answer["Location"]) == (303, "/a/look/")


@pytest.mark.parametrize(
    "keys, error",
    [
        ({"MetricsPath": "/status"}, '"StatusPath" has the same path'),
        ({"StatusPath": "status"}, "starts with a slash"),
        ({"StatusPath": "/"}, "starts with a slash"),
        ({"StatusPath": "/a/"}, "does not end with one"),
        ({"StatusPath": "/a%20b"}, "need no encoding"),
        ({"StatusPath": "/a/../b"}, "need no encoding"),
        ({"Listener": "127.0.0.1:1"}, 'there is no line "Listen 127.0.0.1:1"'),
        ({"Enabled": "Off", "Listener": "127.0.0.1:0"}, '"Enabled On" is missing'),
        ({"MaxPages": "0"}, "MaxPages"),
        ({"PathsOn": "On"}, "Paths"),
    ],
)
def test_wrong_settings(tmp_path, site_root, keys, error):
    folder = write_config(tmp_path / "conf", site_root, files={CONF: status_section(**keys)})
    result = run("-c", folder, "--test")
    assert result.returncode == 1 and error in result.stderr + result.stdout, result
    assert f"{CONF}:" in result.stderr + result.stdout


def test_only_clients_on_this_machine(watch):
    """The other end of the connection and the client behind it; others see what the site has there."""
    settings = {"TrustedProxies": "127.0.0.1", "RealIPHeader": "X-Forwarded-For"}
    with watch(settings).connect() as client:
        for path in ("/status", "/status/", "/status/events", "/metrics"):
            for address in ("192.0.2.1", "2001:db8::1", "10.0.0.1"):
                answer = client.ask(path, f"X-Forwarded-For: {address}")
                assert answer.body in FILES.values() or answer.status == 404
        for address in ("127.0.0.1", "127.9.9.9", "::1"):
            assert client.ask("/status", f"X-Forwarded-For: {address}")["Content-Type"] == "application/json"


def test_dns_rebinding(watch, tmp_path):
    """A page whose own name leads to this machine must not read the status; names of the configuration may."""
    host = section("HOST", {"DocumentRoot": tmp_path, "ServerName": "a.test *.b.test"})
    server = watch(config={"sites/a.conf": host})
    with server.connect() as client:
        for path in ("/status", "/status/", "/status/events", "/metrics"):
            for name in ("evil.test", "evil.test:2001", "localhost.evil.test", "127.0.0.1.evil.test", "xlocalhost"):
                answer = client.ask(path, host=name)
                assert answer.status == 404 or answer.body in FILES.values(), (path, name)
        for name in ("localhost", "LOCALHOST:80", "127.0.0.1:2001", "[::1]:9", "a.test", "c.b.test:8"):
            assert client.ask("/status", host=name)["Content-Type"] == "application/json", name


def test_an_address_of_the_machine_is_not_loopback(watch):
    """A connection to another address of this machine comes from there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has only the loopback address")
        address = one.getsockname()[0]
    if address.startswith("127."):
        pytest.skip("this machine has only the loopback address")
    server = watch({"Listen": f"{address}:0"})
    with server.connect() as client:
        assert client.ask("/status").body == b"a file\n"


def test_a_unix_socket_is_local(watch, tmp_path):
    server = watch({"Listen": f"unix:{tmp_path}/socket"})
    with server.connect() as client:
        assert total(scrape(client), "monkey_accepted_connections_total") == 1


def test_a_listener_of_its_own(watch, tmp_path):
    """It serves nothing else, also to clients that are not on this machine, and the others do not serve the status."""
    name = f"unix:{tmp_path}/status"
    settings = {"Listen": ["127.0.0.1:0", name], "TrustedProxies": "unix", "RealIPHeader": "X-Forwarded-For"}
    server = watch(settings, Listener=name, listeners=2)
    first = [isinstance(address, tuple) for address in server.addresses].index(True)
    with server.connect(first) as site, server.connect(1 - first) as status:
        assert site.ask("/status").body == b"a file\n"
        assert site.ask("/a.txt").status == 200
        assert status.ask("/a.txt").status == status.ask("/").status == 404
        assert status_of(status, "X-Forwarded-For: 192.0.2.1")["totals"]["requests"] == 4
        assert status.ask("/metrics").status == 200


@pytest.mark.skipif(not (build.PLUGINS / "auth.so").exists(), reason="the preset has no plugin auth")
def test_a_login_protects_it(watch, tmp_path):
    users = tmp_path / "users"
    program = build.TOP / "build" / build.PRESET / "bin" / "mk_passwd"
    subprocess.run([program, "-c", "-t", "bcrypt", "-C", "4", users, "ada"], input="pw\n", text=True, check=True)
    rule = section("AUTH", {"Match": "/status", "Users": users, "Realm": "status"})
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": tmp_path}) + rule
    with watch(config={"sites/default": text}).connect() as client:
        for path in ("/status", "/status/", "/status/events", "/status/page.js"):
            assert client.ask(path).status == 401
        assert client.ask("/status", "Authorization: Basic YWRhOnB3").status == 200
        assert client.ask("/metrics").status == 200


@pytest.mark.skipif(not (build.PLUGINS / "mandril.so").exists(), reason="the preset has no plugin mandril")
def test_rules_hold_for_it(watch, tmp_path):
    """By the path, and by the client that a trusted proxy names, on its own listener."""
    rules = [{"Match": "/status", "Network": "192.0.2.0/24", "Action": "allow"}, {"Match": "/status", "Action": "deny"}]
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": tmp_path})
    text += "".join(section("RULES", rule) for rule in rules)
    settings = {"TrustedProxies": "127.0.0.1", "RealIPHeader": "X-Forwarded-For"}
    with watch(settings, config={"sites/default": text}, Listener="127.0.0.1:0").connect() as client:
        assert client.ask("/metrics").status == 200
        for path in ("/status", "/status/", "/status/events"):
            assert client.ask(path).status == 403
            assert client.ask(path, "X-Forwarded-For: 192.0.2.7", method="HEAD").status == 200


@pytest.mark.skipif(not (build.PLUGINS / "compress.so").exists(), reason="the preset has no plugin compress")
def test_compressed(watch, tmp_path):
    """As Prometheus asks for it; events come out one by one."""
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": tmp_path})
    text += section("COMPRESS", {"Types": "text/* text/event-stream application/openmetrics-text"})
    with watch(config={"sites/default": text}).connect() as client:
        answer = client.ask("/metrics", "Accept-Encoding: gzip", OPENMETRICS)
        assert (answer["Content-Encoding"], answer["Content-Type"]) == ("gzip", OPEN)
        assert total(parse(gzip.decompress(answer.body).decode()), "monkey_worker_up") == 1
        client.send("GET /status/events HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
        assert client.head()["Content-Encoding"] == "gzip"
        plain, text = zlib.decompressobj(wbits=31), b""
        while text.count(b"data: ") < 2:
            text += plain.decompress(client.exactly(int(client.until(b"\r\n"), 16)))
            client.exactly(2)
        assert json.loads(text.split(b"\n\n")[1].removeprefix(b"data: "))["generation"] == 1


# ── formats ──


@pytest.mark.parametrize("way", WAYS)
def test_formats(serve, tmp_path, way):
    """By Accept, over each protocol: types, what promtool and the parser of Prometheus' client library say."""
    server = start_way(serve, tmp_path, WAYS[way])
    client = WAYS[way].connect(server)
    client.ask("/a.txt")
    for accept, kind in (("*/*", TEXT), ("text/html", TEXT), (OPENMETRICS.partition(": ")[2], OPEN)):
        answer = client.ask("/metrics", f"Accept: {accept}")
        assert (answer.status, answer["Content-Type"]) == (200, kind)
        assert (answer["Cache-Control"], answer["Vary"]) == ("no-store", "Accept")
        text = answer.body.decode()
        if kind == TEXT:
            check_metrics(answer.body)
            families = list(load_parser("prometheus_client.parser")(text))
        else:
            assert text.endswith("\n# EOF\n")
            families = list(load_parser("prometheus_client.openmetrics.parser")(text))
        names = {family.name for family in families}
        assert {"monkey_requests", "monkey_connections", "monkey_request_duration_seconds", "process_open_fds",
                "process_cpu_seconds", "process_start_time_seconds", "monkey_worker_up"} <= names, names
        kinds = {family.name: family.type for family in families}
        assert kinds["monkey_requests"] == "counter" and kinds["monkey_connections"] == "gauge"
        assert kinds["monkey_request_duration_seconds"] == "histogram"


def load_parser(module):
    return pytest.importorskip(module).text_string_to_metric_families


def start_way(serve, tmp_path, way, settings=None, **keys):
    """A server that is asked in this way."""
    for protocol in ("h2",) * way.h2 + ("tls",) * way.tls:
        if not build.speaks(protocol):
            pytest.skip(f"the preset {build.PRESET} has no {protocol}")
    config = {CONF: status_section(**keys)}
    if way.tls:
        way.ca = Authority(tmp_path / "ca")
        root = tmp_path / "tls-root"
        text = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
        config["sites/default"] = text + section("TLS", way.ca.make("localhost", "localhost").keys())
        settings = {"Listen": "127.0.0.1:0 tls", **(settings or {})}
        for name, content in FILES.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return serve(settings, root=root, config=config)
    return serve(settings, files=FILES, config=config)


def test_head_and_methods(watch):
    with watch().connect() as client:
        for path in ("/metrics", "/status", "/status/", "/status/page.js", "/status/events"):
            answer = client.ask(path, method="HEAD")
            assert answer.status == 200 and answer.body == b""
            assert answer.length == (None if path == "/status/events" else answer.length) and answer.length != 0
            answer = client.ask(path, method="DELETE")
            assert (answer.status, answer["Allow"]) == (405, "GET, HEAD, OPTIONS")


def test_files_of_the_page(watch):
    """Nothing is taken from elsewhere, and browsers keep what has not changed."""
    with watch().connect() as client:
        page = client.ask("/status/")
        policy = page["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        links = re.findall(r'(?:src|href)="([^"]*)"', page.body.decode())
        assert {"page.css", "page.js", "dygraph.js"} <= set(links)
        assert all(link.startswith("data:") or re.fullmatch(r"[\w./]+", link) for link in links)
        assert "<style" not in page.body.decode() and " style=" not in page.body.decode()
        for name in ("", "page.css", "page.js", "dygraph.js"):
            answer = client.ask(f"/status/{name}")
            assert answer.status == 200 and answer["X-Content-Type-Options"] == "nosniff"
            again = client.ask(f"/status/{name}", f"If-None-Match: {answer['ETag']}")
            assert (again.status, again.body) == (304, b"")
            assert client.ask(f"/status/{name}", 'If-None-Match: "other"').body == answer.body


def test_fields_of_the_process(watch):
    server = watch({"Workers": 3})
    with server.connect() as client:
        before = len(server.threads())
        status, samples = status_of(client), scrape(client)
        assert status["process"]["pid"] == server.pid
        assert before <= status["process"]["threads"] <= len(server.threads()), "disk threads are started when needed"
        assert status["started"] <= status["time"] <= time.time() + 1
        assert abs(status["uptime"] - (status["time"] - status["started"])) < 0.01
        assert abs(status["started"] - time.time()) < 300
        assert total(samples, "process_start_time_seconds") == pytest.approx(status["started"], abs=0.001)
        assert total(samples, "process_start_time_seconds") == total(scrape(client), "process_start_time_seconds")
        assert total(samples, "process_open_fds") == len(os.listdir(f"/proc/{server.pid}/fd"))
        assert total(samples, "process_resident_memory_bytes") > 1e6
        assert total(samples, "monkey_build_info", version=status["version"]) == 1
        assert [worker["index"] for worker in status["workers"]] == [0, 1, 2]
        assert all(worker["up"] and worker["memory_bytes"] > 0 for worker in status["workers"])
        assert sum(worker["connections"] for worker in status["workers"]) == 1
        assert total(samples, "monkey_worker_up") == 3


# ── numbers ──


def ask_all(client, counted, counts):
    """One request of each kind; `counted` is (host, status class): number, `counts` other figures."""
    for target, rest, kind, sent in (
        ("/a.txt", {}, "2xx", 1000),
        ("/b.txt", {}, "2xx", 10),
        ("/a.txt", {"method": "HEAD"}, "2xx", 0),
        ("/f", {}, "3xx", None),
        ("/nothing", {}, "4xx", None),
        ("/b.txt", {"method": "POST", "body": b"x" * 77}, "4xx", None),
    ):
        answer = client.ask(target, **rest)
        assert answer.status // 100 == int(kind[0]), (target, answer)
        assert sent is None or len(answer.body) == sent
        counted[kind] = counted.get(kind, 0) + 1
        counts["sent"] = counts.get("sent", 0) + len(answer.body)
        counts["received"] = counts.get("received", 0) + len(rest.get("body", b""))


@pytest.mark.parametrize("way", WAYS)
def test_numbers(serve, tmp_path, way):
    """What the client has counted, exactly, by host, protocol and class of status."""
    server = start_way(serve, tmp_path, WAYS[way], {"Workers": 2})
    counted, counts = {}, {}
    for _ in range(5):
        client = WAYS[way].connect(server)
        for _ in range(4):
            ask_all(client, counted, counts)
        client.close()
    wanted = sum(counted.values())
    client = WAYS[way].connect(server)
    status = await_status(client, lambda s: s["totals"]["requests"] >= wanted, "the end of all requests")
    own = status["totals"]["requests"] - wanted  # the questions before this one
    host = status["hosts"][0]
    assert host["status"] == {"none": 0, "1xx": 0, "3xx": 0, "5xx": 0, **counted, "2xx": counted["2xx"] + own}
    if not WAYS[way].h2:  # where a body that no handler wants is not awaited
        assert host["received_body_bytes"] == counts["received"]
    assert host["latency"]["count"] == wanted + own == sum(n for _, n in host["latency"]["buckets"])
    assert status["totals"]["accepted_connections"] == 6
    samples = scrape(client)
    protocol = "2" if WAYS[way].h2 else "1.1"
    for kind, n in counted.items():
        more = {"2xx": own + 1}.get(kind, 0)
        assert total(samples, "monkey_requests_total", host="localhost", protocol=protocol, status=kind) == n + more
    assert total(samples, "monkey_requests_total") == wanted + own + 1
    assert total(samples, "monkey_request_duration_seconds_count", host="localhost") == wanted + own + 1
    assert total(samples, "monkey_request_duration_seconds_bucket", le="+Inf") == wanted + own + 1
    assert total(samples, "monkey_worker_requests_total") == wanted + own + 1
    assert total(samples, "monkey_received_body_bytes_total", host="localhost") == host["received_body_bytes"]


def test_sent_bytes(watch):
    with watch().connect() as client:
        counted, counts = {}, {}
        ask_all(client, counted, counts)
        samples = scrape(client)
        assert total(samples, "monkey_sent_body_bytes_total", host="localhost") == counts["sent"]
        before, answer = total(scrape(client), "monkey_sent_body_bytes_total"), client.ask("/a.txt")
        after = scrape(client)
        assert total(after, "monkey_sent_body_bytes_total") > before + len(answer.body)


def test_over_reloads_and_changes_of_workers(watch):
    """No request is lost or counted twice, though workers come and go; generations are numbered."""
    server, wanted, generation = watch({"Workers": 2}), 0, 1
    for workers in (2, 5, 1, 3):
        if workers != 2 or generation > 1:
            rewrite(server, {"Workers": workers})
            generation += 1
        with server.connect() as client:
            for _ in range(7):
                assert client.ask("/a.txt").status == 200
            status = status_of(client)
            wanted += 8
            await_true(lambda: len(status_of_new(server)["workers"]) == workers, 30, "the number of workers")
            assert status["generation"] == generation
    with server.connect() as client:
        status = status_of(client)
        paths = total(scrape(client), "monkey_reloads_total", result="ok")
    assert paths == generation - 1 == status["reloads"]["ok"]
    asked = status_of_new.asked
    assert status["totals"]["requests"] == wanted + asked, "each request, once"
    assert status["totals"]["status"]["2xx"] == wanted + asked
    server.baseline += 3 + 3  # of one worker more, and listening sockets of five workers, which stay open


def test_connections_that_are_older_than_the_plugin(serve):
    """A reload adds the plugin while connections are open; their number is right then, and when they are closed."""
    settings = {"Workers": 2, "KeepAliveTimeout": "120s"}

    def count(client, expected):
        def is_right(status):
            sums = sum(worker["connections"] for worker in status["workers"]), status["totals"]["connections"]
            return sums == (expected, expected)

        await_status(client, is_right, f"{expected} connections")
        name = "monkey_worker_connections"
        await_true(lambda: total(scrape(client), name) == expected, 60, f"{expected} connections as metrics")

    server = serve(settings, files=FILES)
    old = [server.connect() for _ in range(7)]
    for client in old:
        assert client.ask("/a.txt").status == 200
    assert old[0].ask("/status").body == FILES["status"], "the plugin is not loaded"
    rewrite(server, settings)
    count(old[0], 7)
    with server.connect():
        count(old[0], 8)
    for client in old[3:]:
        client.close()
    count(old[0], 3)
    write_config(server.conf, server.root, settings, files={CONF: "# nothing\n"})
    reload(server)
    assert old[0].ask("/status").body == FILES["status"]
    old[1].close()
    rewrite(server, settings)
    count(old[0], 2)
    server.baseline += 2  # a descriptor for each worker


def status_of_new(server):
    with server.connect() as client:
        status_of_new.asked += 1
        return status_of(client)


@pytest.fixture(autouse=True)
def count_own_questions():
    status_of_new.asked = 0


def test_over_upgrades(chain, tmp_path):
    """The new process continues with the numbers of the old one."""
    one = chain(modules=("status.so",), files={CONF: status_section()})
    wanted = 0
    for n in range(4):
        with one.server.connect() as client:
            for _ in range(5):
                assert client.ask("/small").status == 200
            status = status_of(client)
            assert status["totals"]["requests"] == wanted + 5
            assert status["process"]["pid"] == one.pids[-1]
            assert status["generation"] == 1
            wanted += 6
        if n < 3:
            one.upgrade()
            one.await_old()
    with one.server.connect() as client:
        samples = scrape(client)
    assert total(samples, "monkey_requests_total", status="2xx") == wanted
    assert total(samples, "monkey_starts_total") == 4


def test_an_old_server_that_is_killed(chain):
    """Its connections do not count any longer; its requests do."""
    one = chain(modules=("status.so",), files={CONF: status_section()})
    with Client(one.server.addresses[0], rcvbuf=4096) as slow:
        slow.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        slow.head()
        one.upgrade()

        def ask():  # on a new connection: the old server may have accepted one, and ends it with its response
            with one.server.connect() as client:
                return status_of(client)["totals"]

        assert await_true(lambda: ask()["connections"] == 2)
        asked = ask()["requests"]
        os.kill(one.pids[0], signal.SIGKILL)
        assert one.server.process.wait(60) == -signal.SIGKILL
        one.server.process.returncode = 0  # at the end of the test, which expects no crash
        totals = await_true(lambda: (t := ask())["connections"] == 1 and t)
        assert totals["requests"] > asked


def test_rates(watch):
    """They need a sample that is old enough, which an open page makes."""
    server = watch()
    with server.connect() as client, server.connect() as page:
        assert status_of(client)["rates"] == {"1s": None, "10s": None, "60s": None}
        events = Events(page)
        first = events.next()
        for _ in range(500):
            client.ask("/a.txt")

        def next_rate():  # over a longer time, where the worker was stalled
            rate = events.next()["rates"]["1s"]
            return rate if rate and rate["seconds"] <= 2 else None

        rate = await_true(next_rate, 60, "a rate")
        assert rate["seconds"] >= 0.9
        rates = [rate["requests"]]
        while sum(rates) < 500 and len(rates) < 5:
            rates.append(events.next()["rates"]["1s"]["requests"])
        assert max(rates) > 10
        assert first["rates"]["60s"] is None


# ── paths ──


def test_paths(watch):
    server = watch(Paths="On")
    with server.connect() as client:
        for _ in range(20):
            client.ask("/a.txt?token=secret")
        for _ in range(10):
            client.ask("/b.txt")
        client.ask("/%3Cb%3E%22%0A%FF")
        client.ask("/" + "x" * 300)
        status = status_of(client)
        assert "secret" not in json.dumps(status)
        rows = {row["path"]: row for row in status["paths"]["busiest"]}
        assert rows["/a.txt"]["requests"] == 20 and rows["/b.txt"]["requests"] == 10
        assert rows["/a.txt"]["excess"] == 0
        assert list(rows)[:2] == ["/a.txt", "/b.txt"]
        assert rows['/<b>"\n�']["requests"] == 1
        assert rows["/" + "x" * 199]["requests"] == 1
        assert {row["path"] for row in status["paths"]["slowest"]} == set(rows)
        assert all(row["max_ms"] >= row["mean_ms"] > 0 for row in rows.values())
    rewrite(server, Paths="On")
    with server.connect() as client:
        assert {row["path"]: row for row in status_of(client)["paths"]["busiest"]}["/a.txt"]["requests"] == 20
    rewrite(server, Paths="Off")
    with server.connect() as client:
        assert status_of(client)["paths"] is None


# ── events ──


@pytest.mark.parametrize("way", WAYS)
def test_events(serve, tmp_path, way):
    """A document each second; the end of the stream comes with a reload, when the browser connects again."""
    way = WAYS[way]
    server = start_way(serve, tmp_path, way, {"Workers": 2}, Paths="On")
    client = way.connect(server)
    if way.h2:
        stream = client.begin("/status/events")
        head = client.head(stream)
        data = bytearray()
        while data.count(b"data: ") < 2 or not data.endswith(b"\n\n"):
            data += client.exactly(1, stream)
        documents = [json.loads(part[6:]) for part in data.split(b"\n\n") if part.startswith(b"data: ")]
    else:
        events = Events(client)
        head = events.head
        documents = [events.next(), events.next()]
    assert (head.status, head["Content-Type"], head["Cache-Control"]) == (200, "text/event-stream", "no-store")
    assert 0.5 < documents[1]["time"] - documents[0]["time"] < 60
    assert documents[0]["connections"]["streams" if way.h2 else "handler"] + documents[0]["connections"]["write"] >= 1
    if not way.h2:
        reload(server)
        await_true(lambda: events.next() is None, 30, "the end of the stream")
        assert client.ask("/a.txt").status == 200, "the connection continues"


def test_no_more_pages_than_allowed(watch):
    server = watch({"Workers": 2}, MaxPages=2)
    pages = [server.connect(), server.connect()]
    streams = [Events(page) for page in pages]
    assert all(events.next() for events in streams)
    with server.connect() as client:
        assert client.ask("/status/events").status == 503
    with server.connect() as client:
        assert client.ask("/status/", method="GET").status == 200, "the page itself"
        assert client.ask("/status/events", method="HEAD").status == 200
    pages[0].close()

    def opens():
        with server.connect() as client:
            return Events(client).head.status == 200

    await_true(opens, 30, "a place for another page")


def test_a_page_that_does_not_read(watch):
    """It gets the newest event when it reads again, not all of them; the worker holds one for it."""
    server = watch()
    with server.connect(rcvbuf=4096) as client, server.connect() as other:
        events = Events(client)
        assert events.next()
        page = Events(other)
        for _ in range(4):
            page.next()
        assert events.next()["time"] > 0
        server.assert_healthy()


def test_streams_do_not_hold_up_a_stop(watch):
    server = watch({"ShutdownTimeout": "5m"})
    with server.connect() as client:
        events = Events(client)
        events.next()
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0


def count_wakeups(server):
    """How often the threads of the workers have waited."""
    n = 0
    for text in read_threads(server.pid, "status").values():
        if "monkey: w" in text:
            n += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M)[1])
    return n


def test_no_timer_without_a_page(watch):
    server = watch({"Workers": 2}, Paths="On")
    with server.connect() as page:
        Events(page).next()
    with server.connect() as client:
        await_status(client, lambda s: s["totals"]["connections"] == 1, "the end of the page")

    def is_quiet():
        before = count_wakeups(server)
        time.sleep(2.5)  # nothing may happen, once the slots of timers that were cancelled have passed
        return count_wakeups(server) == before

    await_true(is_quiet, 60, "rest")


# ── workers and clients that misbehave ──


@build.needs_modules
def test_a_worker_that_does_not_answer(watch, tmp_path):
    """It is left out and marked after a second; a scrape never hangs, and questions do not pile up."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    plugins = section("PLUGINS", {"Load": ["liana", "status", build.MODULES / "hang.so", "static"]})
    server = watch({"Workers": 2, "Scheduler": "fair"}, config={"plugins.load": plugins}, Paths="On")
    with server.connect() as first, server.connect() as second:
        assert second.ask("/a.txt").status == 200
        assert [worker["connections"] for worker in status_of(first)["workers"]] == [1, 1]
        hanging, asking = first, second
        hanging.send(request(f"/hang?{fifo}"))
        server.wait_log("hang: a worker waits")
        for _ in range(6):  # more than it is asked
            began = time.monotonic()
            samples = scrape(asking)
            assert 0.5 < time.monotonic() - began < 30
            assert sorted(v for (name, _), v in samples.items() if name == "monkey_worker_up") == [0, 1]
            assert len([1 for name, _ in samples if name == "monkey_worker_memory_bytes"]) == 1
        down = [worker for worker in status_of(asking)["workers"] if not worker["up"]]
        assert len(down) == 1 and set(down[0]) == {"index", "up"}
        check_metrics(asking.ask("/metrics").body)
        with open(fifo, "w"):
            assert hanging.until(b"\r\n") == b"HTTP/1.1 204 No Content"
        await_true(lambda: total(scrape(asking), "monkey_worker_up") == 2, 30, "the worker answers again")
        assert status_of(asking)["paths"]["busiest"]


@build.needs_modules
def test_a_page_with_a_worker_that_does_not_answer(watch, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    plugins = section("PLUGINS", {"Load": ["liana", "status", build.MODULES / "hang.so", "static"]})
    server = watch({"Workers": 2, "Scheduler": "fair"}, config={"plugins.load": plugins})
    with server.connect() as hanging, server.connect() as page:
        hanging.ask("/a.txt")
        events = Events(page)
        await_true(lambda: all(worker["up"] for worker in events.next()["workers"]), 30, "both workers")
        hanging.send(request(f"/hang?{fifo}"))
        await_true(lambda: not all(worker["up"] for worker in events.next()["workers"]), 30, "a worker that is down")
        with open(fifo, "w"):
            assert hanging.until(b"\r\n") == b"HTTP/1.1 204 No Content"
        await_true(lambda: all(worker["up"] for worker in events.next()["workers"]), 30, "both workers")


def test_clients_that_leave_amid_a_look(watch):
    """Whatever state the look is in."""
    server = watch({"Workers": 3}, Paths="On")
    for n in range(60):
        client = server.connect()
        client.send(request(("/status", "/metrics", "/status/events")[n % 3]))
        if n % 2:
            client.reset()
        else:
            client.close()
    with server.connect() as client:
        await_true(lambda: client.ask("/status").status == 200, 30, "a place for a look")
        await_status(client, lambda s: s["totals"]["connections"] == 1, "the end of all connections")


def make_hosts(root, n):
    return {f"sites/s{i}": section("HOST", {"ServerName": f"s{i}.example.org", "DocumentRoot": root}) for i in range(n)}


def test_scrapes_that_are_not_read(watch, tmp_path):
    """A large output waits for its client; a few may wait, further ones get 503, and other requests continue."""
    root = tmp_path / "many"
    root.mkdir()
    server = watch({"Workers": 2, "Timeout": "60s", "KeepAliveTimeout": "60s"}, config=make_hosts(root, 150))
    with server.connect() as client:
        size = len(client.ask("/metrics").body)
        assert size > 300_000
        slow = [server.connect(rcvbuf=4096) for _ in range(16)]
        for one in slow:
            one.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.send(request("/metrics"))
        statuses = [one.head().status for one in slow]
        refused = statuses.count(503) + (client.ask("/metrics").status == 503)
        assert client.ask("/a.txt").status == 200
        for one in slow:
            one.reset()
        await_true(lambda: client.ask("/metrics").status == 200, 30, "a place for a scrape")
        assert refused <= 17
        check_metrics(client.ask("/metrics").body)


def test_everything_at_once(watch):
    """Looks from all workers while the configuration is loaded again and the number of workers changes."""
    server = watch({"Workers": 3}, Paths="On")
    ends, errors, asked = threading.Event(), [], []

    def ask(client):
        for path in ("/status", "/metrics", "/a.txt"):
            assert client.ask(path).status in (200, 503)
            asked.append(1)

    def look(client):
        events = Events(client)
        if events.head.status == 200:
            events.next()

    def repeat(work):
        while not ends.is_set() and not errors:
            client = server.connect()
            try:
                work(client)
            except (AssertionError, OSError) as error:
                # a worker that ends may close a connection of which it has not read anything
                if client.buffer or not isinstance(error, OSError) and "closed within a head" not in str(error):
                    errors.append(repr(error))
            finally:
                client.close()

    threads = [threading.Thread(target=repeat, args=(work,)) for work in (ask, ask, ask, look, look)]
    for thread in threads:
        thread.start()
    for workers in (1, 4, 2, 3):
        before = len(asked)
        rewrite(server, {"Workers": workers}, Paths="On")
        await_true(lambda: len(asked) > before + 5 or errors, 30, "answers")
    ends.set()
    for thread in threads:
        thread.join(60)
    assert not errors, errors[:3]
    with server.connect() as client:
        await_status(client, lambda s: s["totals"]["connections"] == 1, "the end of all connections")
    server.baseline += 1  # the listening socket of the fourth worker stays open


def test_the_section_goes_and_comes(watch):
    """Looks and pages are under way when the plugin leaves the configuration."""
    server = watch({"Workers": 2}, Paths="On")
    with server.connect() as page:
        events = Events(page)
        for n in range(6):
            assert events.next()
            clients = [server.connect() for _ in range(6)]
            for client in clients:
                client.send(request("/metrics"))
            write_config(server.conf, server.root, {"Workers": 2}, files={CONF: section("HTTP2", {"Enabled": "Off"})})
            reload(server)
            assert all(client.response().status in (200, 404, 503) for client in clients)
            await_true(lambda: events.next() is None, 30, "the end of the stream")
            with server.connect() as client:
                assert client.ask("/status").body == b"a file\n"
            rewrite(server, {"Workers": 2}, Paths="On")
            events = Events(server.connect())
    server.drop_clients()
    with server.connect() as client:
        await_status(client, lambda s: s["totals"]["connections"] == 1, "the end of all connections")
        assert sum(worker["connections"] for worker in status_of(client)["workers"]) <= 1


# ── Prometheus ──


@pytest.mark.skipif(not shutil.which("prometheus"), reason="NOT TESTED: prometheus is not installed")
def test_a_scrape_of_prometheus(watch, tmp_path):
    server = watch(Paths="On")
    port, folder = free_port(), tmp_path / "prometheus"
    folder.mkdir()
    (folder / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(EXAMPLES / "alerts.yml")],
        "scrape_configs": [{"job_name": "monkey", "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}]}],
    }))
    with server.connect() as client:
        for _ in range(50):
            client.ask("/a.txt")
    process = subprocess.Popen(
        ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
         f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"],
        env={**{name: os.environ[name] for name in ("PATH", MARK) if name in os.environ}, "HOME": str(folder)},
        stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True)

    def query(expression):
        url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                rows = json.load(answer)["data"]["result"]
                return [float(row["value"][1]) for row in rows]
        except OSError:
            return []

    try:
        await_true(lambda: query('up{job="monkey"}') == [1], 60, "a scrape")
        for expression in (  # after a scrape that was too slow, there is nothing until the next one
            'monkey_requests_total{protocol="1.1",status="2xx"} >= 50',
            'monkey_request_duration_seconds_bucket{le="+Inf"} >= 50',
            'count(monkey_worker_up) == 1',
            'sum(rate(monkey_requests_total[10s])) > 0',
            'histogram_quantile(0.99, rate(monkey_request_duration_seconds_bucket[10s])) > 0',
        ):
            await_true(lambda each=expression: query(each), 60, expression)

        def read_target():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/targets", timeout=30) as answer:
                target = json.load(answer)["data"]["activeTargets"][0]
            return target["health"], target["lastError"]

        await_true(lambda: read_target() == ("up", ""), 60, "a target that is up")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/rules", timeout=30) as answer:
            rules = [rule for group in json.load(answer)["data"]["groups"] for rule in group["rules"]]
        assert len(rules) >= 5 and all(not rule.get("lastError") for rule in rules)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    server.drop_clients()


@pytest.mark.skipif(not shutil.which("promtool"), reason="NOT TESTED: promtool is not installed")
def test_alerts():
    result = subprocess.run(["promtool", "check", "rules", EXAMPLES / "alerts.yml"], capture_output=True, text=True,
                            timeout=120)
    assert result.returncode == 0, result


METRIC = re.compile(r"\b(?:monkey|process)_\w+")


@pytest.mark.parametrize("name", ["alerts.yml", "grafana.json"])
def test_examples_name_metrics_that_exist(watch, tmp_path, name):
    pair = Authority(tmp_path / "ca").make("a", "localhost")
    text = section("TLS", pair.keys()) if build.speaks("tls") else ""
    with watch(config=plugins_that_count(tmp_path), text=text, Paths="On").connect() as client:
        client.ask("/a.txt")
        client.ask("/a.txt")
        samples = scrape(client)
        known = {name for name, _ in samples}
    text = (EXAMPLES / name).read_text()
    expressions = [text] if name.endswith(".yml") else list(find_expressions(json.loads(text)))
    named = {metric for each in expressions for metric in METRIC.findall(each)}
    assert len(named) > 8
    assert named <= known, named - known
    selectors = [selector for each in expressions for selector in SELECTOR.findall(each)]
    assert len(selectors) > 4
    for metric, matchers in selectors:
        assert any(each == metric and is_selected(dict(labels), matchers) for each, labels in samples), matchers


SELECTOR = re.compile(r"\b((?:monkey|process)_\w+)\{([^}]+)\}")
MATCHER = re.compile(r'(\w+)(=~|!=|=)"([^"]*)"')


def is_selected(labels, matchers):
    """Whether the matchers select a series; Prometheus adds the job and the instance, Grafana the variables."""
    labels = {**labels, "job": "monkey"}
    for name, operator, value in MATCHER.findall(matchers):
        have = labels.get(name)
        if value.startswith("$"):
            continue
        if have is None or operator == "!=" and have == value or operator == "=" and have != value:
            return False
        if operator == "=~" and not re.fullmatch(value, have):
            return False
    return True


def plugins_that_count(folder):
    """Sections of monkey.conf that load the plugins of the alert rules."""
    rows = {
        "REDIRECT": {"Match": "/from", "To": "/to"},
        "CORS": {"Origins": "https://app.test"},
        "HEADERS": {"Set": "X-A b"},
        "MAINTENANCE": {"FlagFile": folder / "flag"},
        "LOGGER": {"AccessLog": folder / "access.log"},
        "AUTH": {"Match": "/no", "Type": "Off"},
        "RULES": {"Match": "/no", "Action": "deny"},
        "DIRLISTING": {"Match": "/f"},
        "COMPRESS": {"Types": "text/plain"},
        "PROXY": {"Match": "/no", "To": "http://app"},
        "UPSTREAM": {"Name": "app", "Server": "127.0.0.1:1"},
    }
    text = "".join(section(name, keys) for name, keys in rows.items())
    return {"monkey.conf": section("SERVER", {"Listen": "127.0.0.1:0"}) + text}


def find_expressions(node):
    """All values under the key expr."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "expr":
                yield value
            else:
                yield from find_expressions(value)
    elif isinstance(node, list):
        for each in node:
            yield from find_expressions(each)
