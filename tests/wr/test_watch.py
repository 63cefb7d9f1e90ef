# SPDX-License-Identifier: Apache-2.0
"""The live view: its figures, plain rows, and a terminal in which q and Ctrl-C end it."""

import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from processes import PYTHON, WR, child, run_wr, small_server, wait_until
from watch_resources.proc import Counters, Memory, Sample, TcpCounts
from watch_resources.watch import COLUMNS, Frame, Watcher, format_value, make_frame, plain_row, render, sparkline

S = 10**9


def test_a_frame_is_rates():
    first = Sample(0, Counters(1 * S, 10, 10, 5, 0, 100, 10), Memory(1, 1), 1, 1, 5)
    last = Sample(2 * S, Counters(2 * S, 40, 20, 25, 2, 300, 20), Memory(2000, 1000), 4, 2, 9)
    frame = make_frame(first, last, 3, TcpCounts(1, 5), TcpCounts(4, 5))
    assert frame == Frame(
        seconds=2, user_share=0.375, system_share=0.125, pss_kb=2000, dirty_kb=1000, processes=2, threads=4,
        voluntary=100, involuntary=5, minor_faults=10, major_faults=1, descriptors=9, queue=3, drops=3, retransmits=0)
    assert plain_row(frame).split() == [
        "37.5%", "12.5%", "2,000", "1,000", "2", "4", "100", "5", "10", "1", "9", "3", "3", "0"]


def test_what_may_not_be_read_is_a_dash():
    sample = Sample(0, Counters(), None, 1, 1, None)
    frame = make_frame(sample, sample, None, TcpCounts(), TcpCounts())
    assert [format_value(frame, name) for name in ("pss_kb", "dirty_kb", "descriptors", "queue")] == ["-"] * 4
    assert render("title", [frame]).row_count == len(COLUMNS)


def test_sparklines():
    assert sparkline([0, 1, 2, 4, 7, 8]) == "▁▂▃▅██"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


def test_frames_of_a_process_that_burns_cpu_time():
    with child("print('ready', flush=True)\nwhile True: pass") as process:
        process.hear()
        frames = Watcher(process.pid, interval=0.3).frames()
        frame = next(frames)
        assert 0 < frame.user_share + frame.system_share < 1.2  # a loaded machine gives it less than a CPU
        assert frame.seconds >= 0.3
        process.process.kill()
        process.process.wait()
        assert list(frames) == []


def test_the_port_is_found():
    with small_server() as server:
        assert Watcher(server.pid).port == server.port
    with child("print('ready', flush=True)\ninput()") as process:
        process.hear()
        assert Watcher(process.pid).port is None


def test_plain_rows():
    with small_server() as server:
        done = run_wr("watch", server.pid, "--count", 3, "--interval", 0.1)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 4
    assert all(re.match(r" *[\d.]+% +[\d.]+% +[\d,]+ +[\d,]+ +1 +1 ", line) for line in lines[1:])


def test_the_end_of_the_process_ends_it():
    with small_server() as server:
        process = subprocess.Popen([PYTHON, str(WR), "watch", str(server.pid), "--interval", "0.2"], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        process.stdout.readline()
        process.stdout.readline()
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and out.endswith(f"PID {server.pid} (python3) has ended\n")


def test_a_wrong_pid():
    done = run_wr("watch", 4194305)
    assert (done.returncode, done.stderr) == (1, "wr: there is no process with PID 4194305\n")


@pytest.mark.parametrize("ends_with, status", [("q", 0), ("ctrl-c", 130), ("the process", 0)])
def test_the_live_view_ends(ends_with, status):
    with small_server() as server:
        main, other = pty.openpty()
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
        process = subprocess.Popen([PYTHON, str(WR), "watch", str(server.pid), "--interval", "0.2"], stdin=other,
                                   stdout=other, stderr=other, env=env, start_new_session=True)
        screen = Screen(main)
        wait_until(lambda: "accept queue" in screen.read())
        if ends_with == "q":
            os.write(main, b"q")
        elif ends_with == "ctrl-c":
            process.send_signal(signal.SIGINT)
        else:
            server.process.kill()
        wait_until(lambda: screen.read() and process.poll() is not None)
        assert process.returncode == status
        assert "\x1b[?25h" in screen.read()  # the cursor is shown again
        for heading, _ in COLUMNS.values():
            assert heading in screen.text
    os.close(main)
    os.close(other)


def test_the_name_of_a_process_is_no_markup():
    """A process chooses its name."""
    text = "import ctypes; ctypes.CDLL(None).prctl(15, b'[/x]\\x1b[31m'); print('ready', flush=True); input()"
    with child(text) as process:
        process.hear()
        main, other = pty.openpty()
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40", "NO_COLOR": "1"}
        watching = subprocess.Popen([PYTHON, str(WR), "watch", str(process.pid), "--interval", "0.1", "--count", "1"],
                                    stdin=other, stdout=other, stderr=other, env=env, start_new_session=True)
        screen = Screen(main)
        wait_until(lambda: screen.read() and watching.poll() is not None)
        assert watching.returncode == 0 and "[/x]" in screen.read() and "\x1b[31m" not in screen.text, screen.text
    os.close(main)
    os.close(other)


class Screen:
    """What a terminal was sent."""

    def __init__(self, fd):
        self.fd, self.text = fd, ""

    def read(self):
        end = time.monotonic() + 0.1
        while time.monotonic() < end and select.select([self.fd], [], [], 0.02)[0]:
            self.text += os.read(self.fd, 65536).decode(errors="replace")
        return self.text
