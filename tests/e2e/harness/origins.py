# SPDX-License-Identifier: Apache-2.0
"""Backends in processes of their own, which can be killed (-9) and started again at their address."""

from .server import free_port


class Origin:
    """Serves the file `/b`; `serve` is the fixture."""

    BODY = b"hello"

    def __init__(self, serve):
        self.serve, self.address, self.server = serve, f"127.0.0.1:{free_port()}", None
        self.start()

    def start(self):
        settings = {"Listen": self.address, "Workers": 1, "MaxKeepAliveRequest": 0}
        self.server = self.serve(settings, files={"b": self.BODY})

    def kill(self):
        self.server.kill()
        self.server.finished = True
