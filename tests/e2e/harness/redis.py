# SPDX-License-Identifier: Apache-2.0
"""A Redis server of a test, on a free port, and servers that only look like one."""

import contextlib
import shutil
import socket
import subprocess

import pytest

from .fakes import FakeServer
from .server import await_true, free_port, send_signal

needs_redis = pytest.mark.skipif(not shutil.which("redis-server"), reason="redis-server is not installed")
START_SECONDS = 60


class Redis:
    """redis-server in its own folder, without files of its data."""

    def __init__(self, folder, *args, password=None):
        self.folder, self.args, self.password, self.process = folder, args, password, None
        self.port = free_port()
        self.socket = folder / "redis.sock"
        folder.mkdir(parents=True, exist_ok=True)
        self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        command = ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder, "--save", ""]
        command += ["--appendonly", "no", "--daemonize", "no", "--unixsocket", self.socket, *self.args]
        if self.password:
            command += ["--requirepass", self.password]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
        await_true(self.is_up, START_SECONDS, "the start of redis-server")

    def is_up(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        with contextlib.suppress(OSError):
            return self.ask("PING") is not None
        return False

    def ask(self, *words):
        """Returns the first line of the reply, without its type; of a string, the string."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            if self.password:
                send_command(client, "AUTH", self.password)
                read_line(client)
            send_command(client, *words)
            line = read_line(client)
            if line.startswith("$") and line != "$-1":
                return read_bytes(client, int(line[1:]) + 2)[:-2].decode()
            return line[1:]

    def list(self, *words):
        """Returns the strings of a reply that is an array."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            send_command(client, *words)
            rows = range(int(read_line(client)[1:]))
            return [read_bytes(client, int(read_line(client)[1:]) + 2)[:-2].decode() for _ in rows]

    def signal(self, number):
        send_signal(self.process, number)

    def kill(self):
        """Ends it at once, as the kernel does when memory is out."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def send_command(client, *words):
    texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    client.sendall(b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts))


def read_bytes(client, n):
    data = b""
    while len(data) < n:
        piece = client.recv(n - len(data))
        if not piece:
            raise ConnectionResetError("the server has closed the connection")
        data += piece
    return data


def read_line(client):
    line = b""
    while not line.endswith(b"\r\n"):
        line += read_bytes(client, 1)
    return line[:-2].decode()


class Fake(FakeServer):
    """Answers whatever arrives with the same bytes; None: never. Counts its connections."""

    def __init__(self, answer, *, closes=False):
        self.answer, self.closes = answer, closes
        super().__init__()

    def serve(self, client):
        while client.recv(65536):
            if self.answer is not None:
                client.sendall(self.answer)
            if self.closes:
                client.close()
