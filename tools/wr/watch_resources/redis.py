# SPDX-License-Identifier: Apache-2.0
"""The Redis server of a server under test that asks one for each request: with its own port and folder, on the
CPU of the generator, so that it takes no time of the server's."""

import os
import signal
import socket
import subprocess
import time

from .data import Problem

START_SECONDS, STOP_SECONDS, REPLY_SECONDS = 10, 5, 5
KEY = "value"  # what servers ask for


def format_command(*words):
    texts = [word if isinstance(word, bytes) else word.encode() for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts)


class Redis:
    """`prepare_child` is called in the new process."""

    def __init__(self, program, folder, port, value, prepare_child):
        if not program:
            raise Problem("redis-server is not installed: install the Debian package redis-server")
        self.folder, self.port = os.path.join(folder, "redis"), port
        self.value, self.prepare_child = value, prepare_child
        self.command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self.command += ["--daemonize", "no", "--dir", self.folder]
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        """Returns when the value can be asked for. Raises a Problem."""
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, "output"), "wb") as output:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=self.prepare_child,
            )  # fmt: skip
        end = time.monotonic() + START_SECONDS
        while not self.set_value():
            if self.process.poll() is not None or time.monotonic() > end:
                raise Problem(f"{' '.join(self.command)} does not start")
            time.sleep(0.02)

    def set_value(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), REPLY_SECONDS) as client:
                client.sendall(format_command("SET", KEY, self.value))
                return client.recv(16) == b"+OK\r\n"
        except OSError:
            return False

    def stop(self):
        if not self.process:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
