# SPDX-License-Identifier: Apache-2.0
"""Processes that scripts start end with them, whatever their parent, group and session are by then."""

import os

import pytest

from harness import build
from harness.protocol import request
from harness.scripts import HELLO, PYTHON, cgi_section, children, starters, wait_no_scripts, write_scripts
from harness.server import await_true

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "cgi.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]
DAEMON = f"""exec {PYTHON} -c '
import os, time
if os.fork(): time.sleep(1000)
os.setsid()
if os.fork(): os._exit(0)
open("left.new", "w").write(str(os.getpid())); os.rename("left.new", "left")
os.chdir("/"); os.closerange(0, 3)
time.sleep(1000)'"""
NOTE = "echo $$ > left.new; mv left.new left;"
QUIET = "</dev/null >/dev/null 2>&1"
# each leaves a process, and its number in the file `left`; the script itself continues
WAYS = {
    "group": f"timeout 1000 sh -c '{NOTE} exec sleep 1000' {QUIET}",
    "session": f"setsid sh -c '{NOTE} exec sleep 1000' {QUIET} & wait",
    "orphan": f"setsid -f sh -c '{NOTE} exec sleep 1000' {QUIET}; exec sleep 1000",
    "daemon": DAEMON,
    "environment": f"env -i setsid -f /bin/sh -c '{NOTE} exec sleep 1000' {QUIET}; exec sleep 1000",
    "stubborn": f"setsid -f sh -c 'trap \"\" TERM; {NOTE} while :; do sleep 1000; done' {QUIET}; exec sleep 1000",
    "script-too": f"trap '' TERM; setsid -f sh -c '{NOTE} exec sleep 1000' {QUIET}; while :; do sleep 1000; done",
    "chain": f"{NOTE} f='setsid -f sh -c \"$0\" \"$0\"'; sh -c \"$f\" \"$f\" {QUIET}; exec sleep 1000",
    # and one that ends
    "leaves": f"setsid -f sh -c '{NOTE} exec sleep 1000' {QUIET}",
}
STAYING = [name for name in WAYS if name != "leaves"]


@pytest.fixture
def cgi(serve, tmp_path):
    def start(settings=None, **keys):
        texts = {name: f"#!/bin/sh\nprintf 'Content-Type: a/b\\n\\n'\n{text}\n" for name, text in WAYS.items()}
        folder = write_scripts(tmp_path / "scripts", {"hello": HELLO, **texts})
        server = serve(settings or {"Workers": 2}, text=cgi_section(folder, **keys))
        server.scripts = folder
        server.baseline += 3  # sockets to the starter
        return server

    return start


def begin(server, client, name):
    """Runs a script until its process is there; returns its number."""
    client.send(request(f"/cgi/{name}"))
    client.head()
    await_true((server.scripts / "left").exists, what="the process")
    left = int((server.scripts / "left").read_text())
    (server.scripts / "left").unlink()
    return left


def ask(server, target):
    with server.connect() as client:
        return client.ask(target)


def wait_gone(pid):
    await_true(lambda: not os.path.exists(f"/proc/{pid}"), what="its end")


@pytest.mark.parametrize("name", STAYING)
def test_timeout(cgi, name):
    server = cgi(Timeout="3s")
    with server.connect() as client:
        left = begin(server, client, name)
        client.rest()
    wait_gone(left)
    wait_no_scripts(server)


@pytest.mark.parametrize("name", STAYING)
def test_client_that_leaves(cgi, name):
    server = cgi()
    with server.connect() as client:
        left = begin(server, client, name)
    wait_gone(left)
    wait_no_scripts(server)


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("name", STAYING)
def test_end_of_the_server(cgi, name, end):
    server = cgi({"Workers": 2, "ShutdownTimeout": "100ms"})
    with server.connect() as client:
        left = begin(server, client, name)
        processes = children(server.pid)
        getattr(server, end)()
        server.wait()
    for pid in (left, *processes):
        wait_gone(pid)


def test_others_continue(cgi):
    """Those of another script, and of one that has ended by itself."""
    server = cgi()
    with server.connect() as first, server.connect() as second:
        ended, stays = begin(server, first, "orphan"), begin(server, second, "orphan")
        first.close()
        wait_gone(ended)
        assert os.path.exists(f"/proc/{stays}")
    wait_gone(stays)


def test_process_of_a_script_that_has_ended(cgi):
    """It holds neither the response nor a place, and continues until the server ends."""
    server = cgi({"Workers": 1}, MaxProcesses=1)
    with server.connect() as client:
        left = begin(server, client, "leaves")
    with server.connect() as client:
        assert client.ask("/cgi/hello").status == 200
    assert os.path.exists(f"/proc/{left}")
    server.stop()
    wait_gone(left)


def kill_starter(server):
    (starter,) = starters(server)
    os.kill(starter, 9)
    await_true(lambda: not children(server.pid), what="the end of the starter")


@pytest.mark.parametrize("is_replaced", [True, False])
def test_starter_that_is_killed(cgi, is_replaced):
    """What its scripts have left ends with the next starter, or else with the server."""
    server = cgi()
    with server.connect() as client:
        left = begin(server, client, "orphan")
        kill_starter(server)
        client.assert_gone()
    assert os.path.exists(f"/proc/{left}")
    if is_replaced:
        await_true(lambda: ask(server, "/cgi/hello").status == 200, what="another starter")
    else:
        server.stop()
    wait_gone(left)


def test_real_time_limit(serve, tmp_path):
    """A limit of the service manager for the server does not keep it from finding descendants."""
    text = f"#!/bin/sh\nprintf 'Content-Type: a/b\\n\\n'\n{WAYS['orphan']}\n"
    folder = write_scripts(tmp_path / "scripts", {"orphan": text})
    limit = ["prlimit", "--rttime=60000000:60000000", "--"]
    server = serve({"Workers": 1}, text=cgi_section(folder, Timeout="3s"), wrapper=limit)
    server.scripts = folder
    server.baseline += 3
    with server.connect() as client:
        left = begin(server, client, "orphan")
        client.rest()
    wait_gone(left)
