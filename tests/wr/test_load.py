# SPDX-License-Identifier: Apache-2.0
"""wr-load against servers that count, lie, stall and close; wr-limit against its answers."""

import base64
import contextlib
import email.utils
import fcntl
import hashlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from counting_server import BODY, CountingServer
from processes import BUILD, wait_until
from harness.names import needs_localhost
from harness.server import free_port
from watch_resources.report_data import decode_histogram

TOP = pathlib.Path(__file__).resolve().parents[2]
LOAD, LIMIT = BUILD / "wr-load", BUILD / "wr-limit"
HDR = "hdrhistogram==0.10.3"

pytestmark = pytest.mark.skipif(not LOAD.exists(), reason=f"{LOAD} is not built")


def load(*args, status=0, timeout=120):
    """Runs wr-load to its end; returns its object and what it said."""
    done = subprocess.run([LOAD, *map(str, args)], capture_output=True, text=True, timeout=timeout)
    assert done.returncode == status, (done.returncode, done.stdout[:2000], done.stderr[-4000:])
    return json.loads(done.stdout), done.stderr


def usage(*args):
    done = subprocess.run([LOAD, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and done.stdout == "", (done.returncode, done.stderr)
    assert done.stderr.startswith("wr-load: ") and done.stderr.count("\n") == 1
    return done.stderr


def errors(result):
    return {name: n for name, n in result["errors"].items() if n}


@pytest.fixture
def serve():
    servers = []

    def start(**rest):
        servers.append(CountingServer(**rest))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


# ── counts ──


@pytest.mark.parametrize("options", [
    ["-c", 1], ["-c", 7], ["-c", 8, "-t", 3], ["-c", 4, "-p", 16], ["-c", 3, "-t", 2, "-p", 3],
    ["-c", 5, "--close"], ["-c", 4, "-r", 5000], ["-c", 4, "-r", 5000, "-t", 2, "-p", 2],
    ["-c", 3, "-r", 3000, "--close"],
], ids=lambda options: " ".join(map(str, options)))  # fmt: skip
@pytest.mark.parametrize("path", ["/bytes/13", "/chunked/2500"])
def test_requests_are_exact(serve, options, path):
    server = serve()
    result, said = load("-n", 500, *options, "--status", 200, server.url(path))
    assert said == ""
    assert result["answers"] == result["statuses"]["200"] == 500
    assert server.requests == {path: 500}
    assert errors(result) == {} and result["unanswered"] == 0
    assert result["connections_opened"] == server.connections == (500 if "--close" in options else options[1])
    assert result["loop"] == ("open" if "-r" in options else "closed")
    assert result["latency_us"]["min"] <= result["latency_us"]["p50"] <= result["latency_us"]["p99.99"]
    body = int(path.split("/")[2])
    assert result["bytes"] - result["head_bytes"] >= 500 * body
    if path == "/bytes/13":
        assert result["bytes"] - result["head_bytes"] == 500 * body


@pytest.mark.parametrize("options", [["-c", 1], ["-c", 4], ["-c", 4, "-t", 2], ["-c", 3, "-p", 4],
                                     ["-c", 4, "-r", 5000], ["-c", 4, "-p", 4, "-r", 5000]],
                         ids=lambda options: " ".join(map(str, options)))  # fmt: skip
def test_requests_per_connection(serve, options):
    """No connection has more than 25, and but for the last ones of each client each has as many."""
    server = serve()
    result, said = load("-n", 1000, *options, "--requests-per-connection", 25, server.url("/bytes/13"))
    assert said == "" and errors(result) == {} and result["unanswered"] == 0
    assert result["answers"] == server.requests["/bytes/13"] == 1000
    assert max(server.per_connection) == 25 and sum(server.per_connection) == 1000
    clients = options[1]
    assert sum(n < 25 for n in server.per_connection) <= 2 * clients
    assert 40 <= result["connections_opened"] <= 40 + 2 * clients


def test_one_request_of_each_connection(serve):
    server = serve()
    result, _ = load("-n", 50, "-c", 5, "--requests-per-connection", 1, server.url("/bytes/13"))
    assert result["answers"] == 50 and set(server.per_connection) <= {0, 1} and sum(server.per_connection) == 50


def test_fewer_requests_than_threads(serve):
    server = serve()
    assert load("-n", 1, "-c", 4, "-t", 4, server.url("/bytes/1"))[0]["answers"] == server.total == 1


def test_duration(serve):
    server = serve()
    result, _ = load("-d", 0.7, "-c", 3, server.url("/bytes/5"))
    assert 0.6 < result["seconds"] < 20
    assert result["answers"] + result["unanswered"] == server.total
    assert result["unanswered"] <= 3
    assert 0 < result["cpu_share"] <= 1.1 and sum(result["cpu_us"].values()) > 0


def test_warm_up_is_not_counted(serve):
    server, begun = serve(), time.monotonic()
    result, _ = load("-n", 50, "--warm-up", 0.5, "-c", 2, server.url("/bytes/5"))
    assert result["answers"] == 50 and server.total > 60
    assert result["seconds"] < time.monotonic() - begun - 0.5


@pytest.mark.parametrize("path, status, body", [
    ("/status/204", 204, 0), ("/status/304", 304, 0), ("/until/700", 200, 700), ("/close/5", 200, 5),
    ("/continue", 200, 0), ("/bytes/1000000", 200, 1000000),
])  # fmt: skip
def test_framing(serve, path, status, body):
    server = serve()
    result, said = load("-n", 20, "-c", 2, "--length", body, server.url(path))
    assert (said, errors(result)) == ("", {})
    assert result["statuses"] == {str(status): 20} and server.total == 20
    assert result["bytes"] - result["head_bytes"] == 20 * body


def test_head(serve):
    server = serve()
    result, _ = load("-n", 20, "--method", "HEAD", "--length", 500, server.url("/bytes/500"))
    assert result["bytes"] == result["head_bytes"] and errors(result) == {}


def test_header_and_body(tmp_path):
    """The bytes of a request."""
    (tmp_path / "body").write_bytes(b"x" * 300000)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/a?b"
        args = ["-n", "1", "--method", "POST", "--body", tmp_path / "body", "-H", "A: b", "-H", "host: c", url]
        with subprocess.Popen([LOAD, *args], stdout=subprocess.PIPE, text=True) as process:
            conn, _ = listener.accept()
            want = b"POST /a?b HTTP/1.1\r\nHost: c\r\nA: b\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300000
            got = b""
            time.sleep(0.2)  # the socket's buffers fill
            while len(got) < len(want):
                got += conn.recv(65536)
            assert got == want
            conn.sendall(b"HTTP/1.1 204 X\r\n\r\n")
            assert json.loads(process.communicate()[0])["answers"] == 1
            conn.close()


# ── wrong answers and failures ──


@pytest.mark.parametrize("options, path, kind", [
    ([], "/status/404", "status"), (["--status", 200], "/status/204", "status"),
    (["--length", 6], "/bytes/5", "length"), (["--length", 6], "/chunked/5", "length"),
])  # fmt: skip
def test_wrong_answers(serve, options, path, kind):
    result, said = load("-n", 10, *options, serve().url(path), status=1)
    assert result["answers"] == 10 and errors(result) == {kind: 10}
    assert path in said and said.count("\n") == 1


@pytest.mark.parametrize("path, kind", [("/malformed", "malformed"), ("/half", "read")])
def test_broken_answers(serve, path, kind):
    server = serve()
    result, said = load("-n", 6, "-c", 2, server.url(path), status=1)
    assert result["answers"] == 0 and errors(result) == {kind: 6} and server.total == 6
    assert said.startswith("wr-load: 127.0.0.1:")


def test_timeouts(serve):
    server = serve()
    result, said = load("-n", 4, "-c", 2, "--timeout", 0.2, server.url("/never"), status=1)
    assert errors(result) == {"timeout": 4} and "--timeout" in said
    assert 0.4 <= result["seconds"] < 40


@pytest.mark.parametrize("pipeline", [1, 5])
def test_closed_keep_alive_is_no_error(serve, pipeline):
    """Requests that meet the end of a connection are repeated on the next one."""
    server = serve(most=7)
    result, said = load("-n", 100, "-c", 2, "-p", pipeline, server.url("/bytes/3"))
    assert (result["answers"], errors(result), said) == (100, {}, "")
    assert server.connections >= 14


def test_refused():
    begun = time.monotonic()
    result, said = load("-d", 120, "-c", 4, f"http://127.0.0.1:{free_port()}/", status=1)
    assert result["answers"] == 0 and result["errors"]["connect"] > 0 and result["connections_opened"] == 0
    assert "refused" in said and "is the server running?" in said
    assert time.monotonic() - begun < 60
    assert result["errors"]["connect"] < 1000 and result["cpu_share"] < 0.5  # it pauses


def test_server_dies(serve):
    """What was counted is kept; no busy loop until the end."""
    server = serve()
    with subprocess.Popen([LOAD, "-d", "3", "-c", "4", server.url("/bytes/5")], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # fmt: skip
        wait_until(lambda: sum(server.per_connection) > 100)
        server.stop()
        out, said = process.communicate(timeout=60)
    assert process.returncode == 0, (out, said)
    result = json.loads(out)
    assert result["answers"] > 0
    servers_end = result["errors"]["connect"] + result["errors"]["read"] + result["unanswered"]
    assert servers_end > 0 and (said or result["unanswered"])
    server.stop = lambda: None


@needs_localhost
def test_localhost_by_name(serve):
    """A name with an address of IPv6 where no server listens."""
    server = serve()
    result, _ = load("-n", 10, "-c", 3, f"http://localhost:{server.port}/bytes/5")
    assert result["answers"] == 10 and errors(result) == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(serve, number):
    server = serve()
    with subprocess.Popen([LOAD, "-d", "60", "-c", "2", "--progress", server.url("/bytes/1")], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # fmt: skip
        line = json.loads(process.stderr.readline())
        assert line["answers"] > 0 and line["errors"] == 0 and 0.9 < line["t"] < 20
        process.send_signal(number)
        result = json.loads(process.communicate(timeout=60)[0])
    assert process.returncode == 0 and 0.9 < result["seconds"] < 20
    assert result["answers"] + result["unanswered"] == server.total


# ── paths ──


def test_sequence_of_urls(serve):
    server = serve()
    load("-n", 90, "-c", 3, *(server.url(f"/bytes/{n}") for n in range(3)))
    assert set(server.requests.values()) == {30}


def write_paths(folder, rows):
    file = folder / "paths"
    file.write_text("".join(" ".join(map(str, row)) + "\n" for row in rows))
    return file


def test_paths_with_expectations(serve, tmp_path):
    server = serve()
    digest = hashlib.sha256(BODY[:700]).hexdigest()
    rows = [("/bytes/700", 200, 700, digest), ("/status/404", 404, 0), ("/chunked/700", 200, "-", digest)]
    rows.append(("/bytes/3",))
    result, said = load("-n", 40, "-c", 2, "--sample", 1, "--paths", write_paths(tmp_path, rows), server.url())
    assert (errors(result), said) == ({}, "")
    assert result["hashed"] == 20 and result["statuses"] == {"200": 30, "404": 10}
    assert set(server.requests.values()) == {10}


@pytest.mark.parametrize("size", [100, 20_000, 300_000])
@pytest.mark.parametrize("kind", ["bytes", "chunked"])
def test_wrong_hashes_are_found(serve, tmp_path, kind, size):
    """One byte is another; every tenth answer is looked at."""
    digest = hashlib.sha256(BODY[: size - 1] + b"x").hexdigest()
    paths = write_paths(tmp_path, [(f"/{kind}/{size}", 200, size, digest)])
    result, said = load("-n", 30, "-c", 2, "--sample", 10, "--paths", paths, serve().url(), status=1)
    assert result["hashed"] == 3 and errors(result) == {"hash": 3} and result["answers"] == 30
    assert "SHA256" in said


def test_zipf(serve, tmp_path):
    server = serve()
    paths = write_paths(tmp_path, [(f"/bytes/{n}",) for n in range(1, 101)])
    load("-n", 5000, "-c", 8, "-p", 8, "--pick", "zipf:1", "--seed", 3, "--paths", paths, server.url())
    weights = [1 / n for n in range(1, 101)]
    for n in (1, 2, 5, 10):
        share = server.requests[f"/bytes/{n}"] / 5000
        expected = weights[n - 1] / sum(weights)
        assert abs(share - expected) < 5 * (expected / 5000) ** 0.5
    assert server.total == 5000


def test_seed_repeats_the_order(serve, tmp_path):
    paths = write_paths(tmp_path, [(f"/bytes/{n}",) for n in range(50)])
    seen = []
    for seed in (1, 1, 2):
        server = serve()
        load("-n", 300, "--pick", "uniform", "--seed", seed, "--paths", paths, server.url())
        seen.append(server.requests)
    assert seen[0] == seen[1] != seen[2]


# ── the open loop ──

RATE, SECONDS, STALL = 200, 3, 0.6


def test_open_loop_shows_a_stall(serve):
    """A stall of 0.6 of 3 s meets a fifth of the intended starts, whose latencies fall from 0.6 s to nothing."""
    server = serve(stall=(1.0, STALL))
    result, _ = load("-r", RATE, "-d", SECONDS, "-c", 2, server.url("/bytes/5"))
    total = result["answers"] + result["unanswered"]
    assert abs(total - RATE * SECONDS) <= 0.05 * RATE * SECONDS
    assert result["late_starts"] > 0.7 * STALL * RATE
    latency = result["latency_us"]
    assert latency["p99"] >= 0.85 * STALL * 1e6
    assert latency["p90"] >= 0.3 * STALL * 1e6  # the upper half of the fifth
    assert latency["max"] >= 0.95 * STALL * 1e6


def test_closed_loop_misses_a_stall(serve):
    """Two requests wait; all that would have come meanwhile was never sent. They take two seconds, or longer."""
    server = serve(stall=(1.0, STALL))
    result, _ = load("-n", 2000, "-c", 2, server.url("/slow/2"))
    assert result["latency_us"]["p99"] < 0.5 * STALL * 1e6
    assert result["latency_us"]["max"] >= 0.9 * STALL * 1e6


def test_open_loop_has_the_rate(serve):
    result, _ = load("-r", 500, "-d", 2, "-c", 20, "-t", 2, serve().url("/bytes/5"))
    assert 750 < result["answers"] <= 1020 and result["rate"] == 500  # a busy machine begins late


# ── latencies ──


@pytest.fixture(scope="session")
def hdrhistogram():
    """The Python that has PyPI's hdrhistogram; fetched once."""
    folder = TOP / "build" / "tools" / HDR
    folder.parent.mkdir(parents=True, exist_ok=True)
    clean = {k: v for k, v in os.environ.items() if not k.endswith("SAN_OPTIONS")}
    with open(folder.parent / "hdrhistogram.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in [[sys.executable, "-m", "venv", folder], [folder / "bin" / "pip", "install", "-q", HDR]]:
            if (folder / "ready").exists():
                break
            done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=clean)
            if done.returncode:
                pytest.skip(f"HDRHISTOGRAM COULD NOT BE FETCHED, IT DOES NOT RUN: {done.stderr[-300:]}")
        (folder / "ready").touch()
    return folder / "bin" / "python"


READ_HDR = """
import json, sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
def show(h):
    return {"n": h.get_total_count(), "min": h.get_min_value(), "max": h.get_max_value(), "mean": h.get_mean_value(),
            **{f"p{p}": h.get_value_at_percentile(float(p)) for p in ("50", "75", "90", "99", "99.9", "99.99")}}
wide = HdrHistogram(1, (1 << 32) - 1, 3)
reader = HistogramLogReader(sys.argv[2], wide)
interval = reader.get_next_interval_histogram()
print(json.dumps([show(HdrHistogram.decode(sys.argv[1])), show(interval), interval.get_start_time_stamp(),
                  interval.get_end_time_stamp()]))
"""


@pytest.mark.slow  # fetches it
def test_hdr_is_read_by_hdrhistogram(serve, hdrhistogram, tmp_path):
    log = tmp_path / "x.hdr"
    server = serve(stall=(0.3, 0.3))
    result, _ = load("-d", 1, "-r", 300, "-c", 3, "--hdr", log, server.url("/bytes/5"))
    command = [hdrhistogram, "-c", READ_HDR, result["hdr"], log]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    decoded, interval, start, end = json.loads(done.stdout)
    for found in (decoded, interval):
        assert found["n"] == result["answers"]
        for name, value in result["latency_us"].items():
            if name.startswith("p"):
                assert found[name] == value, name
            else:
                assert abs(found[name] - value) <= max(1, value / 500), name
    assert abs((end - start) / 1000 - result["seconds"]) < 0.01


def test_hdr_has_the_percentiles(serve):
    """As the decoder of `wr report` reads it, which has three digits."""
    result, _ = load("-d", 0.6, "-r", 300, "-c", 3, serve(stall=(0.2, 0.2)).url("/bytes/5"))
    assert base64.b64decode(result["hdr"])[:4] == bytes.fromhex("1c849314")
    counts = decode_histogram(result["hdr"])
    values = [value for value in sorted(counts) for _ in range(counts[value])]
    assert len(values) == result["answers"]
    for name, wanted in result["latency_us"].items():
        if name.startswith("p"):
            value = values[max(int(float(name[1:]) / 100 * len(values) + 0.5), 1) - 1]
            assert abs(value - wanted) <= max(1, wanted / 1000), name


# ── TLS: our server ──


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 30,
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout", key, "-out", cert)  # fmt: skip
    return cert, key


@pytest.fixture(scope="module")
def monkey(pair, tmp_path_factory):
    """The port of a server with TLS."""
    folder, port = tmp_path_factory.mktemp("monkey"), free_port()
    (folder / "root").mkdir()
    (folder / "root" / "a.txt").write_bytes(BODY[:13])
    (folder / "root" / "b.bin").write_bytes(BODY)
    (folder / "sites").mkdir()
    (folder / "monkey.conf").write_text(f"[SERVER]\n    Listen 127.0.0.1:{port} tls\n    Workers 1\n")
    (folder / "sites" / "default").write_text(
        f"[HOST]\n    ServerName localhost\n    DocumentRoot {folder / 'root'}\n"
        f"[TLS]\n    Certificate {pair[0]}\n    CertificateKey {pair[1]}\n")
    with subprocess.Popen([BUILD / "monkey", "-c", folder], stderr=subprocess.PIPE, text=True) as process:
        wait_for(port, process)
        yield port
        process.terminate()


def wait_for(port, process):
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.05)
    raise AssertionError("the server does not listen")


@pytest.mark.parametrize("host", [pytest.param("localhost", marks=needs_localhost), "127.0.0.1"])
def test_tls_keep_alive(monkey, pair, tmp_path, host):
    rows = [("/a.txt", 200, 13, hashlib.sha256(BODY[:13]).hexdigest()),
            ("/b.bin", 200, len(BODY), hashlib.sha256(BODY).hexdigest())]  # fmt: skip
    result, said = load("-n", 100, "-c", 4, "-p", 3, "--ca", pair[0], "--sample", 5, "--paths",
                        write_paths(tmp_path, rows), f"https://{host}:{monkey}")  # fmt: skip
    assert (errors(result), said) == ({}, "")
    assert result["answers"] == 100 and result["hashed"] == 20
    assert result["connections_opened"] == 4
    assert result["connections_resumed"] < 4  # a ticket of the first one may come before the hello of others


def test_tls_sessions_are_resumed(monkey, pair):
    url = f"https://127.0.0.1:{monkey}/a.txt"
    result, _ = load("-n", 30, "-c", 2, "--close", "--ca", pair[0], url)
    assert result["answers"] == 30 and result["connections_opened"] == 30
    assert result["connections_resumed"] >= 15  # under load a ticket may come after the next connection
    full, _ = load("-n", 30, "-c", 2, "--close", "--full-handshakes", "--ca", pair[0], url)
    assert full["answers"] == 30 and full["connections_resumed"] == 0


def test_certificates_are_checked(monkey, pair):
    """Of another authority, and of another name; unless --insecure."""
    for url, options, words in [
        (f"https://127.0.0.1:{monkey}/a.txt", [], "self-signed certificate"),
        (f"https://127.0.0.2:{monkey}/a.txt", ["--ca", pair[0]], None),
    ]:
        result, said = load("-n", 2, *options, url, status=1)
        assert result["answers"] == 0 and result["errors"]["connect"] == 2
        assert not words or words in said
    result, _ = load("-n", 2, "--insecure", f"https://127.0.0.1:{monkey}/a.txt")
    assert result["answers"] == 2


def test_plain_server_behind_https(serve, pair):
    result, said = load("-n", 2, "--timeout", 0.3, "--insecure", f"https://127.0.0.1:{serve().port}/", status=1)
    assert result["errors"]["connect"] + result["errors"]["timeout"] == 2 and said


# ── usage ──


@pytest.mark.parametrize("args, words", [
    ([], "no URL is given"),
    (["-c", "0", "http://a"], '--connections "0" is not a number from 1 to 1000000'),
    (["-c", "x", "http://a"], '--connections "x" is not'),
    (["-c", "4x", "http://a"], '--connections "4x" is not'),
    (["-n", "0", "http://a"], '--requests "0" is not'),
    (["-d", "nan", "http://a"], '--duration "nan" is not'),
    (["-r", "-5", "http://a"], '--rate "-5" is not'),
    (["-t", "5", "-c", "2", "http://a"], "5 threads need 5 connections"),
    (["--close", "-p", "2", "http://a"], "--close has one request"),
    (["--bogus", "http://a"], 'no option "--bogus"'),
    (["-c"], "needs a value"),
    (["--pick", "best", "http://a"], '--pick "best" is not sequence'),
    (["--status", "99", "http://a"], '--status "99" is not'),
    (["-H", "no colon", "http://a"], "is not a header line"),
    (["--method", "G ET", "http://a"], "is not a method"),
    (["ftp://a"], "begins with http://, https://, ws:// or wss://"),
    (["http://a:99999/"], "port from 1 to 65535"),
    (["http://127.0.0.1:1/", "http://127.0.0.1:2/"], "all URLs name one server"),
    (["--ca", "x", "http://a"], "for https:// and wss:// URLs"),
    (["--ca", "/nonexistent", "https://127.0.0.1"], "/nonexistent: "),
    (["--paths", "/nonexistent", "http://127.0.0.1"], "/nonexistent: No such file"),
    (["--paths", "x", "http://127.0.0.1/x"], "names the server, without a path"),
    (["--body", "/nonexistent", "http://127.0.0.1"], "/nonexistent: No such file"),
    (["http://no-such-name.invalid/"], "no-such-name.invalid: "),
])  # fmt: skip
def test_wrong_usage(args, words):
    assert words in usage(*args)


def test_wrong_line_of_paths(tmp_path):
    file = write_paths(tmp_path, [("/a",), ("b",)])
    assert f"{file}:2: a path begins with /" in usage("--paths", file, "http://127.0.0.1")


def test_too_few_descriptors():
    command = f'ulimit -n 64; exec "{LOAD}" -c 100 http://127.0.0.1/'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "ulimit -n" in done.stderr and "100 connections need" in done.stderr


def test_help():
    """Names every option of the page."""
    text = subprocess.run([LOAD, "--help"], capture_output=True, text=True, check=True, timeout=120).stdout
    page = (TOP / "docs" / "internals" / "wr.md").read_text()
    section = page.split("## `wr-load`")[1].split("## `wr-limit`")[0]
    assert "".join("  " + line for line in text.splitlines(True)[2:]).rstrip() in section


# ── wr-limit ──


@pytest.fixture(scope="module", params=["memory", "descriptor", "open", "sliced"])
def limit(request, tmp_path_factory):
    root, port = tmp_path_factory.mktemp("root"), free_port()
    for name, size in FILES.items():
        (root / name).write_bytes(BODY[:size])
    (root / "folder").mkdir()
    with subprocess.Popen([LIMIT, request.param, str(port), root]) as process:
        wait_for(port, process)
        yield port
        assert process.poll() is None
        process.terminate()


FILES = {"empty": 0, "small": 13, "middle": 26_510, "large": 1_000_000}


def test_limit_answers(limit, tmp_path):
    rows = [(f"/{name}", 200, size, hashlib.sha256(BODY[:size]).hexdigest()) for name, size in FILES.items()]
    rows += [(path, 404, 0) for path in ("/missing", "/folder", "/../small", "/")]
    paths = write_paths(tmp_path, rows)
    for options in (["-p", 1], ["-p", 7], ["--close"], ["-p", 100, "-c", 1]):
        result, said = load("-c", 5, "-n", 400, "--sample", 1, *options, "--paths", paths, f"http://127.0.0.1:{limit}")
        assert (result["answers"], errors(result), said) == (400, {}, "")
        assert result["hashed"] == 200


LIMIT_HEAD = re.compile(
    rb"HTTP/1\.1 200 OK\r\nServer: wr-limit/1\.00\r\nDate: .{25} GMT\r\nLast-Modified: .{25} GMT\r\n"
    rb"ETag: \"0000-0{16}\"\r\nContent-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n"
    rb"Content-Length: 13\r\n\r\n"
)


def test_limit_bytes(limit):
    """Requests in pieces; many in one piece, more than its buffers hold; the end of a connection."""
    request = b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", limit)) as conn:
        for i in range(len(request)):
            conn.sendall(request[i : i + 1])
            time.sleep(0.001)
        answer = b""
        while not answer.endswith(b"\r\n\r\n" + BODY[:13]):
            answer += read(conn, 1)
        assert LIMIT_HEAD.fullmatch(answer[:-13])
        conn.sendall(request * 3000)
        assert undated(read(conn, 3000 * len(answer))) == undated(answer) * 3000
        conn.sendall(request.replace(b"x\r\n", b"x\r\nConnection: close\r\n"))
        closing = answer.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
        assert undated(read(conn, 10000)) == undated(closing)


def undated(answers):
    return re.sub(rb"\nDate: .{25} GMT", b"\nDate: now", answers)


def test_limit_date(limit):
    """It is the present second, as with any other server."""
    dates = set()
    with socket.create_connection(("127.0.0.1", limit)) as conn:
        while len(dates) < 2:  # until the next second
            before = int(time.time())
            conn.sendall(b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"\r\n\r\n" + BODY[:13]):
                answer += read(conn, 1)
            date = re.search(rb"\nDate: (.*)\r\n", answer)[1].decode()
            assert before - 1 <= email.utils.parsedate_to_datetime(date).timestamp() <= time.time()
            dates.add(date)


def test_limit_of_a_service(tmp_path):
    """One text with the fields of a service's answer, and no files."""
    port = free_port()
    (tmp_path / "small").write_bytes(b"small")
    request = b"GET /hello/ HTTP/1.1\r\nHost: x\r\n\r\n"
    with subprocess.Popen([LIMIT, "hello", str(port), tmp_path]) as process:
        wait_for(port, process)
        with socket.create_connection(("127.0.0.1", port)) as conn:
            conn.sendall(request * 2 + request.replace(b"/hello/", b"/small") + request.replace(b"/hello/", b"/hello"))
            conn.sendall(request.replace(b"x\r\n", b"x\r\nConnection: close\r\n"))
            answers = read(conn, 10000)
        process.terminate()
    date = rb"Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n"
    hello = rb"HTTP/1.1 200 OK\r\nServer: wr-limit/1.00\r\n" + date + rb"Content-Length: 13\r\n%s\r\nHello, world\n"
    missing = rb"HTTP/1.1 404 Not Found\r\nServer: wr-limit/1.00\r\n" + date + rb"Content-Length: 0\r\n\r\n"
    pattern = hello % b"" + hello % b"" + missing * 2 + hello % rb"Connection: close\r\n"
    assert re.fullmatch(pattern, answers), answers


def read(conn, size):
    data = bytearray()
    while len(data) < size and (piece := conn.recv(1 << 16)):
        data += piece
    return bytes(data)


def test_limit_waits_for_slow_clients(limit):
    """Answers that no buffer holds arrive whole, though the client reads late."""
    with socket.create_connection(("127.0.0.1", limit)) as conn:
        conn.sendall(b"GET /large HTTP/1.1\r\n\r\n" * 20 + b"GET /small HTTP/1.1\r\nConnection: close\r\n\r\n")
        time.sleep(0.3)
        data = read(conn, 1 << 30)
    assert data.count(BODY) == 20 and data.endswith(b"Connection: close\r\n\r\n" + BODY[:13])


def test_limit_survives_clients_that_leave(limit):
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", limit)) as conn:
            conn.sendall(b"GET /large HTTP/1.1\r\n\r\n" * 20)
            conn.recv(1000)
    with socket.create_connection(("127.0.0.1", limit)) as conn:
        conn.sendall(b"GET /small HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert read(conn, 10000).endswith(BODY[:13])


@pytest.mark.parametrize("args", [[], ["memory"], ["wrong", "80", "/"], ["memory", "0", "/"], ["memory", "x", "/"]])
def test_limit_usage(args):
    done = subprocess.run([LIMIT, *args], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: wr-limit memory|descriptor|open|sliced|hello|upload|slow PORT ROOT")


def test_limit_without_its_root():
    done = subprocess.run([LIMIT, "memory", "8080", "/nonexistent"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "/nonexistent: No such file" in done.stderr
