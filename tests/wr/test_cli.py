# SPDX-License-Identifier: Apache-2.0
"""`wr` as a user runs it: rounds, Ctrl-C and --resume, mistakes; with a program in wr-load's place."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from processes import HERE, PYTHON, WR, descendants, run_wr, small_server, start_wr, wait_until
from watch_resources.results import Server, Session, Workload, read_results

QUIET = "--others-max", "100"  # the machine's own noise is not under test
HEADINGS = "clients req/s user s system s CPU µs/req PSS KB dirty KB p50 µs p99 µs marks"


@pytest.fixture(scope="module")
def wr(tmp_path_factory):
    """A folder with `wr` and, next to it, the program that replaces wr-load."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "wr").symlink_to(WR)
    (folder / "wr-load").symlink_to(HERE / "fake_load.py")
    return folder / "wr"


def run(wr, *arguments, **rest):
    return run_wr(*arguments, program=wr, **rest)


@contextlib.contextmanager
def sleeper():
    """The PID of a process that does nothing."""
    process = subprocess.Popen(["sleep", "60"])
    try:
        wait_until(lambda: command_of(process.pid).startswith("sleep"))
        yield process.pid
    finally:
        process.kill()
        process.wait()


def rows_of(text):
    """The rows of the table, as lists of words."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.split() == HEADINGS.split())
    return [line.split() for line in lines[first + 1:lines.index("", first)]]


def test_rounds_of_growing_concurrency(wr, tmp_path):
    path = tmp_path / "r.jsonl"
    with small_server() as server:
        done = run(wr, "-p", server.pid, "-u", server.url, "-c", "1:5:2", "-n", 50, "-k", "-o", path, *QUIET)
        assert server.count() == 150
    assert (done.returncode, done.stderr) == (0, "")
    assert [row[0] for row in rows_of(done.stdout)] == ["1", "3", "5"]
    assert re.search(r"^rounds: 3$", done.stdout, re.M)
    assert re.search(r"^CPU µs per request, median: [\d.]+ \(from", done.stdout, re.M)
    assert done.stdout.endswith(f"results: {path}\n")
    results = read_results(str(path))
    session, described, workload = (results.of(kind)[0] for kind in (Session, Server, Workload))
    assert session.settings["clients"] == [1, 3, 5] and session.machine["kernel"] == os.uname().release
    assert session.command[1:3] == ["-p", str(server.pid)]
    assert session.tools["wr-load"] == "1.0-fake"
    assert described.command[-1].endswith("small_server.py")
    assert "keep-alive, 50 requests a round" in workload.text
    assert [(each.n, each.clients, each.answers) for each in results.rounds] == [(1, 1, 50), (2, 3, 50), (3, 5, 50)]


def test_the_row_says_what_the_file_says(wr, tmp_path):
    with small_server() as server:
        done = run(wr, "rounds", "-p", server.pid, "-u", server.url, "-c", 2, "-n", 50, "-o", "r", *QUIET, cwd=tmp_path)
    row, result = rows_of(done.stdout)[0], read_results(str(tmp_path / "r")).rounds[0]
    assert row[:2] == ["2", f"{result.rps:,.0f}"]
    assert row[4:] == [f"{result.cost_us['total']:.2f}", f"{result.memory_kb['pss_mean']:,}",
                       f"{result.memory_kb['dirty_mean']:,}", "2", "5"]
    assert "--close" in result.generator["command"]


def test_a_duration_and_a_file_named_after_the_time(wr, tmp_path):
    with small_server() as server:
        done = run(wr, "-p", server.pid, "-u", server.url, "-c", 2, "-d", "0.3", "--warm-up", "0.2", *QUIET,
                   cwd=tmp_path)
    file, = tmp_path.glob("wr-*.jsonl")
    assert done.returncode == 0
    result, = read_results(str(file)).rounds
    assert 0.29 < result.seconds < 3


def test_marks_are_explained(wr, tmp_path):
    with small_server() as server:
        done = run(wr, "-p", server.pid, "-u", server.url + "missing", "-c", 2, "-n", 20, "-o", "r", "--repeats", 1,
                   "--others-max", 0, cwd=tmp_path)
    # others may use nothing at all: not one machine is that quiet for long, but one round may be
    assert all("errors" in row for row in rows_of(done.stdout))
    assert "errors: some answers were wrong" in done.stdout


def interrupt_at_round(process, path, count):
    wait_until(lambda: path.exists() and len(read_results(str(path)).rounds) >= count)
    wait_until(lambda: any("fake_load" in command_of(pid) or "wr-load" in command_of(pid)
                           for pid in descendants(process.pid)))
    below = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    return below


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def test_ctrl_c_keeps_what_was_measured_and_resume_continues(wr, tmp_path):
    path = tmp_path / "r.jsonl"
    with small_server() as server:
        options = "-p", server.pid, "-u", server.url, "-c", "1,2,3,4", "-d", "0.7", *QUIET
        process = start_wr(*options, "-o", path, program=wr)
        below = interrupt_at_round(process, path, 2)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 130
        assert [row[0] for row in rows_of(out)] == ["1", "2"]
        assert "rounds: 2" in out and f"results: {path}" in out and err == ""
        assert below and not any(command_of(pid) for pid in below)
        before = path.read_text()

        other = run(wr, "-p", server.pid, "-c", "1,2", "--resume", path)
        assert (other.returncode, path.read_text()) == (1, before)
        assert "was measured with clients = (1, 2, 3, 4), not (1, 2)" in other.stderr

        with sleeper() as pid:
            other = run(wr, "-p", pid, "--resume", path)
        assert (other.returncode, path.read_text()) == (1, before)
        assert f"was measured with the server python3, and PID {pid} is sleep" in other.stderr

        with open(path, "a", encoding="ascii") as file:
            file.write('{"type": "round", "n": 3, "torn')
        done = run(wr, "-p", server.pid, "--resume", path, *QUIET)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row[0] for row in rows_of(done.stdout)] == ["3", "4"]
    assert "rounds: 4" in done.stdout
    results = read_results(str(path))
    assert path.read_text().startswith(before)
    assert [(each.n, each.clients) for each in results.rounds] == [(1, 1), (2, 2), (3, 3), (4, 4)]
    first, second = results.of(Session)
    assert (second.resumes, second.settings) == (first.id, first.settings)


def test_sigterm_ends_what_was_started(wr, tmp_path):
    path = tmp_path / "r.jsonl"
    with small_server() as server:
        process = start_wr("-p", server.pid, "-u", server.url, "-c", "1,2,3", "-d", "1", "-o", path, *QUIET, program=wr)
        wait_until(lambda: path.exists() and read_results(str(path)).rounds)
        below = wait_until(lambda: [pid for pid in descendants(process.pid) if "wr-load" in command_of(pid)])
        process.terminate()
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 143 and "rounds: 1" in out
    assert not any(command_of(pid) for pid in below)


def test_a_complete_file_is_not_measured_again(wr, tmp_path):
    with small_server() as server:
        options = "-p", server.pid, "-u", server.url, "-c", "1", "-n", "5", *QUIET
        run(wr, *options, "-o", "r", cwd=tmp_path)
        done = run(wr, *options, "--resume", "r", cwd=tmp_path)
        assert server.count() == 5
    assert done.returncode == 0 and "rounds: 1" in done.stdout


def test_a_server_that_dies_keeps_the_rounds_before(wr, tmp_path):
    path = tmp_path / "r.jsonl"
    with small_server("--die-after", 70) as server:
        done = run(wr, "-p", server.pid, "-u", server.url, "-c", "1:9", "-n", 30, "-o", path, *QUIET)
    assert done.returncode == 1
    assert [row[0] for row in rows_of(done.stdout)] == ["1", "2"]
    assert "rounds: 2" in done.stdout
    assert re.fullmatch(r"wr: the server \(PID \d+, python3\) ended during the round with 3 clients\n", done.stderr)
    assert len(read_results(str(path)).rounds) == 2


def test_a_server_that_hangs_is_reported(wr, tmp_path):
    with small_server("--hang-after", 40) as server:
        done = run(wr, "-p", server.pid, "-u", server.url, "-c", "1,2", "-n", 30, "-o", "r", "--stall", "2", *QUIET,
                   cwd=tmp_path)
    assert done.returncode == 1
    assert "hangs: in the round with 2 clients it used no CPU time for 2 s" in done.stderr
    assert "rounds: 1" in done.stdout


def test_a_process_that_does_not_listen_is_a_warning(wr, tmp_path):
    with small_server() as server:
        done = run(wr, "-p", os.getpid(), "-u", server.url, "-c", 1, "-n", 5, "-o", "r", *QUIET, cwd=tmp_path)
        # the server is a child of this process, and so in its tree
        assert (done.returncode, done.stderr) == (0, "")
        with sleeper() as pid:
            done = run(wr, "-p", pid, "-u", server.url, "-c", 1, "-n", 5, "-o", "s", *QUIET, cwd=tmp_path)
    assert f"(PID {pid}, sleep) does not listen on port {server.port}; PID {server.pid} (python3) does" in done.stderr


@pytest.mark.parametrize("options, status, said", [
    (["-p", "4194305"], 1, "there is no process with PID 4194305"),
    (["-p", "0"], 2, "'-p' / '--pid'"),
    (["-u", "http://192.0.2.1/"], 1, "confirm with --remote-ok"),
    (["-u", "nonsense"], 1, "nonsense is no URL of a server"),
    (["-c", "9:1"], 1, "-c 9:1: 9:1 needs 1 <= FROM <= TO"),
    (["-d", "1"], 2, "give either -n or -d"),
    (["-g", "siege"], 1, "there is no generator siege"),
    (["-o", "/"], 2, "is a directory"),
    (["-o", "/nowhere/r"], 1, "/nowhere/r: No such file or directory"),
    (["--resume", "missing"], 1, "missing: No such file or directory"),
    (["--resume", "a", "-o", "b"], 2, "leave out -o"),
    (["-g", "ab", "--pipeline", "4"], 1, "ab does not pipeline"),
])
def test_mistakes(wr, tmp_path, options, status, said):
    with small_server() as server:
        given = {"-p": server.pid, "-u": server.url, "-c": 1, "-n": 5, "-o": "r"}
        if "--resume" in options:
            given.pop("-o")
        given.update(zip(options[::2], options[1::2]))
        if "ab" in options:
            (tmp_path / "ab").symlink_to(HERE / "fake_load.py")
        done = run(wr, *(word for pair in given.items() for word in pair), cwd=tmp_path, path=tmp_path)
        assert server.count() == 0
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*r*.jsonl"))


@pytest.mark.parametrize("left_out, said", [("-u", "-u URL is missing"), ("-c", "-c CLIENTS is missing"),
                                            ("-p", "Missing option '-p'")])
def test_missing_options(wr, left_out, said):
    given = {"-p": os.getpid(), "-u": "http://localhost/", "-c": 1}
    del given[left_out]
    done = run(wr, *(word for pair in given.items() for word in pair))
    assert done.returncode == 2 and said in done.stderr


def test_a_file_is_not_written_over(wr, tmp_path):
    (tmp_path / "r").write_text('{"type": "pair"}\n')
    with small_server() as server:
        done = run(wr, "-p", server.pid, "-u", server.url, "-c", 1, "-n", 5, "-o", "r", cwd=tmp_path)
    assert done.returncode == 1 and "r exists: give another file" in done.stderr


def test_help_and_version(wr):
    assert run(wr, "--version").stdout.startswith("wr 1.")
    for words in (["--help"], ["rounds", "-h"], ["watch", "-h"]):
        assert run(wr, *words).stdout.startswith("Usage: wr")
    assert "No such command" in run(wr, "roundz").stderr


def test_progress_on_a_terminal(wr, tmp_path):
    with small_server() as server:
        output = on_terminal(wr, tmp_path, "-p", server.pid, "-u", server.url, "-c", "1,2", "-d", "0.6", "-o", "r",
                             *QUIET)
    assert "round 1 of 2, 1 clients" in output and "round 2 of 2, 2 clients" in output
    assert re.search(r"server \d+% CPU, PSS [\d,]+ KB", output)
    assert "rounds: 2" in output


def on_terminal(wr, folder, *arguments):
    main, other = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "140", "LINES": "40"}
    process = subprocess.Popen([PYTHON, str(wr), *map(str, arguments)], stdin=other, stdout=other, stderr=other,
                               cwd=folder, env=env)
    os.close(other)
    data, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([main], [], [], 0.1)[0]:
            try:
                data += os.read(main, 65536)
            except OSError:
                break
        elif process.poll() is not None:
            break
    assert process.wait(timeout=60) == 0
    os.close(main)
    return data.decode(errors="replace")


def test_each_line_of_the_file_is_json_with_a_type(wr, tmp_path):
    with small_server() as server:
        run(wr, "-p", server.pid, "-u", server.url, "-c", 1, "-n", 5, "-o", "r", *QUIET, cwd=tmp_path)
    types = [json.loads(line)["type"] for line in (tmp_path / "r").read_text().splitlines()]
    assert types == ["session", "server", "workload", "round"]
