# SPDX-License-Identifier: Apache-2.0
"""Several access logs of a host, by path and by conditions, and those of monkey.conf for all hosts."""

import pytest

from harness import build
from harness.content import populate
from harness.messages import request
from harness.server import Server, await_true, run, section, write_config
from harness.ways import WAYS

pytestmark = pytest.mark.skipif(
    not (build.PLUGINS / "logger.so").exists(), reason=f"the preset {build.PRESET} has no logger"
)

FILES = {"a.txt": b"a\n", "api/b.txt": b"b\n", "large": b"x" * 3_000_000}


class Logs:
    """A server with two hosts and a folder of logs; {} in `server` and `site` is replaced by that folder."""

    def __init__(self, folder):
        self.folder, self.logs = folder, folder / "logs"
        self.logs.mkdir()
        self.root = populate(folder / "root", FILES)

    def write(self, site, server="", other=""):
        texts = [text.replace("{}", str(self.logs)) for text in (site, server, other)]
        host = section("HOST", {"ServerName": "other.test", "DocumentRoot": self.root})
        conf = write_config(self.folder / "conf", self.root, files={"sites/other": host + texts[2]})
        with open(conf / "sites" / "default", "a") as file:
            file.write(texts[0])
        with open(conf / "monkey.conf", "a") as file:
            file.write(section("LOGGER", {"Flush": "10ms"}) + texts[1])
        return conf

    def start(self, *texts):
        self.server = Server("-c", self.write(*texts))
        return self.server.connect()

    def lines(self):
        """Stops the server, which writes all lines, and returns them by log."""
        self.server.stop()
        return {path.name: path.read_text().splitlines() for path in sorted(self.logs.iterdir())}


@pytest.fixture
def logs(tmp_path):
    return Logs(tmp_path)


SEVERAL = """
[LOGGER]
    AccessLog   {}/all
    Format      "all $target $status"
    Except      =/healthz *.css

[LOGGER]
    Match       /api
    AccessLog   {}/api
    Format      "api $target"
    RequestId   On

[LOGGER]
    AccessLog   {}/failed
    Format      "failed $target $status"
    Status      4xx 5xx

[LOGGER]
    AccessLog   {}/sample
    Format      $target
    Sample      1/3
    Match       /api/

[LOGGER]
    AccessLog   {}/all
    Format      "again $target"
    Match       =/a.txt
"""


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_several(way, serve, tmp_path):
    """Each section whose Match has the path writes its line, in the order of the file; files are shared."""
    (tmp_path / "logs").mkdir()
    logs = SEVERAL.replace("{}", str(tmp_path / "logs"))

    def start(sources, settings, text=""):
        host = section("HOST", {"ServerName": "localhost", "DocumentRoot": tmp_path / "server0" / "root"})
        return serve(settings, files=FILES, config={"sites/default": host + text + logs})

    server = way.start(start, tmp_path, {})
    client = server.open()
    assert client.ask("/a.txt")["X-Request-Id"] is None
    assert client.ask("/api/b.txt")["X-Request-Id"]
    for target in ("/healthz", "/x.css", "/api/c?d", "/api/b.txt"):
        client.ask(target)
    client.close()
    server.stop()
    lines = {path.name: path.read_text().splitlines() for path in (tmp_path / "logs").iterdir()}
    assert lines == {
        "all": ["all /a.txt 200", "again /a.txt", "all /api/b.txt 200", r"all /api/c?d 404", "all /api/b.txt 200"],
        "api": ["api /api/b.txt", "api /api/c?d", "api /api/b.txt"],
        "failed": ["failed /healthz 404", "failed /x.css 404", "failed /api/c?d 404"],
        "sample": ["/api/b.txt"],
    }


def test_slow_and_incomplete(logs):
    client = logs.start(
        "[LOGGER]\n    AccessLog {}/slow\n    Format $target\n    SlowerThan 50ms\n"
        "[LOGGER]\n    AccessLog {}/slower\n    SlowerThan 1h\n"
        "[LOGGER]\n    AccessLog {}/left\n    Format '$target $aborted'\n    Status aborted\n".replace("'", '"')
    )
    client.ask("/a.txt?fast")
    client.send(b"GET /a.txt?slow HTTP/1.1\r\n")
    client.assert_quiet(0.1)
    client.send(b"Host: h\r\n\r\n")
    assert client.response().status == 200
    client.close()
    with logs.server.connect(rcvbuf=4096) as other:
        other.send(request("/large"))
        other.until(b"\r\n\r\n")
        other.reset()
    await_true(lambda: (logs.logs / "left").exists(), 30, "a line")
    lines = logs.lines()
    assert "/a.txt?slow" in lines["slow"] and not lines["slower"]
    assert lines["left"] == ["/large aborted"]


def test_defaults_of_all_hosts(logs):
    """Those of monkey.conf are for the paths that no section of the host has; conditions do not matter for that."""
    client = logs.start(
        "[LOGGER]\n    Match /api\n    AccessLog {}/api\n    Format $target\n    Status 5xx\n",
        "[LOGGER]\n    AccessLog {}/rest\n    Format \"$host $target\"\n"
        "[LOGGER]\n    Match /a.txt\n    AccessLog {}/a\n    Format \"$host $target\"\n",
    )
    for host in ("localhost", "other.test"):
        for target in ("/a.txt", "/api/b.txt"):
            client.send(request(target, host=host))
            assert client.response().status == 200
    client.close()
    assert logs.lines() == {
        "a": ["localhost /a.txt", "other.test /a.txt"],
        "api": [],
        "rest": ["localhost /a.txt", "other.test /a.txt", "other.test /api/b.txt"],
    }


def test_rewritten_requests(logs):
    """Match and Except go by the path that the client sent, as the line does; $path is the new one."""
    client = logs.start(
        "[REWRITE]\n    Match =/old\n    To /a.txt\n[REWRITE]\n    Match =/probe\n    To /a.txt\n"
        "[LOGGER]\n    Match /old\n    AccessLog {}/old\n    Format \"$target $path\"\n"
        "[LOGGER]\n    Except =/probe\n    AccessLog {}/rest\n    Format $target\n"
    )
    for target in ("/old", "/probe", "/a.txt"):
        assert client.ask(target).body == b"a\n"
    client.close()
    assert logs.lines() == {"old": ["/old /a.txt"], "rest": ["/old", "/a.txt"]}


def test_requests_without_a_path(logs):
    client = logs.start(
        "[LOGGER]\n    AccessLog {}/all\n    Format $status\n[LOGGER]\n    Match /a.txt\n    AccessLog {}/a\n"
    )
    client.send(b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n")
    assert client.response().status == 204
    client.send(b"nonsense\r\n\r\n")
    assert client.response().status == 400
    client.close()
    assert logs.lines() == {"a": [], "all": ["204", "400"]}


def test_a_reload_changes_sections(logs):
    """Logs that stay are not opened again, and samples begin anew."""
    client = logs.start("[LOGGER]\n    AccessLog {}/a\n    Format $target\n    Sample 1/2\n")
    client.ask("/a.txt?1")
    client.ask("/a.txt?2")
    logs.write(
        "[LOGGER]\n    AccessLog {}/b\n    Format $target\n    Status 404\n"
        "[LOGGER]\n    AccessLog {}/a\n    Format $target\n"
    )
    logs.server.send_signal(1)
    logs.server.wait_log("the new configuration")
    client.ask("/a.txt?3")
    client.ask("/missing")
    client.close()
    assert logs.lines() == {"a": ["/a.txt?2", "/a.txt?3", "/missing"], "b": ["/missing"]}


@pytest.mark.parametrize(
    "line, column, phrase",
    [
        ("Status 404 4y", 16, "a class as 4xx"),
        ("Sample 0%", 12, "a sample is a part"),
        ("Sample 1/0", 12, "a sample is a part"),
        ("Except /a x", 15, "a pattern is a path"),
        ("SlowerThan fast", 16, "a duration"),
        ("Match a/b", 11, "starts with one"),
    ],
)
def test_mistakes(logs, line, column, phrase):
    result = run("-c", logs.write(f"[LOGGER]\n    AccessLog {{}}/a\n    {line}\n"), "-t")
    assert result.returncode == 1 and f"sites/default:6:{column}: error:" in result.stderr, result.stderr
    assert phrase in result.stderr
