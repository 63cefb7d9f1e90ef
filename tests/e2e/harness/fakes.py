# SPDX-License-Identifier: Apache-2.0
"""Servers that only look like one, and the life of all servers that a test starts."""

import contextlib
import socket
import threading


class FakeServer:
    """Calls `serve(connection)` in a thread for each connection, until the server under test closes it."""

    def __init__(self, listener=None, accepts=True):
        self.connections, self.accepted, self.ended, self.thread = [], 0, False, None
        self.listener = listener or socket.create_server(("127.0.0.1", 0))
        name = self.listener.getsockname()
        self.address = name if isinstance(name, str) else "%s:%d" % name[:2]
        if accepts:
            self.start()

    def start(self):
        """Begins to accept connections."""
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while not self.ended:
            with contextlib.suppress(OSError):
                connection, _ = self.listener.accept()
                self.accepted += 1
                self.connections.append(connection)
                threading.Thread(target=self.run, args=[connection], daemon=True).start()

    def run(self, connection):
        with contextlib.suppress(OSError):
            self.serve(connection)

    def kill(self):
        self.ended = True
        for one in (self.listener, *self.connections):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        if self.thread:
            self.thread.join(60)
        for one in (self.listener, *self.connections):
            one.close()


@contextlib.contextmanager
def killed_at_the_end(make):
    """Gives start(...), which makes a server by make(...)."""
    made = []

    def start(*args, **rest):
        made.append(make(*args, **rest))
        return made[-1]

    try:
        yield start
    finally:
        for one in made:
            one.kill()
