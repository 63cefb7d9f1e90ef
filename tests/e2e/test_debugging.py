# SPDX-License-Identifier: Apache-2.0
"""The gdb commands and breakpoints of docs/guide/debugging.md, applied to a running server."""

import re
import shutil
import subprocess

import pytest

from harness import build

pytestmark = pytest.mark.single_protocol
PAGE = (build.TOP / "docs" / "guide" / "debugging.md").read_text()
HELPERS = re.search(r"```\n(define monkey-request\n.*?)```", PAGE, re.S)[1]
BREAKPOINTS = re.findall(r"`([^`]+)`", re.search(r"Useful breakpoints: (.*?)\. ", PAGE, re.S)[1])


@pytest.fixture
def gdb(tmp_path):
    """Runs commands of gdb in a running process, after the page's; without gdb the test is skipped."""
    if not shutil.which("gdb"):
        pytest.skip("gdb is not installed")
    if build.OPTIMISED:
        pytest.skip(f"the preset {build.PRESET} has no symbols")
    script = tmp_path / "monkey.gdb"
    script.write_text(HELPERS)

    def run(pid, *commands):
        words = ["gdb", "-nx", "-batch", "-p", str(pid), "-x", script]
        for command in commands:
            words += ["-ex", command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=240)
        if "ptrace: Operation not permitted" in done.stderr:
            pytest.skip("this system does not let gdb attach")
        return done.stdout + done.stderr

    return run


def worker_commands(*commands):
    """A thread is found by its name here: its number depends on the plugins."""
    return ("python gdb.execute('thread %d' % next(t.num for t in "
            "gdb.selected_inferior().threads() if t.name == 'monkey: w0'))", "frame function run_thread", *commands)


def test_the_page_prints_connections(serve, gdb):
    patient = {"KeepAliveTimeout": "10m", "SendTimeout": "10m"}  # gdb takes its time
    server = serve({"LogLevel": "debug", **patient}, files={"big.bin": b"b" * 8_000_000, "small.txt": b"small"})
    idle, busy, streams = server.connect(), server.connect(rcvbuf=4096), server.connect_h2(credit=False)
    idle.ask("/small.txt")
    busy.send(b"GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n")
    busy.exactly(100)
    streams.head(streams.begin("/big.bin"))
    server.wait_log("to write$")
    server.wait_log("to streams$")
    output = gdb(server.pid, *worker_commands("monkey-connections ctx"))
    assert re.search(r"^connection \d+: idle, 1 requests$", output, re.M), output
    assert re.search(r"^connection \d+: write, 1 requests\n  request \"/big.bin\", status 200, [1-9]\d* bytes sent, "
                     r"\d+ queued, response state 1$", output, re.M), output
    assert re.search(r"^connection \d+: streams, 1 requests\n  stream 1: \w+\n  request \"/big.bin\", status 200, "
                     r"[1-9]\d* bytes sent, \d+ queued, response state 1$", output, re.M), output
    assert "Error" not in output and "No symbol" not in output and "There is no member" not in output, output


def test_the_page_prints_accounts_and_generations(serve, gdb):
    server = serve()
    expressions = re.findall(r"^\(gdb\) (print .*)$", PAGE, re.M)
    assert expressions
    output = gdb(server.pid, *worker_commands(*expressions))
    assert len(re.findall(r"^\$\d+ = ", output, re.M)) == len(expressions), output


def test_the_breakpoints_of_the_page_exist(serve, gdb):
    server = serve()
    assert len(BREAKPOINTS) > 2
    output = gdb(server.pid, *(f"break {name}" for name in BREAKPOINTS))
    assert len(re.findall(r"^Breakpoint \d+ at 0x", output, re.M)) == len(BREAKPOINTS), output
