# SPDX-License-Identifier: Apache-2.0
"""memcached servers of tests: real ones on free ports, and fakes that misbehave."""

import getpass
import re
import shutil
import socket
import subprocess

from .fakes import FakeServer
from .server import await_true, free_port, send_signal

PROGRAM = shutil.which("memcached")


class Memcached:
    """A real server, which can be killed and started again on the same port, or a path."""

    def __init__(self, *args, path=None):
        self.args, self.path, self.process, self.port = args, path, None, None
        self.start()

    @property
    def address(self):
        return f"unix:{self.path}" if self.path else f"127.0.0.1:{self.port}"

    def start(self):
        """The port that was found free may be taken meanwhile: then another one is tried, unless clients know it."""
        user = ["-u", getpass.getuser()]
        for _ in range(1 if self.port else 10):
            port = self.port or free_port()
            where = ["-s", self.path] if self.path else ["-l", "127.0.0.1", "-p", port, "-U", 0]
            command = [PROGRAM, *user, *where, "-t", 2, "-m", 64, *self.args]
            self.process = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL)
            await_true(lambda port=port: self.process.poll() is not None or self.answers(port), 60, "memcached")
            if self.process.poll() is None:
                self.port = None if self.path else port
                return
        raise AssertionError(f"memcached does not start: {self.process.returncode}")

    def connect(self, port=None):
        if not self.path:
            return socket.create_connection(("127.0.0.1", port or self.port), 60)
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(60)
        client.connect(str(self.path))
        return client

    def answers(self, port):
        try:
            with self.connect(port) as client:
                client.sendall(b"mn\r\n")
                return client.recv(10).startswith(b"MN")
        except OSError:
            return False

    def ask(self, data):
        """Sends a command; returns the lines of its reply, which has one line, or is that of stats."""
        with self.connect() as client, client.makefile("rb") as file:
            client.sendall(data)
            lines = [file.readline()]
            while lines[-1].startswith(b"STAT "):
                lines.append(file.readline())
            return lines

    def stat(self, name):
        """A figure of the server."""
        text = b"".join(self.ask(b"stats\r\n")).decode()
        return int(re.search(rf"^STAT {name} (\d+)", text, re.M)[1])

    def kill(self):
        """As the kernel does without memory."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def suspend(self, number):
        """SIGSTOP: it takes connections, which the kernel does, and does not answer. SIGCONT ends that."""
        send_signal(self.process, number)


class Fake(FakeServer):
    """Calls `answer(connection, file)` for each connection; `file` is what it reads from."""

    def __init__(self, answer):
        self.answer = answer
        super().__init__()

    def serve(self, connection):
        with connection, connection.makefile("rb") as file:
            self.answer(connection, file)


def each_command(file):
    """The commands that are read: name, words behind it, value, opaque (b"" without one)."""
    for line in file:
        name, *words = line.split()
        value = file.read(int(words[1]) + 2)[:-2] if name == b"ms" else b""
        opaque = next((word[1:] for word in words if word.startswith(b"O")), b"")
        yield name, words, value, opaque
