# SPDX-License-Identifier: Apache-2.0
"""What an embedded server costs, compared with the framework and with an empty program."""

import os
import pathlib
import re
import shutil

import pytest

from harness import build, embed
from harness.client import Client
from harness.embed import PROGRAMS, Program
from harness.messages import request
from harness.services import HEAD, build_service, service_config
from test_counter_budget import FEW, MANY, make_shim

pytestmark = [
    pytest.mark.budget,
    pytest.mark.skipif(build.PRESET != "release", reason="of the release only: other builds check more"),
]

# As bare.c responds.
SERVICE = f"""{HEAD}
static void say_hello(duda_request_t *dr)
{{
    response->http_header(dr, "Content-Type: text/plain");
    response->printf(dr, "Hello, world\\n");
    response->end(dr, NULL);
}}

int duda_main(void)
{{
    return router->get("/", say_hello) ? 0 : -1;
}}
"""
PRIVATE_KB_MAX = 250
RATIO_MAX = 1.05


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    prefix = embed.install(tmp_path_factory.mktemp("prefix"))
    return embed.compile_program(prefix, tmp_path_factory.mktemp("bare"), PROGRAMS / "bare.c")


def wrap(out):
    return ("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}")


def read_count(out):
    return int(re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.M)[1])


def ask_often(client, number):
    for _ in range(number):
        client.send(request("/hello/"))
        assert client.response().status == 200


def count_embedded(bare, folder, env, kind, number):
    out = folder / f"embedded.{kind}.{number}"
    with Program(*wrap(out), bare, kind, env=env) as program, Client(program.address, timeout=60) as client:
        ask_often(client, number)
    return read_count(out)


def count_service(serve, folder, env, number):
    out = folder / f"service.{number}"
    services = folder / "services"
    services.mkdir(exist_ok=True)
    build_service(services, "hello", SERVICE)
    server = serve(
        {"KeepAliveTimeout": "60s", "MaxKeepAliveRequest": 100_000, "Workers": 1},
        config=service_config(services, ["hello"], folder),
        wrapper=wrap(out),
        env=env,
    )
    with server.connect() as client:
        ask_often(client, number)
    server.stop()
    return read_count(out)


def test_instructions_beside_a_service(serve, bare, tmp_path, record_property):
    """Hello through mk_server_handle() in a thread of the server, and hello of the framework."""
    assert shutil.which("valgrind"), "valgrind is not installed"
    shim = make_shim(tmp_path)
    service = (count_service(serve, tmp_path, shim, MANY) - count_service(serve, tmp_path, shim, FEW)) / (MANY - FEW)
    costs = {
        kind: (count_embedded(bare, tmp_path, shim, kind, MANY) - count_embedded(bare, tmp_path, shim, kind, FEW))
        / (MANY - FEW)
        for kind in ("threads", "caller")
    }
    print(f"user instructions of a hello: {service:.0f} of the framework, {costs} embedded")
    record_property("instructions", costs["threads"])
    assert service > 1000  # it was counted at all
    assert costs["threads"] <= RATIO_MAX * service


@pytest.mark.parametrize("kind", ["threads", "caller"])
def test_private_memory(bare, kind):
    """Of a server without connections, beyond the same program without a server."""
    for path in (bare, *(pathlib.Path(bare).parents[1].rglob("libmonkey.so*"))):
        with open(path, "rb") as file:  # what was just written is dirty in the page cache, and so are its mappings
            os.fsync(file.fileno())
    def measure(kind):
        with Program(bare, kind) as program:
            if kind != "empty":
                with Client(program.address) as client:
                    assert client.ask("/hello/").status == 200
            return program.private_dirty_kb()

    empty, used = (min(measure(each) for _ in range(3)) for each in ("empty", kind))
    print(f"private memory of an embedded server ({kind}): {used} KB, {empty} KB without it")
    assert used - empty <= PRIVATE_KB_MAX
