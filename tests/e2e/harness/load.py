# SPDX-License-Identifier: Apache-2.0
"""Clients of several kinds that ask without a pause while servers are changed for others."""

import threading

from .client import Client, ProtocolError
from .messages import request


class Load:
    """Each kind runs in a thread. `lost` counts what a killed server may take along; everything else is an error."""

    def __init__(self, address, body, large, *, may_lose=False):
        self.address, self.body, self.large, self.may_lose = address, body, large, may_lose
        self.ending, self.errors, self.answers, self.lost, self.refused = threading.Event(), [], 0, 0, 0
        kinds = [self.keep, self.renew, self.renew, self.upload, self.slow]
        self.threads = [threading.Thread(target=self.run, args=(kind,)) for kind in kinds]

    def run(self, kind):
        while not self.ending.is_set():
            try:
                kind()
            except ConnectionRefusedError:
                self.refused += 1
            except Exception as error:  # told by the test
                if not self.may_lose or not isinstance(error, (ProtocolError, OSError)):
                    self.errors.append(f"{kind.__name__}: {error!r}")
                    return
                self.lost += 1

    def seen(self, answer, body):
        assert answer.status == 200 and answer.body == body
        self.answers += 1

    def connect(self, **rest):
        return Client(self.address, timeout=30, **rest)

    def keep(self):
        """An idle connection may be closed; what was not read is asked again."""
        with self.connect() as client:
            first = True
            while not self.ending.is_set():
                try:
                    answer = client.ask("/small")
                except (ProtocolError, ConnectionError):
                    if first or self.may_lose:
                        raise
                    return
                self.seen(answer, self.body)
                first = False
                if answer["Connection"] == "close":
                    return

    def renew(self):
        with self.connect() as client:
            self.seen(client.ask("/small", "Connection: close"), self.body)

    def upload(self):
        with self.connect() as client:
            client.send(request("/small", "Content-Length: 30000", "Connection: close"))
            for _ in range(30):
                client.send(b"x" * 1000)
            self.seen(client.response(), self.body)

    def slow(self):
        with self.connect(rcvbuf=8192) as client:
            client.send(request("/large", "Connection: close"))
            self.seen(client.response(), self.large)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join(60)
