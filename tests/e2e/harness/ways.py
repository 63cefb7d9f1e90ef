# SPDX-License-Identifier: Apache-2.0
"""The ways in which clients ask web services: HTTP/1.1 and HTTP/2, in the clear and by TLS."""

import pytest

from . import build
from .certificates import Authority, TlsClient
from .client import Client
from .h2 import H2Client
from .server import section


class Way:
    """How a client asks: the protocol, and whether by TLS."""

    def __init__(self, h2, tls):
        self.h2, self.tls = h2, tls

    def start(self, serve_services, folder, sources, settings=None, **rest):
        for protocol in ("h2",) * self.h2 + ("tls",) * self.tls:
            if not build.speaks(protocol):
                pytest.skip(f"the preset {build.PRESET} has no {protocol}")
        if self.tls:
            self.ca = Authority(folder / "ca")
            rest["text"] = rest.get("text", "") + section("TLS", self.ca.make("localhost", "localhost").keys())
            settings = {"Listen": "127.0.0.1:0 tls", **(settings or {})}
        server = serve_services(sources, settings, **rest)
        server.open = lambda **more: self.connect(server, **more)
        return server

    def connect(self, server, **rest):
        if self.h2:
            rest["context"] = self.ca.context(alpn=["h2"]) if self.tls else None
            client = H2Client(server.addresses[0], **rest)
        elif self.tls:
            client = TlsClient(server.addresses[0], self.ca.context(), **rest)
        else:
            client = Client(server.addresses[0], **rest)
        server.clients.append(client)
        return client


WAYS = {"h1": Way(False, False), "h2": Way(True, False), "h1-tls": Way(False, True), "h2-tls": Way(True, True)}
