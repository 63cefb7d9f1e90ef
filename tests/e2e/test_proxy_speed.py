# SPDX-License-Identifier: Apache-2.0
"""What a request that is passed to a backend costs."""

import collections

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.proxies import TEXT, proxy_section
from test_budgets import ROLES, Trace

pytestmark = pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins")


@pytest.fixture
def count_calls(serve, tmp_path):
    """Counts the system calls that the worker makes while a client asks `rounds` times, one at a time."""

    def count(backend, rounds, ask, keys=None):
        settings = {"Workers": 1, "KeepAliveTimeout": "60s", "MaxKeepAliveRequest": 100_000}
        server = serve(settings, text=proxy_section(backend, keys))
        client = server.connect()
        for _ in range(3):
            ask(client)
        trace = Trace(server, tmp_path / "trace")
        for _ in range(rounds):
            ask(client)
        calls = collections.Counter(ROLES.get(name, name) for name, _ in trace.end())
        assert len(backend.peers) == 1
        return calls

    return count


def ask_small(client):
    assert client.ask("/").body == b"hello"


@pytest.mark.budget
def test_calls_of_a_kept_request(count_calls):
    """Six: wait, read the request, write it to the backend; wait, read the response, write it to the client. The IDs of
    255 requests, which a backend gets, are made of the random bytes of one call."""
    rounds = 200
    with Backend(answer(b"hello", TEXT)) as backend:
        calls = count_calls(backend, rounds, ask_small)
    assert calls.pop("getrandom", 0) <= 1
    often = {name: number / rounds for name, number in calls.items() if number > 3}  # the wait for the next one
    assert sum(calls.values()) <= 6 * rounds + 3, calls
    assert {name: round(number) for name, number in often.items()} == {"epoll_wait": 2, "recvfrom": 2, "sendmsg": 2}
