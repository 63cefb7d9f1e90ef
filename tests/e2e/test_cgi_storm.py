# SPDX-License-Identifier: Apache-2.0
"""Scripts that do what they should not, under load and over reloads: nothing of them is left, and others are served."""

import pytest

from harness import build
from harness.load import Asking
from harness.messages import request
from harness.scripts import HELLO, cgi_section, starters, wait_no_scripts, write_scripts
from harness.services import reload

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "cgi.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
    pytest.mark.concurrent,
]
HEAD = "printf 'Content-Type: a/b\\n\\n'\n"
SCRIPTS = {
    "hello": HELLO,
    "stubborn": f"#!/bin/sh\ntrap '' TERM\n{HEAD}echo begun\nwhile :; do sleep 1000; done\n",
    "forks": f"#!/bin/sh\nsleep 1000 &\nsleep 1000 &\n{HEAD}echo begun\nwait\n",
    "silent": "#!/bin/sh\nexec >&- 2>&-\nsleep 0.02\n",
    "garbage": "#!/bin/sh\nhead -c 200000 /dev/urandom\n",
    "errors": f"#!/bin/sh\nhead -c 100000 /dev/zero | tr '\\0' '\\n' >&2\n{HEAD}echo begun\nexit 3\n",
    "unread": f"#!/bin/sh\n{HEAD}exit 0\n",
}


TURNS = 8


@pytest.fixture
def server(serve, tmp_path):
    folder = write_scripts(tmp_path / "scripts", SCRIPTS)
    keys = {"MaxProcesses": 4, "Queue": 100, "QueueTimeout": "60s", "Timeout": "60s"}
    settings = {"Workers": 2, "MaxKeepAliveRequest": 0, "KeepAliveTimeout": "60s"}
    started = serve(settings, text=cgi_section(folder, **keys))
    started.baseline += 3  # sockets to the starter: of the process, and of the workers
    return started


@pytest.mark.load
def test_a_storm_of_scripts(server):
    """Each reload changes how many may run, and gives them other limits."""

    def hello(client):
        got = client.ask("/cgi/hello")
        assert (got.status, got.body) == (200, b"hello\n")

    def leave_each(client):
        del client
        for name in ("stubborn", "forks", "errors"):
            with server.connect(timeout=60) as one:
                one.send(request(f"/cgi/{name}"))
                one.until(b"begun")
                one.reset()

    def ask_each(client):
        del client
        for name, statuses in (("silent", {502}), ("garbage", {500, 502}), ("unread", {200})):
            with server.connect(timeout=60) as one:
                assert one.ask(f"/cgi/{name}", method="POST", body=b"x" * 100_000).status in statuses, name

    site = server.conf / "sites/default"
    before = site.read_text()
    with Asking(server, hello, leave_each, ask_each, count=6) as clients:
        for turn in range(TURNS):
            clients.await_answers(10)
            keys = f"MaxProcesses {5 + turn % 4}\n    Limits files={32 + turn}"
            site.write_text(before.replace("MaxProcesses 4", keys))
            reload(server)
    assert not clients.errors, clients.errors
    wait_no_scripts(server)
    with server.connect(timeout=60) as client:
        hello(client)
    assert len(starters(server)) == 1
