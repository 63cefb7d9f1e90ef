# SPDX-License-Identifier: Apache-2.0
"""Clients that ask without a pause while servers are changed for others."""

import threading

import pytest

from .client import Client, ProtocolError
from .messages import request
from .server import await_true


class Clients:
    """Each kind is called in its own thread, again and again; the test tells of the errors."""

    def __init__(self, kinds):
        self.ending, self.errors, self.skipped = threading.Event(), [], None
        self.threads = [threading.Thread(target=self.run, args=(kind,)) for kind in kinds]

    def run(self, kind):
        while not self.ending.is_set():
            try:
                kind()
            except pytest.skip.Exception as skipped:  # the protocol of this run cannot say it
                self.skipped = skipped
                self.ending.set()
            except Exception as error:  # reported by the test
                if not self.forgives(error):
                    self.errors.append(f"{kind.__name__}: {error!r}")
                    return

    def forgives(self, error):
        del error
        return False

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join(60)
        if self.skipped:
            raise self.skipped


class Load(Clients):
    """Of several kinds. `lost` counts what a killed server may take along; everything else is an error."""

    small, large = "/small", "/large"

    def __init__(self, address, *bodies, may_lose=False):
        self.address, self.may_lose = address, may_lose
        self.bodies = dict(zip((self.small, self.large), bodies))
        self.answers, self.lost, self.refused = 0, 0, 0
        super().__init__(self.kinds())

    def kinds(self):
        return [self.keep, self.renew, self.renew, self.upload, self.slow]

    def forgives(self, error):
        if isinstance(error, ConnectionRefusedError):
            self.refused += 1
            return True
        if self.may_lose and isinstance(error, (ProtocolError, OSError)):
            self.lost += 1
            return True
        return False

    def seen(self, path, answer):
        assert answer.status == 200 and answer.body == self.bodies[path]
        self.answers += 1

    def connect(self, **rest):
        return Client(self.address, timeout=30, **rest)

    def keep(self):
        """An idle connection may be closed; what was not read is asked again."""
        with self.connect() as client:
            first = True
            while not self.ending.is_set():
                try:
                    answer = client.ask(self.small)
                except (ProtocolError, ConnectionError):
                    if first or self.may_lose:
                        raise
                    return
                self.seen(self.small, answer)
                first = False
                if answer["Connection"] == "close":
                    return

    def renew(self):
        with self.connect() as client:
            self.seen(self.small, client.ask(self.small, "Connection: close"))

    def upload(self):
        with self.connect() as client:
            client.send(request(self.small, "Content-Length: 30000", "Connection: close"))
            for _ in range(30):
                client.send(b"x" * 1000)
            self.seen(self.small, client.response())

    def slow(self):
        with self.connect(rcvbuf=8192) as client:
            client.send(request(self.large, "Connection: close"))
            self.seen(self.large, client.response())


class Counted(Clients):
    """Clients that count what they got."""

    def __init__(self, kinds):
        self.answers, self.lock = 0, threading.Lock()
        super().__init__(kinds)

    def count(self):
        with self.lock:
            self.answers += 1

    def await_answers(self, more):
        """Waits until so many more answers have come than now."""
        end = self.answers + more
        await_true(lambda: self.answers >= end or self.errors, 30, f"{more} answers")
        assert not self.errors, self.errors


class Pausing(Counted):
    """Clients with kept connections that wait a moment before each request. The end of a connection in place of an
    answer is an error, unless an answer has announced it (Connection: close, GOAWAY)."""

    def __init__(self, address, body, *, count=16, pause=0.01, connect=Client):
        self.address, self.body, self.pause, self.connect = address, body, pause, connect
        super().__init__([self.keep] * count)

    def keep(self):
        with self.connect(self.address, timeout=30) as client:
            while not self.ending.wait(self.pause):
                answer = client.ask("/small")
                assert answer.status == 200 and answer.body == self.body
                self.count()
                if answer["Connection"] == "close":
                    return


class Asking(Counted):
    """Clients without pauses: each makes these requests, functions of a connection, again and again."""

    def __init__(self, server, *asked, count=4):
        self.server, self.asked = server, asked
        super().__init__([self.ask] * count)

    def ask(self):
        with self.server.connect() as client:
            for one in self.asked * 10:
                one(client)
                self.count()
