# SPDX-License-Identifier: Apache-2.0
"""The ways in which clients ask web services: HTTP/1.1 and HTTP/2, in the clear and by TLS."""

import functools

import pytest

from . import build
from .certificates import Authority, TlsClient
from .client import Client
from .h2 import H2Client
from .server import section


@functools.cache
def make_authority(folder):
    """The authority of all servers of a process, and its certificate for localhost."""
    ca = Authority(folder / "ca-of-ways")
    return ca, ca.make("localhost", "localhost")


@functools.cache
def make_context(ca, protocol):
    """For clients, which need milliseconds to make one."""
    return ca.context(alpn=[protocol] if protocol else None)


class Way:
    """How a client asks: the protocol, and whether by TLS."""

    def __init__(self, h2, tls):
        self.h2, self.tls = h2, tls

    def start(self, serve_services, folder, sources, settings=None, **rest):
        for protocol in ("h2",) * self.h2 + ("tls",) * self.tls:
            if not build.speaks(protocol):
                pytest.skip(f"the preset {build.PRESET} has no {protocol}")
        if self.tls:
            self.ca, pair = make_authority(folder.parent)
            rest["text"] = rest.get("text", "") + section("TLS", pair.keys())
            settings = {"Listen": "127.0.0.1:0 tls", **(settings or {})}
        server = serve_services(sources, settings, **rest)
        server.open = lambda **more: self.connect(server, **more)
        return server

    def connect(self, server, **rest):
        if self.h2:
            rest["context"] = make_context(self.ca, "h2") if self.tls else None
            client = H2Client(server.addresses[0], **rest)
        elif self.tls:
            client = TlsClient(server.addresses[0], make_context(self.ca, None), **rest)
        else:
            client = Client(server.addresses[0], **rest)
        server.clients.append(client)
        return client


WAYS = {"h1": Way(False, False), "h2": Way(True, False), "h1-tls": Way(False, True), "h2-tls": Way(True, True)}
