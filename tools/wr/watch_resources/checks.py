# SPDX-License-Identifier: Apache-2.0
"""Does a server send what a workload asks for? Asked by curl once, before it is measured."""

import os
import subprocess
import zlib
from typing import NamedTuple

from .data import Problem
from .environment import read_content
from .websocket import WebSocket

VERSIONS = {"1.1": "--http1.1", "2": "--http2-prior-knowledge"}
SECURE_VERSIONS = {"1.1": "--http1.1", "2": "--http2"}
HTTP_1_0 = "1"  # as curl writes it
WRITE_OUT = "%{stderr}%{http_version} %{http_code} %header{content-encoding}"
SECONDS = 10
PATHS = 10  # of a workload that has more


class Disqualified(Problem):
    """A server that answers wrongly."""


class Answer(NamedTuple):
    version: str
    status: str
    coding: str
    body: bytes

    def __str__(self):
        coding = f", Content-Encoding {self.coding}" if self.coding else ""
        content = f"{len(self.body)} bytes{coding}, CRC {zlib.crc32(self.body):08x}"
        return f"HTTP/{self.version}, status {self.status}, {content}"


def ask(workload, url, body=""):
    versions = SECURE_VERSIONS if workload.tls else VERSIONS
    command = ["curl", "-sk", "-m", str(SECONDS), versions[workload.protocol], "-w", WRITE_OUT]
    for name, value in workload.all_headers().items():
        command += ["-H", f"{name}: {value}"]
    if body:
        command += ["--data-binary", f"@{body}", "-H", "Expect:"]
    try:
        done = subprocess.run([*command, url], capture_output=True)
    except FileNotFoundError:
        raise Problem("answers are checked by curl: install the package curl") from None
    fields = (done.stderr.decode().split(" ") + [""] * 3)[:3]
    return Answer(*fields, done.stdout)


def check_connection(workload, server):
    """Raises a Problem when a second request on the first one's connection needs a new one."""
    url = workload.url(server.port)
    command = ["curl", "-sk", "-m", str(SECONDS), "--http1.1", "-w", "%{stderr}%{num_connects} "]
    done = subprocess.run([*command, url, url, "-o", os.devnull, "-o", os.devnull], capture_output=True)
    if done.stderr.split() != [b"1", b"0"]:
        raise Disqualified(
            f"{server.name} closes the connection after an answer to {workload.name}, which is to be kept"
        )


def check_websocket(workload, server):
    """Raises a Problem when the second message of a WebSocket does not come back."""
    text = "x" * workload.message
    try:
        with WebSocket(server.port, workload.path, workload.tls) as socket:
            for _ in range(2):
                socket.send(text)
                found = socket.receive()
    except (OSError, ValueError) as error:
        server.check_health()
        raise Problem(server.tell(f"has no WebSocket for {workload.name} /{workload.path}: {error}")) from None
    if found != text:
        raise Disqualified(f"{server.name} answers {workload.name} /{workload.path} with another message")


def check_answers(workload, server):
    """Raises a Problem when protocol, status, coding or bytes of an answer are not those that are wanted, or when
    connections are not kept."""
    if workload.websocket:
        check_websocket(workload, server)
        return
    paths, body = workload.list_paths(), os.path.join(server.root, workload.body) if workload.body else ""
    for path in paths[:: max(1, len(paths) // PATHS)]:
        suffix = {"gzip": ".gz"}.get(workload.coding, "")
        wanted = Answer(workload.protocol, "200", workload.coding, read_content(server.root, path + suffix))
        found = ask(workload, workload.url(server.port, path), body)
        if found.status == "000":
            server.check_health()
            raise Problem(server.tell(f"does not answer {workload.name} /{path} within {SECONDS} s"))
        if found.version == HTTP_1_0 and not server.kind.keep_alive:
            found = found._replace(version=wanted.version)
        if found != wanted:
            raise Disqualified(f"{server.name} answers {workload.name} /{path} with {found} instead of {wanted}")
    if workload.protocol == "1.1" and not workload.close and not body:
        check_connection(workload, server)
