# SPDX-License-Identifier: Apache-2.0
"""What a request for a file or a service of 13 bytes costs on a kept connection: user instructions, by callgrind."""

import shutil

import pytest

from harness import build
from harness.caching import await_settled, needs_cache
from harness.server import section
from harness.services import needs_duda
from test_counter_budget import count_per_request, make_shim

pytestmark = pytest.mark.budget

CLOCK_MAX = 30  # what ticks of the clock add to each request on a loaded machine, where a run takes more seconds
OPENED_MAX, KEPT_MAX, HOOKS_MAX = 5_860 + CLOCK_MAX, 4_800 + CLOCK_MAX, 50
FIELD_MAX = 250
SERVICE_MAX = 5_300 + CLOCK_MAX
TURNS_MAX = 150  # the same for requests of a client that arrive in more than one turn
H2_OPENED_MAX, H2_KEPT_MAX, STREAMS = 8_010 + CLOCK_MAX + TURNS_MAX, 6_900 + CLOCK_MAX + TURNS_MAX, 100


@pytest.fixture
def count(serve, tmp_path, record_property):
    if build.PRESET != "release":
        pytest.skip("of the release only: other builds check more")
    assert shutil.which("valgrind"), "valgrind is not installed"
    shim = make_shim(tmp_path)

    def run(plugins, text="", start=serve, **rest):
        config = {"plugins.load": section("PLUGINS", {"Load": plugins})}
        instructions = count_per_request(
            start, tmp_path, shim, config=config, text=text, prepare=lambda server: await_settled(server.root), **rest
        )
        record_property(plugins, instructions)
        print(f"{plugins} {rest or ''}: {instructions:.0f} user instructions of a request")
        return instructions

    return run


def test_instructions_of_an_opened_file(count):
    assert 1000 < count("liana static") <= OPENED_MAX  # it was counted at all


@needs_cache
def test_instructions_of_a_kept_file(count):
    kept = section("CACHE", {"Files": "Immutable"})
    alone = count("liana cache static", kept)
    with_hooks = count("liana cache cors headers static compress", kept)
    assert 1000 < alone <= KEPT_MAX
    assert with_hooks - alone <= HOOKS_MAX


@needs_cache
def test_instructions_of_a_kept_file_that_is_not_modified(count):
    """The same as with a body, and reading one field."""
    kept = section("CACHE", {"Files": "Immutable"})
    assert 1000 < count("liana cache static", kept, fields=("If-None-Match: *",), status=304) <= KEPT_MAX + FIELD_MAX


def ask_hello(server, requests):
    client = server.connect()
    for _ in range(requests):
        assert client.ask("/hello/").body == b"Hello, world\n"
    client.close()


@needs_duda
def test_instructions_of_a_service(count, serve_services):
    source = (build.TOP / "docs/examples/services/01-hello/hello.c").read_text()

    def start(settings, config, **rest):
        return serve_services({"hello": source}, settings, files=config, **rest)

    assert 1000 < count("liana duda static", start=start, ask=ask_hello) <= SERVICE_MAX


def ask_over_streams(server, requests):
    """A hundred requests at once on an HTTP/2 connection."""
    client = server.connect_h2()
    for _ in range(requests // STREAMS):
        for stream in [client.begin("/hello.txt", "User-Agent: budget", "Accept: */*") for _ in range(STREAMS)]:
            assert client.response(stream).status == 200
    client.close()


def count_over_streams(count, *args):
    """The least of three: a client that is interrupted sends its requests in more turns."""
    return min(count(*args, ask=ask_over_streams) for _ in range(3))


@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
def test_instructions_over_streams(count):
    assert 1000 < count_over_streams(count, "liana static") <= H2_OPENED_MAX


@needs_cache
@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
def test_instructions_of_a_kept_file_over_streams(count):
    kept = section("CACHE", {"Files": "Immutable"})
    assert 1000 < count_over_streams(count, "liana cache static", kept) <= H2_KEPT_MAX
