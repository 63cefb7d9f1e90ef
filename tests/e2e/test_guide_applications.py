# SPDX-License-Identifier: Apache-2.0
"""The applications of the guide: configurations and programs of the page, asked through the server."""

import asyncio
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess

import pytest
import websockets

from harness import build
from harness.backend import Backend, echo
from harness.client import Client
from harness.messages import request
from harness.server import Server, await_true, free_port, run

PAGE = build.TOP / "docs/guide/applications.md"
BLOCK = re.compile(r"^```\w+\n(?:#|//) file: (\S+)\n(.*?)^```", re.S | re.M)
COMMAND = re.compile(r"^```console\n\$ (.*)\n```", re.M)
PARTS = dict(part.split("\n", 1) for part in re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:])
FIRST, SEVERAL = list(PARTS)[:2]
FILES = "Files that an application names"
REPORT = b"%PDF-1.7\n"
GUNICORN, NODE, GO, WEBSOCKET = "Python, by gunicorn", "Node.js, with an event stream", "Go", "WebSocket"
pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
]


class Example:
    """A section of the page below a folder of the test's own, at ports of its own."""

    def __init__(self, folder):
        self.folder, self.process, self.server, self.ports = folder, None, None, {}
        (folder / "srv/www").mkdir(parents=True)
        (folder / "srv/www/index.html").write_text("www\n")
        (folder / "srv/files/reports").mkdir(parents=True)
        (folder / "srv/files/reports/2026.pdf").write_bytes(REPORT)

    def port(self, written):
        return self.ports.setdefault(written, free_port())

    def translate(self, text):
        text = text.replace("Listen          2001", "Listen 127.0.0.1:0")
        text = re.sub(r"\b80\d\d\b", lambda found: str(self.port(found[0])), text)
        return text.replace("/srv/", f"{self.folder}/srv/").replace("/run/shop/", f"{self.folder}/")

    def write(self, heading):
        blocks = dict(BLOCK.findall(PARTS[heading]))
        if "monkey.conf" not in blocks:
            blocks |= dict(BLOCK.findall(PARTS[FIRST]))
        for name, text in blocks.items():
            path = self.folder / ("conf" if "." not in name or name.endswith(".conf") else "app") / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.translate(text))

    def start(self, heading):
        """Runs the application of the section, and waits until it accepts connections; then the server."""
        self.write(heading)
        words = shlex.split(self.translate(COMMAND.search(PARTS[heading])[1]))
        with (self.folder / "app.log").open("w") as log:
            command = ["/usr/bin/python3" if words[0] == "python3" else words[0], *words[1:]]
            self.process = subprocess.Popen(
                command, cwd=self.folder / "app", stdout=log, stderr=log, start_new_session=True
            )
        await_true(self.accepts, 300, f"{heading} does not start: {(self.folder / 'app.log').read_text()}")
        self.serve()

    def accepts(self):
        path = self.folder / "app.sock"
        family = socket.AF_INET if self.ports else socket.AF_UNIX
        assert self.process.poll() is None, (self.folder / "app.log").read_text()
        with socket.socket(family) as probe:
            return probe.connect_ex(("127.0.0.1", self.port("8000")) if self.ports else str(path)) == 0

    def serve(self):
        self.server = Server("-c", self.folder / "conf")

    def ask(self, target, *fields, **rest):
        with Client(self.server.addresses[0]) as client:
            return client.ask(target, *fields, **rest)

    def stop(self):
        if self.server:
            self.server.stop()
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def example(tmp_path):
    one = Example(tmp_path)
    yield one
    one.stop()


def needs(tool):
    return [pytest.mark.skipif(not shutil.which(tool), reason=f"{tool} is not installed"), pytest.mark.slow]


APPLICATIONS = [GUNICORN, pytest.param(NODE, marks=needs("node")), pytest.param(GO, marks=needs("go"))]


@pytest.mark.parametrize("heading", [name for name, part in PARTS.items() if "# file: monkey.conf" in part])
def test_is_accepted(example, heading):
    example.write(heading)
    result = run("-c", example.folder / "conf", "-t")
    assert result.returncode == 0, result.stderr


def test_every_application_has_a_test():
    run_here = {GUNICORN, NODE, GO, WEBSOCKET}
    assert {name for name, part in PARTS.items() if COMMAND.search(part)} == run_here


@pytest.mark.timeout(600)  # Go compiles its library at first
@pytest.mark.parametrize("heading", APPLICATIONS)
def test_applications(example, heading):
    example.start(heading)
    for _ in range(2):
        answer = example.ask("/a%20b?c", "X-Real-IP: 192.0.2.1")
        assert answer.status == 200 and answer.body.startswith(b"GET /a") and answer.body.endswith(b"from 127.0.0.1\n")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_event_stream(example):
    """Events arrive one by one, and the application learns that the client has left."""
    example.start(NODE)
    with Client(example.server.addresses[0]) as client:
        client.send(request("/events"))
        head = client.until(b"\r\n\r\n")
        assert b"text/event-stream" in head
        for count in range(1, 4):
            client.until(b"data: %d\n\n" % count)


def test_websocket(example):
    example.start(WEBSOCKET)

    async def ask():
        async with websockets.connect(f"ws://{example.server.names[0]}/socket") as client:
            await client.send("hello")
            assert await client.recv() == "hello"

    asyncio.run(ask())


def test_several_applications(example):
    example.write(SEVERAL)
    shop = example.folder / "app.sock"
    with Backend(echo, port=example.port("8001")), Backend(echo, path=shop), Backend(echo, port=example.port("8002")):
        example.serve()
        for host, target, there in (
            ("example.org", "/api/users?a", "/users?a"),
            ("example.org", "/shop/cart", "/shop/cart"),
            ("blog.example.org", "/api/users", "/api/users"),
            ("example.org", "/", None),
        ):
            answer = example.ask(target, host=host)
            assert answer.status == 200 and answer["Echo"] == (there and f"GET {there}"), (host, target)


def test_files(example):
    def name_file(peer):
        while True:
            got = peer.request()
            assert got["X-User"] is None
            peer.respond(b"", "X-Accel-Redirect: /reports/2026.pdf", "Content-Type: application/pdf")

    example.write(FILES)
    with Backend(name_file, path=example.folder / "app.sock"):
        example.serve()
        answer = example.ask("/app/report", "X-User: root", "Range: bytes=0-3")
        assert (answer.status, answer.body, answer["Content-Type"]) == (206, REPORT[:4], "application/pdf")
        assert example.ask("/files/reports/2026.pdf").status == 404
