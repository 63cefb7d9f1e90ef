# SPDX-License-Identifier: Apache-2.0
"""Groups of servers ([UPSTREAM]), for tests with backends (backend.py). A plugin of pytest: it has the fixtures."""

import collections
import re

import pytest

from .backend import Backend, answer
from .metrics import scrape, total
from .proxies import PATIENT, TEXT
from .server import await_true, section

PREFIX = "monkey_upstream_server_"
GROUPS = "plugins/upstream/upstream.conf"


def group(servers, name="app", **keys):
    """A section; `servers` are Backends, or texts of lines."""
    rows = [each.address if isinstance(each, Backend) else each for each in servers]
    return section("UPSTREAM", {"Name": name, "Server": rows, **keys})


def ask_many(server, count):
    """How often each body came."""
    with server.connect() as client:
        answers = [client.ask("/") for _ in range(count)]
    assert {each.status for each in answers} == {200}
    return collections.Counter(int(each.body) for each in answers)


def await_queued(client, count):
    """Waits until so many requests wait for a server."""
    await_true(lambda: total(scrape(client), "monkey_upstream_queued_requests") == count,
               what=f"{count} requests that wait")


def get_cookie(got):
    """The pair of the cookie of Balance Sticky that a response sets."""
    found = re.fullmatch(r"(server=[0-9a-f]{32}); Path=/(.*)", got["Set-Cookie"])
    assert found, got["Set-Cookie"]
    return found[1]


def hold(peer):
    while True:
        peer.request()
        peer.wait("go")
        peer.respond(b"0", TEXT)


@pytest.fixture
def serve_group(serve):
    """A server that passes all requests to a group."""

    def start(servers, keys=None, proxy=None, settings=None, **rest):
        text = rest.pop("text", "") + section("PROXY", {"To": "http://app", **PATIENT, **(proxy or {})})
        config = {GROUPS: group(servers, **(keys or {})), **rest.pop("config", {})}
        server = serve({"Workers": 1, "MaxKeepAliveRequest": 0, **(settings or {})}, text=text, config=config, **rest)
        server.groups = server.conf / GROUPS
        return server

    return start


@pytest.fixture
def backends():
    """Starts backends that answer with their number."""
    with_exit = []

    def start(count, script=None, **rest):
        made = [Backend(script or answer(b"%d" % number, TEXT), **rest) for number in range(count)]
        with_exit.extend(made)
        for each in made:
            each.__enter__()
        return made

    yield start
    for each in with_exit:
        each.__exit__(None, None, None)
