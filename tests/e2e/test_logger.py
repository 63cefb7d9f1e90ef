# SPDX-License-Identifier: Apache-2.0
"""The plugin logger: what its lines say, that clients cannot forge them, and that none is lost or torn on its way."""

import contextlib
import itertools
import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import build
from harness.client import ProtocolError
from harness.content import HELLO, populate
from harness.full_file import make_full
from harness.load import Clients
from harness.messages import LAST, lines, request
from harness.protocol import Client
from harness.server import LISTENING, Server, await_true, is_alive, links_of_descriptors, run, section, write_config

LOGGER = build.PLUGINS / "logger.so"
pytestmark = [
    pytest.mark.concurrent,
    pytest.mark.skipif(not LOGGER.exists(), reason=f"the preset {build.PRESET} has no logger"),
]

CLF_TIME = r"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\]"
ISO_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
PLUGINS = section("PLUGINS", {"Load": ["liana", "logger", "static"]})


class Site:
    """A server with a log, and its folder."""

    def __init__(self, folder):
        self.folder, self.log, self.server = folder, folder / "access.log", None
        self.reloads = 0
        populate(folder / "root", {"hello.txt": HELLO, "large": b"x" * 3_000_000})

    def write(self, *, flush="10ms", buffer=None, workers=1, files=None, load=True, **keys):
        keys = {"AccessLog": self.log, **keys}
        server = {"Flush": flush, **({"Buffer": buffer} if buffer else {})}
        port = self.server.port if self.server and self.server.names else 0
        config = {"plugins.load": PLUGINS, **(files or {})}
        if not load:
            config["plugins.load"] = PLUGINS.replace("    Load logger\n", "")
        write_config(
            self.folder / "conf",
            self.folder / "root",
            {"Listen": f"127.0.0.1:{port}", "Workers": workers, "MaxKeepAliveRequest": 0, "KeepAliveTimeout": "60s"},
            files=config,
        )
        if load:
            with open(self.folder / "conf" / "monkey.conf", "a") as file:
                file.write(section("LOGGER", server))
            with open(self.folder / "conf" / "sites" / "default", "a") as file:
                file.write(section("LOGGER", keys))
        return self

    def start(self, **rest):
        self.server = Server("-c", self.folder / "conf", **rest)
        return self.server

    def reload(self):
        self.server.send_signal(signal.SIGHUP)
        self.reloads += 1
        self.server.wait_log("the new configuration", self.reloads)
        assert "cannot be used" not in self.server.log, self.server.log

    def ask(self, target="/hello.txt", *fields, **rest):
        with Client(self.server.addresses[0]) as client:
            return client.ask(target, *fields, **rest)

    def lines(self, count, log=None):
        """The lines of a log, when there are so many."""
        log = log or self.log
        await_true(lambda: log.exists() and log.read_bytes().count(b"\n") >= count, 30, f"{count} lines in {log}")
        text = log.read_text("ascii")
        assert text.endswith("\n")
        return text.splitlines()


@pytest.fixture
def site(tmp_path):
    one = Site(tmp_path)
    yield one
    if one.server and not one.server.finished:
        try:
            one.server.stop()
        finally:
            one.server.kill()


# ── what lines say ──


@pytest.mark.single_protocol
def test_common(site):
    site.write().start()
    assert site.ask().status == 200
    assert site.ask("/missing?a=b").status == 404
    first, second = site.lines(2)
    assert re.fullmatch(rf'127\.0\.0\.1 - - {CLF_TIME} "GET /hello\.txt HTTP/1\.1" 200 {len(HELLO)}', first)
    assert re.fullmatch(rf'\S+ - - {CLF_TIME} "GET /missing\?a=b HTTP/1\.1" 404 \d+', second)


def test_addresses(site):
    """The peer, and the client that a trusted peer speaks for; also of a request that its client has reset."""
    site.write(Format='"$peer $client $status $aborted"')
    with open(site.folder / "conf" / "monkey.conf", "a") as file:
        file.write("[SERVER]\n    TrustedProxies 127.0.0.0/8\n")
    site.start()
    site.ask("/hello.txt", "X-Forwarded-For: 192.0.2.7")
    assert site.lines(1)[0].startswith("127.0.0.1 192.0.2.7 200 ")
    with Client(site.server.addresses[0], rcvbuf=4096) as client:
        client.send(b"GET /large HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 2001:db8::7\r\n\r\n")
        client.until(b"\r\n\r\n")
        client.reset()
    assert site.lines(2)[1].startswith("127.0.0.1 2001:db8::7 200 ")


def test_a_client_that_leaves_at_once(site):
    """A client could have everything done and stay unknown, by a reset that overtakes the accept."""
    site.write(Format='"$peer $status"').start()
    for _ in range(100):
        client = Client(site.server.addresses[0])
        client.send(b"GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n")
        client.reset()
    site.ask("/missing")
    await_true(lambda: site.log.exists() and "404" in site.log.read_text(), 30, "the last line")
    assert {line.split()[0] for line in site.lines(1)} == {"127.0.0.1"}


def test_combined(site):
    site.write(Format="combined").start()
    site.ask("/hello.txt", "Referer: http://a/b", "User-Agent: curl/8 (x; y)")
    site.ask()
    first, second = site.lines(2)
    assert first.endswith(f'" 200 {len(HELLO)} "http://a/b" "curl/8 (x; y)"')
    assert second.endswith(f'" 200 {len(HELLO)} "-" "-"')


@pytest.mark.single_protocol
def test_json(site):
    site.write(Format="json").start()
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    site.ask("/hello.txt?q", "X-Request-Id: abc-1", f"traceparent: {traceparent}", body=b"12345")
    row = json.loads(site.lines(1)[0])
    assert re.fullmatch(ISO_TIME, row["time_iso8601"])
    known = {
        "method": "GET",
        "target": "/hello.txt?q",
        "protocol": "HTTP/1.1",
        "host": "localhost",
        "status": 200,
        "body_bytes_in": 5,
        "body_bytes_out": len(HELLO),
        "user": None,
        "tls_version": None,
        "request_id": "abc-1",
        "traceparent": traceparent,
        "aborted": False,
        "worker": 0,
    }
    assert {key: row[key] for key in known} == known
    assert row["bytes_in"] > 5 and row["bytes_out"] > len(HELLO)
    assert 0 <= row["first_byte_us"] <= row["request_time_us"] < 60_000_000


def test_free_formats(site):
    text = r'"$status $method (\${path})$$ <$(query)> $header_x_own $response_content_type $time_unix $time_unix_ms"'
    site.write(Format=text).start()
    site.ask("/hello.txt?a%20b", "X-Own: one two")
    row = site.lines(1)[0]
    assert re.fullmatch(r"200 GET \(/hello\.txt\)\$ <a%20b> one\\x20two text/plain\S* \d{10} \d{13}", row), row


def test_some_fields_as_json(site):
    site.write(Format='"json $status $header_x_none $query"').start()
    site.ask("/hello.txt?")
    assert json.loads(site.lines(1)[0]) == {"status": 200, "header_x_none": None, "query": ""}


def test_other_endings(site):
    site.write(Format='"$status $method $body_bytes_out $aborted"').start()
    with Client(site.server.addresses[0]) as client:
        etag = client.ask("/hello.txt")["ETag"]
        client.ask("/hello.txt", method="HEAD")
        client.ask("/hello.txt", f"If-None-Match: {etag}")
        client.ask("/hello.txt", "Range: bytes=0-3")
        client.ask("/hello.txt", method="POST", body=b"")
    with Client(site.server.addresses[0], rcvbuf=4096) as client:
        client.send(request("/large"))
        client.until(b"\r\n\r\n")
        client.reset()
    rows = site.lines(6)
    assert rows[:4] == [f"200 GET {len(HELLO)} -", "200 HEAD 0 -", "304 GET 0 -", "206 GET 4 -"]
    assert rows[4].startswith("405 POST ")
    assert re.fullmatch(r"200 GET \d+ aborted", rows[5]) and int(rows[5].split()[2]) < 3_000_000


def test_the_error_log(site):
    errors = site.folder / "errors.log"
    site.write(ErrorLog=errors).start()
    site.ask()
    site.ask("/missing")
    site.server.talk(b"GARBAGE\r\n\r\n")  # it has no host
    site.lines(3)
    first, second = site.lines(2, errors)
    assert re.fullmatch(rf'{ISO_TIME} 404 "GET /missing HTTP/1.1" host=localhost \S+ \S+ referer="-" id=\w+ -', first)
    assert re.match(rf"{ISO_TIME} 400 ", second)


def test_each_host_has_its_own(site):
    own = site.folder / "own.log"
    host = section("HOST", {"ServerName": "own", "DocumentRoot": site.folder / "root"})
    quiet = section("HOST", {"ServerName": "quiet", "DocumentRoot": site.folder / "root"})
    both = section("HOST", {"ServerName": "both", "DocumentRoot": site.folder / "root"})
    site.write(
        Format="$host",
        files={
            "sites/own": host + section("LOGGER", {"AccessLog": own, "Format": '"own $host"'}),
            "sites/both": both + section("LOGGER", {"AccessLog": site.log, "Format": '"both $host"'}),
            "sites/quiet": quiet,
        },
    ).start()
    for name in ("localhost", "own", "quiet", "both"):
        site.server.talk(lines("GET /hello.txt HTTP/1.1", f"Host: {name}", "Connection: close"))
    assert site.lines(2) == ["localhost", "both both"]
    assert site.lines(1, own) == ["own own"]


def test_request_ids(site):
    site.write(Format="$request_id", RequestId="On").start()
    given, made = site.ask("/hello.txt", "X-Request-Id: a.b-1"), site.ask()
    bad = site.ask("/hello.txt", "X-Request-Id: a b")
    assert given["X-Request-Id"] == "a.b-1"
    assert re.fullmatch("[0-9a-f]{32}", made["X-Request-Id"]) and re.fullmatch("[0-9a-f]{32}", bad["X-Request-Id"])
    assert site.lines(3) == [answer["X-Request-Id"] for answer in (given, made, bad)]


@pytest.mark.parametrize(
    "keys, sentence",
    [
        ({"Format": '"$peer $stauts"'}, r'there is no variable "stauts"; did you mean "status"\?'),
        ({"Format": '"$peer $nothing_like_it"'}, r'there is no variable "nothing_like_it"; the page'),
        ({"Format": '"$ 5"'}, "a dollar needs the name of a variable"),
        ({"Format": '"json $status, $path"'}, r'behind "json" stand variables only'),
        ({"Format": '"$(status"'}, "a dollar needs the name of a variable"),
        ({"AccessLog": "/nowhere/at/all.log"}, "cannot write /nowhere/at/all.log: No such file"),
        ({"AccessLog": "/etc"}, "cannot write /etc: Is a directory"),
        ({"AccessLog": "a b"}, "one path is needed"),
        ({"AccessLog": "syslog:/" + "x" * 200}, "a path of 1 to 107 bytes"),
        ({"SyslogFacility": "local9"}, "SyslogFacility"),
    ],
)
def test_mistakes(site, keys, sentence):
    result = run("-c", site.write(**keys).folder / "conf", "-t")
    assert result.returncode == 1 and re.search(sentence, result.stderr), result.stderr
    assert not site.log.exists()


def test_a_test_makes_no_file(site):
    assert run("-c", site.write().folder / "conf", "-t").returncode == 0
    assert not site.log.exists()


# ── what clients try ──

NASTY = [
    b'" 200 5\n1.2.3.4 - - forged',
    b"\x1b[31mred\x1b[0m",
    b"\x9b31m\xc2\x9b31m",
    b"\\x1b\\",
    bytes(set(range(1, 256)) - {10, 13}),
    b"\xff\xfe\xc0\x80\xed\xa0\x80",
    b"%0a%1b[31m",
]


@pytest.mark.parametrize("form", ["combined", "json", '"$header_x_evil $agent $target $path $host"'])
def test_no_client_breaks_a_line(site, form):
    site.write(Format=form, ErrorLog=site.folder / "errors.log").start()
    sent = 0
    for evil in NASTY:
        for data in (
            b"GET /hello.txt?" + evil + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: " + evil + b"\r\nX-Evil: " + evil + b"\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: " + evil + b"\r\n\r\n",
            evil + b" / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET /" + b"".join(b"%%%02x" % byte for byte in evil) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ):
            with Client(site.server.addresses[0]) as client:
                client.send(data)
                client.shut()
                client.rest()
            sent += 1
    assert site.server.statuses(LAST) == [404]
    site.server.stop()
    for log in (site.log, site.folder / "errors.log"):
        text = log.read_bytes()
        assert re.fullmatch(rb"[\x20-\x7e\n]*", text)
        assert not re.search(rb"^1\.2\.3\.4", text, re.M)
    rows = site.lines(sent + 1)
    if form == "json":
        for row in rows:
            json.loads(row)
    else:
        width = 5 if form.startswith('"') else None
        assert width is None or all(len(row.split(" ")) == width for row in rows)


def test_json_tells_every_byte(site):
    site.write(Format='"json $agent"').start()
    agent = bytes(set(range(0x21, 256)) - {0x7F})
    site.server.talk(b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: " + agent + b"\r\nConnection: close\r\n\r\n")
    assert json.loads(site.lines(1)[0])["agent"].encode("latin-1") == agent


def test_long_values_are_cut(site):
    site.write(Format='"json $header_x_long $status"').start()
    for byte in (b"y", b"\xe4"):
        field = b"X-Long: " + byte * 7000
        site.server.talk(b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + field + b"\r\n\r\n")
    first, second = map(json.loads, site.lines(2))
    assert set(first["header_x_long"]) == {"y"} and first["status"] == second["status"] == 200
    assert set(second["header_x_long"]) == {"\xe4"} and all(len(row) < 8192 for row in site.lines(2))


def test_a_long_path_leaves_room(site):
    """For the values that follow: the target is cut, and path and agent are not empty."""
    site.write(Format='"json $target $path $header_x_long $agent $status"').start()
    path = "/" + "p" * 7900
    field = b"X-Long: " + b"y" * 4000 + b"\r\nUser-Agent: someone"
    site.server.talk(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".encode() + field + b"\r\n\r\n")
    found = json.loads(site.lines(1)[0])
    assert found["target"] == path[: len(found["target"])] and len(found["target"]) > 6000
    assert len(found["path"]) > 250 and path.startswith(found["path"])
    assert len(found["header_x_long"]) > 250 and set(found["header_x_long"]) == {"y"}
    assert (found["agent"], found["status"]) == ("someone", 404)


# ── files ──


def test_permissions(site):
    site.write().start()
    site.ask()
    site.lines(1)
    assert stat.S_IMODE(site.log.stat().st_mode) == 0o640


def test_links(site):
    """A link is followed to what is there."""
    (site.folder / "real.log").touch()
    site.log.symlink_to("real.log")
    site.write().start()
    site.ask()
    assert len(site.lines(1, site.folder / "real.log")) == 1 and site.log.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of others")
def test_a_planted_link_makes_no_file(site):
    """Of another user, while the server runs; test_privileges.py has those that are there at the start."""
    site.write().start()
    site.ask()
    site.lines(1)
    site.log.unlink()
    site.log.symlink_to(site.folder / "planted")
    os.lchown(site.log, 1234, 1234)
    site.server.send_signal(signal.SIGUSR1)
    site.server.wait_log("logger: cannot write .*access.log: there is a symbolic link")
    site.ask()  # not before: the removed file would take the line
    assert not (site.folder / "planted").exists()
    site.log.unlink()
    site.server.send_signal(signal.SIGUSR1)
    assert len(site.lines(1)) == 1  # it was only late
    site.server.wait_log("access.log can be written again")


def test_renamed_and_signalled(site):
    """As logrotate does: rename, USR1."""
    site.write().start()
    site.ask("/1")
    site.lines(1)
    site.log.rename(site.folder / "old.log")
    site.server.send_signal(signal.SIGUSR1)
    await_true(site.log.exists, 30, "the new file")
    site.ask("/2")
    assert "/2" in site.lines(1)[0] and len(site.lines(1)) == 1
    assert len(site.lines(1, site.folder / "old.log")) == 1


def test_what_came_before_the_signal_is_in_the_old_file(site):
    site.write(Format="$target", flush="60s").start()
    await_true(site.log.exists, 30, "the file")
    site.ask("/before")
    site.log.rename(site.folder / "old.log")
    site.server.send_signal(signal.SIGUSR1)
    await_true(site.log.exists, 30, "the new file")
    assert site.lines(1, site.folder / "old.log") == ["/before"] and not site.log.read_text()


def test_renamed_without_a_signal(site):
    site.write().start()
    site.ask("/before")
    site.lines(1)
    site.log.rename(site.folder / "old.log")

    def appears():
        site.ask("/after")
        return site.log.exists()

    await_true(appears, 30, "the new file")
    site.lines(1)


def test_removed_without_a_signal(site):
    site.write(Format="$target").start()
    site.ask("/before")
    site.lines(1)
    site.log.unlink()
    site.ask("/after")
    assert site.lines(1) == ["/after"]


def test_a_vanished_folder(site):
    folder = site.folder / "logs"
    folder.mkdir()
    site.log = folder / "access.log"
    site.write(Format="$target").start()
    site.ask("/1")
    site.lines(1)
    shutil.rmtree(folder)
    for i in range(2, 50):
        assert site.ask(f"/{i}").status == 404
    site.server.wait_log("logger: cannot write .*No such file")
    folder.mkdir()
    assert site.lines(48) == [f"/{i}" for i in range(2, 50)]
    site.server.wait_log("can be written again")


def test_a_full_disk(site):
    """It never takes anything: the server serves on, and tells once."""
    site.write(buffer="32K").start(wrapper=make_full(site.log))
    with Client(site.server.addresses[0]) as client:
        for _ in range(1000):
            assert client.ask("/hello.txt").status == 200
    site.server.wait_log(rf"logger: \d+ lines for {site.log} were lost")
    assert len(re.findall(f"cannot write {site.log}: File too large", site.server.log)) == 1
    site.server.stop()
    lost = sum(map(int, re.findall(rf"logger: (\d+) lines for {site.log} were lost", site.server.log)))
    assert lost == 1000


@pytest.mark.skipif(not build.can_mount(), reason="A FULL DISK IS NOT TESTED: it needs root and mounts")
def test_a_disk_that_has_room_again(site):
    """What did not fit waits; what could not wait is counted where it is missing. No line is torn."""
    folder = site.folder / "disk"
    folder.mkdir()
    site.log = folder / "access.log"
    site.write(Format='"$target ' + "." * 90 + ' end"', buffer="32K", workers=2)
    wrapper = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=16k none {folder} && exec "$0" "$@"']
    site.start(wrapper=wrapper)
    clients = [site.server.connect() for _ in range(16)]
    for i in range(1000):
        assert clients[i % 16].ask(f"/{i}").status == 404
    site.server.wait_log("cannot write .*No space left")
    site.server.wait_log(r"logger: \d+ lines for .* were lost")
    enter = ["nsenter", "-m", "-t", str(site.server.pid)]
    subprocess.run([*enter, "mount", "-o", "remount,size=4M", "none", folder], check=True)
    site.server.wait_log("can be written again")
    for i in range(16):
        clients[i].ask(f"/{1000 + i}")
    last = [b"/%d " % n for n in range(1000, 1016)]  # two workers write them, in any order
    log = await_true(lambda: read_inside(site, last), 30, "the last lines").decode()
    rows = log.splitlines()
    noted = [int(row.split()[2]) for row in rows if row.startswith("# ")]
    numbers = [int(re.fullmatch(r"/(\d+) \.{90} end", row)[1]) for row in rows if not row.startswith("# ")]
    assert len(set(numbers)) == len(numbers) > 300 and set(numbers) >= set(range(1000, 1016))
    site.server.stop()
    logged = sum(map(int, re.findall(r"logger: (\d+) lines for", site.server.log)))
    assert logged == sum(noted) == 1016 - len(numbers)


def read_inside(site, words):
    """The log as the server sees it, when it holds the words."""
    with open(f"/proc/{site.server.pid}/root{site.log}", "rb") as file:
        text = file.read()
    return text if all(word in text for word in words) and text.endswith(b"\n") else None


# ── others than files ──


def test_stdout(site, tmp_path):
    read, write = os.pipe()
    site.write(AccessLog="stdout", Format="$target")
    site.start(wrapper=["sh", "-c", f'exec "$0" "$@" >/proc/{os.getpid()}/fd/{write}'])
    os.close(write)
    site.ask("/1")
    site.ask("/2")
    with os.fdopen(read, "rb") as pipe:
        assert [pipe.readline(), pipe.readline()] == [b"/1\n", b"/2\n"]
        site.server.stop()


@pytest.mark.load
def test_a_pipe_without_a_reader(site):
    """A FIFO: first without a reader, then with a slow one, then with a good one."""
    os.mkfifo(site.log)
    site.write(Format='"$target ' + "." * 100 + '"', buffer="64K").start()
    site.server.wait_log("cannot write .*No such device")
    reader, rows, asked = os.open(site.log, os.O_RDONLY | os.O_NONBLOCK), [], itertools.count()
    with Client(site.server.addresses[0]) as client, os.fdopen(reader, "rb") as pipe, ThreadPoolExecutor(1) as other:

        def ask():
            assert client.ask(f"/{next(asked)}").status == 404

        def is_counted():
            ask()
            return any(row.startswith(b"# ") for row in rows)

        ask()
        site.server.wait_log("can be written again")
        for _ in range(3000):
            ask()
        site.server.wait_log(r"logger: \d+ lines for .* were lost")
        os.set_blocking(reader, True)
        other.submit(lambda: rows.extend(iter(pipe.readline, b"")))
        await_true(is_counted, 60, "a line that tells of lost lines")
        site.server.stop()
    lost = [int(row.split()[2]) for row in rows if row.startswith(b"# ")]
    numbers = [int(re.fullmatch(rb"/(\d+) \.{100}\n", row)[1]) for row in rows if not row.startswith(b"# ")]
    assert len(numbers) + sum(lost) == next(asked) and numbers == sorted(numbers)


SYSLOG = re.compile(rb"<(\d+)>1 " + ISO_TIME.encode() + rb" \S+ monkey (\d+) (access|error) - (.*)", re.S)


class Syslog:
    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(60)
        self.socket.bind(str(path))

    def message(self):
        found = SYSLOG.fullmatch(self.socket.recv(65536))
        assert found
        return int(found[1]), int(found[2]), found[3].decode(), found[4].decode()

    def close(self):
        self.socket.close()
        self.path.unlink()


def test_syslog(site):
    log = Syslog(site.folder / "log")
    target = f"syslog:{log.path}"
    site.write(AccessLog=target, ErrorLog=target, Format="$target", ErrorFormat="$status", SyslogFacility="local1")
    site.start()
    site.ask("/hello.txt")
    assert log.message() == (17 * 8 + 6, site.server.pid, "access", "/hello.txt")
    site.ask("/missing")
    assert log.message() == (17 * 8 + 4, site.server.pid, "access", "/missing")
    assert log.message() == (17 * 8 + 4, site.server.pid, "error", "404")
    log.close()
    site.ask("/hello.txt?waits")
    site.server.wait_log("logger: cannot write .*/log")
    log = Syslog(site.folder / "log")
    assert log.message()[3] == "/hello.txt?waits"
    for i in range(500):  # more than its queue takes
        site.ask(f"/hello.txt?{i}")
    assert [log.message()[3] for _ in range(500)] == [f"/hello.txt?{i}" for i in range(500)]
    site.server.stop()
    log.close()


# ── from one generation to the next ──


class Askers(Clients):
    """Clients that keep their connections, and count their answers."""

    def __init__(self, site, clients=4):
        self.site, self.targets = site, []
        super().__init__([lambda n=n: self.ask(n) for n in range(clients)])

    def ask(self, n):
        count, client = 0, None
        while not self.ending.is_set():
            client = client or Client(self.site.server.addresses[0])
            target = f"/{n}/{count}"
            answer = client.ask(target)
            self.targets.append(target)
            count += 1
            if answer.closes:
                client.close()
                client = None


@pytest.mark.parametrize("workers", [(2,), (1, 3)])
def test_reloads_lose_and_double_no_line(site, workers):
    site.write(Format="$target", workers=workers[0], buffer="1M").start()
    site.write(Format="$target", workers=workers[0], buffer="1M").reload()  # from port 0 to a listener of that number
    with Askers(site) as load:
        for n in range(20):
            errors = site.folder / f"errors{n % 3}.log"
            site.write(Format="$target", workers=workers[n % len(workers)], buffer="1M", ErrorLog=errors)
            site.reload()
    assert not load.errors, load.errors
    site.server.stop()
    rows = site.lines(len(load.targets))
    assert sorted(rows) == sorted(load.targets)
    for n in range(4 if len(workers) == 1 else 0):  # a connection's worker keeps the order of its lines
        numbers = [int(row.split("/")[2]) for row in rows if row.startswith(f"/{n}/")]
        assert numbers == sorted(numbers)


class Visitors(Askers):
    """Some keep their connections, some take a new one for each request; a server that goes may close idle ones."""

    def ask(self, n):
        connections, keeps = 0, n % 2 == 0
        while not self.ending.is_set():
            self.visit(f"/hello.txt?{n}-{connections}-", keeps)
            connections += 1

    def visit(self, target, keeps):
        with Client(self.site.server.addresses[0], timeout=30) as client:
            for count in range(10**9 if keeps else 1):
                try:
                    answer = client.ask(f"{target}{count}", *([] if keeps else ["Connection: close"]))
                except (ProtocolError, ConnectionError):
                    if count == 0:
                        raise
                    return
                assert answer.body == HELLO
                self.targets.append(f"{target}{count}")
                if answer.closes or self.ending.is_set():
                    return


class Successors:
    """The processes that took the server's place."""

    def __init__(self, server):
        self.server, self.pids = server, []

    def upgrade(self):
        os.kill(self.pids[-1] if self.pids else self.server.pid, signal.SIGUSR2)
        found = self.server.wait_log(r"upgrade: process (\d+) serves", len(self.pids) + 1)
        self.pids.append(int(found[-1][1]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid in self.pids:
            await_true(lambda pid=pid: not is_alive(pid), 30, f"the end of {pid}")


@pytest.mark.single_protocol
@pytest.mark.parametrize("flush", ["10ms", "60s"])
@pytest.mark.parametrize("scheduler", ["reuseport", "fair"])
def test_upgrades_lose_and_double_no_line(site, scheduler, flush):
    """A request has one line, in the order of its connection, whichever process has answered it."""
    site.write(Format="$target", workers=2, buffer="1M", flush=flush)
    with open(site.folder / "conf" / "monkey.conf", "a") as file:
        file.write(section("SERVER", {"Scheduler": scheduler}))
    with Successors(site.start()) as successors, Visitors(site) as load:
        for _ in range(3):
            before = len(load.targets)
            await_true(lambda before=before: len(load.targets) > before + 100, 60, "answers")
            successors.upgrade()
        before = len(load.targets)
        await_true(lambda: len(load.targets) > before + 100, 60, "answers of the last")
    assert not load.errors, load.errors
    assert site.server.wait() == 0
    rows, latest = site.lines(1), {}
    assert sorted(rows) == sorted(load.targets)
    for row in rows:
        connection, _, count = row.rpartition("-")
        assert int(count) == latest.get(connection, -1) + 1, row
        latest[connection] = int(count)


def test_lines_outlive_their_worker(site):
    """They wait for the log longer than the worker that wrote them, and its generation."""
    os.mkfifo(site.log)
    site.write(Format="$target", workers=3).start()
    for n in range(50):
        site.ask(f"/{n}")
    site.write(Format="$target", workers=1)
    site.reload()
    site.server.wait_log("the configuration before the last reload is not in use any more")
    rows, reader = b"", os.open(site.log, os.O_RDONLY | os.O_NONBLOCK)

    def arrive():
        nonlocal rows
        with contextlib.suppress(BlockingIOError):
            rows += os.read(reader, 65536)
        return rows.count(b"\n") == 50

    await_true(arrive, 30, "fifty lines")
    os.close(reader)
    assert sorted(rows.split()) == sorted(b"/%d" % n for n in range(50))


@pytest.mark.single_protocol
def test_rotation_under_load_loses_nothing(site):
    site.write(Format="$target", workers=2, buffer="1M").start()
    with Askers(site) as load:
        for n in range(10):
            await_true(lambda: site.log.exists() and site.log.stat().st_size, 30, "lines")
            site.log.rename(site.folder / f"old{n}.log")
            site.server.send_signal(signal.SIGUSR1)
            await_true(site.log.exists, 30, "a new file")
    assert not load.errors, load.errors
    site.server.stop()
    rows = [row for log in site.folder.glob("*.log") for row in log.read_text().splitlines()]
    assert sorted(rows) == sorted(load.targets)


def open_logs(server):
    return [name for name in server.open_files() if name.endswith(".log")]


def test_files_come_and_go(site):
    site.write().start()
    site.ask("/1")
    site.lines(1)
    other = site.folder / "other.log"
    site.write(AccessLog=other)
    site.reload()
    site.ask("/2")
    site.lines(1, other)
    await_true(lambda: open_logs(site.server) == [str(other)], 30, "one open log")
    site.write(AccessLog="Off")
    site.reload()
    await_true(lambda: open_logs(site.server) == [], 30, "no open log")
    site.write(load=False)
    site.reload()
    await_true(lambda: "logger.so" not in open(f"/proc/{site.server.pid}/maps").read(), 30, "the plugin's end")
    site.write()
    site.reload()
    site.ask("/3")
    assert "/3" in site.lines(2)[1] and len(site.lines(2)) == 2


def test_all_is_written_before_the_end(site):
    site.write(Format="$target", flush="60s", buffer="1M").start()
    for n in range(100):
        site.ask(f"/{n}")
    site.server.stop()
    assert site.lines(100) == [f"/{n}" for n in range(100)]


def test_in_the_background(site):
    """The configuration is read before the process that serves begins."""
    site.write(Format="$target")
    pid_file, log = site.folder / "pid", site.folder / "monkey.log"
    with open(site.folder / "conf" / "monkey.conf") as file:
        text = file.read().replace("[SERVER]\n", f"[SERVER]\n    PidFile {pid_file}\n    ErrorLog {log}\n")
    (site.folder / "conf" / "monkey.conf").write_text(text)
    subprocess.run(
        [build.binary(), "-c", site.folder / "conf", "-D"], check=True, env=build.environment(), timeout=120
    )
    pid = int(pid_file.read_text())
    try:
        host, _, port = re.search(LISTENING, log.read_text())[1].rpartition(":")
        with Client((host, int(port))) as client:
            client.ask("/hello.txt")
        assert site.lines(1) == ["/hello.txt"]
    finally:
        os.kill(pid, signal.SIGTERM)
        await_true(lambda: not os.path.exists(f"/proc/{pid}"), 30, "its end")


# ── logs that are slow ──

LONG = '"$target ' + "." * 500 + '"'


def open_fifo(site, **keys):
    """A log that is a FIFO, open for reading and writing, but not read yet: without a writer a reader is at its end."""
    os.mkfifo(site.log)
    reader = os.open(site.log, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    site.write(Format=LONG, **keys).start()
    await_true(lambda: str(site.log) in links_of_descriptors(site.server.pid).values(), 30, "the writer of the log")
    return os.fdopen(reader, "rb")


def numbers_of(rows):
    return [int(re.fullmatch(rb"/(\d+) \.{500}\n", row)[1]) for row in rows]


def test_a_writer_that_is_late_loses_nothing(site):
    """With the default settings: more lines than the first buffer holds, while nothing is taken."""
    with open_fifo(site) as pipe, ThreadPoolExecutor(1) as other:
        with Client(site.server.addresses[0]) as client:
            for i in range(0, 4000, 50):
                client.send(b"".join(request(f"/{n}") for n in range(i, i + 50)))
                for _ in range(50):
                    client.response()
        rows = other.submit(lambda: list(iter(pipe.readline, b"")))
        site.server.stop()
        assert numbers_of(rows.result()) == list(range(4000))
    assert "lost" not in site.server.log


@pytest.mark.skipif(not shutil.which("h2load"), reason="h2load is missing")
def test_plain_load_loses_nothing(site):
    """As JSON with the default settings, as fast as the clients can."""
    site.write(Format="json", flush="1s", workers=2).start()
    command = ["h2load", "--h1", "-n", "15000", "-c", "32", f"http://127.0.0.1:{site.server.port}/hello.txt"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert "15000 succeeded" in result.stdout, result.stdout
    site.server.stop()
    assert "lost" not in site.server.log
    assert len(site.log.read_bytes().splitlines()) == 15000


def ask_all(site, numbers):
    """One request a connection at a time; the statuses."""
    with Client(site.server.addresses[0], timeout=60) as client:
        return [client.ask(f"/{n}").status for n in numbers]


@pytest.mark.parametrize("workers", [1, 2])
def test_requests_wait_for_a_log(site, workers):
    """Nothing is lost, though the buffer is small: requests wait until the reader has taken lines."""
    with open_fifo(site, buffer="32K", WhenFull="wait", workers=workers) as pipe, ThreadPoolExecutor(9) as others:
        asked = [others.submit(ask_all, site, range(i, 4000, 8)) for i in range(8)]
        rows = []
        for row in iter(pipe.readline, b""):
            rows.append(row)
            if len(rows) == 4000:
                break
        for one in asked:
            assert set(one.result()) == {404}
        site.server.stop()
    assert sorted(numbers_of(rows)) == list(range(4000))
    assert "lost" not in site.server.log


def is_full(pipe):
    """Whether it takes no further piece of the log."""
    end = os.open(f"/proc/self/fd/{pipe.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
    writable = select.select([], [end], [], 0)[1]
    os.close(end)
    return not writable


def fill(site, pipe):
    """A connection that waits for the log, and how many requests were answered before."""
    client, answered = site.server.connect(timeout=1), 0
    while True:
        client.send(request(f"/{answered}"))
        while True:
            try:
                client.response()
                break
            except TimeoutError:
                if is_full(pipe):  # or else the machine is slow
                    return client, answered
        answered += 1


@pytest.mark.single_protocol  # a request that has timed out is asked for again
def test_a_log_that_is_not_taken(site):
    """Requests wait, other hosts and the loop continue, and what waits too long is refused."""
    other = section("HOST", {"ServerName": "other", "DocumentRoot": site.folder / "root"})
    with open_fifo(site, buffer="32K", WhenFull="wait", files={"sites/other": other}) as pipe:
        client, answered = fill(site, pipe)
        assert 50 < answered < 2000
        assert site.ask("/hello.txt", host="other").body == HELLO
        with ThreadPoolExecutor(1) as reading:
            rows = reading.submit(lambda: list(iter(pipe.readline, b"")))
            client.sock.settimeout(30)
            assert client.response().status == 404
            site.server.stop()
            assert numbers_of(rows.result()) == list(range(answered + 1))


@pytest.mark.parametrize("end", ["reload", "stop", "leave"])
def test_the_end_of_those_that_wait(site, end):
    """A reload, a stop and clients that leave while requests wait: no crash, no deadlock."""
    with open_fifo(site, buffer="32K", WhenFull="wait") as pipe:
        client, answered = fill(site, pipe)
        if end == "leave":
            client.close()
        if end == "reload":
            site.write(Format=LONG, WhenFull="wait")
            site.reload()
        if end == "stop":
            site.server.send_signal(signal.SIGTERM)
            site.server.send_signal(signal.SIGTERM)
            site.server.stop()
            return
        with ThreadPoolExecutor(1) as reading:
            rows = reading.submit(lambda: list(iter(pipe.readline, b"")))
            assert site.ask(f"/{answered + 1}").status == 404
            site.server.stop()
            assert f"/{answered + 1} ".encode() in b"".join(rows.result())


def test_a_reload_that_makes_the_buffer_smaller(site):
    """Its first piece of memory may be larger than the whole buffer now: the writer is woken all the same."""

    def write(**rest):
        site.write(Format=LONG, WhenFull="wait", flush="60s", **rest)
        conf = site.folder / "conf" / "monkey.conf"
        conf.write_text(conf.read_text().replace("[SERVER]\n", "[SERVER]\n    HandlerTimeout 20s\n"))

    write()
    site.start()
    assert set(ask_all(site, range(10))) == {404}
    write(buffer="32K")
    site.reload()
    assert set(ask_all(site, range(500))) == {404}


def test_a_full_disk_and_requests_that_wait(site):
    """They are refused after HandlerTimeout, and the server can be stopped."""
    site.write(Format=LONG, buffer="32K", WhenFull="wait")
    conf = site.folder / "conf" / "monkey.conf"
    conf.write_text(conf.read_text().replace("[SERVER]\n", "[SERVER]\n    HandlerTimeout 200ms\n"))
    site.start(wrapper=make_full(site.log))
    statuses = []
    with ThreadPoolExecutor(4) as others:
        while 503 not in statuses:
            for one in [others.submit(site.ask, "/hello.txt") for _ in range(4)]:
                statuses.append(one.result().status)
    assert set(statuses) == {200, 503}
    site.server.stop()
