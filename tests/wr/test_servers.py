# SPDX-License-Identifier: Apache-2.0
"""Servers as data: their files, what they are started with, and how they start, fail and end."""

import os
import pathlib
import signal
import sys
import tempfile
import time

import pytest
from harness.server import is_alive
from watch_resources import data, environment, servers, workloads
from watch_resources.checks import check_answers
from watch_resources.data import Problem

NAMES = data.list_names("servers")
MONKEY = pathlib.Path(__file__).parents[2] / "build" / os.environ.get("MONKEY_PRESET", "asan") / "bin" / "monkey"
WORKLOADS = {name: workloads.load_workload(name) for name in data.list_names("workloads")}
# Those that differ in what the servers have to do.
DIFFERENT = [WORKLOADS[name] for name in ("W1", "W1L", "W3z", "W4", "W5", "W7", "W8", "W8b", "W9", "W9b", "W9s", "W9t")]
SERVER = """
name = "own"
text = "own"
programs = ["python3"]
command = ["@program@", "@folder@/server.py", "@port@"]
[config]
"server.py" = '''
import signal, socket, subprocess, sys, time
@code@
'''
[values]
code = "CODE"
"""
LISTEN = "s = socket.create_server(('127.0.0.1', int(sys.argv[1])))"


@pytest.fixture(scope="module")
def root():
    """Readable for the users that servers change to, which pytest's folders are not."""
    with tempfile.TemporaryDirectory(prefix="wr-test-") as folder:
        os.chmod(folder, 0o755)
        environment.make_files(folder, 10_000)
        yield folder


@pytest.fixture
def work():
    with tempfile.TemporaryDirectory(prefix="wr-test-") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


@pytest.fixture(autouse=True)
def own_program(monkeypatch):
    monkeypatch.setattr(servers, "SYSTEM_PATH", servers.SYSTEM_PATH + ":" + os.path.dirname(sys.executable))


def make_own(tmp_path, root, code):
    path = tmp_path / "own.toml"
    path.write_text(SERVER.replace("CODE", code.replace('"', "'").replace("\n", "\\n")))
    return servers.Server(servers.parse_choice(str(path)), tmp_path / "own", root)


@pytest.mark.parametrize("name", NAMES)
def test_files_are_valid(name):
    kind = servers.load_kind(name)
    assert kind.name == name and kind.limit == name.startswith("limit-")


@pytest.mark.parametrize("name", data.list_names("workloads"))
def test_workloads_are_valid(name):
    assert WORKLOADS[name].name == name and name in workloads.read_contest()["workloads"]


@pytest.mark.parametrize("workload", DIFFERENT, ids=lambda workload: workload.name)
@pytest.mark.parametrize("name", [*(name for name in NAMES if not name.startswith("limit-")), "nginx+cache"])
def test_server_answers(work, root, name, workload):
    choice = servers.parse_choice(f"{name}={MONKEY}" if name == "monkey" else name)
    if not choice.program:
        pytest.skip(f"{name} is not installed")
    if reason := choice.kind.lacks(workload):
        pytest.skip(reason)
    server = servers.Server(choice.with_variants(workload.variants), work / name, root)
    server.start()
    try:
        check_answers(workload, server)
        assert any(letter.isdigit() for letter in server.version())
    finally:
        server.stop()
    assert not is_alive(server.pid)


def test_names_of_the_command_line(tmp_path):
    program = tmp_path / "monkey"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    choice = servers.parse_choice(f"base+log={program}")
    assert (choice.label, choice.kind.name, choice.variants, choice.program) == (
        "base+log", "monkey", ("log",), str(program))  # fmt: skip
    assert servers.parse_choice(f"nginx={program}").kind.name == "nginx"
    assert choice.with_variants(["tls", "log"]).label == "base+log+tls"


@pytest.mark.parametrize(
    "text, message",
    [
        ("ngnix", "there is no server ngnix: do you mean nginx"),
        ("nginx+tsl", r"nginx has no variant \+tsl; do you mean tls"),
        ("monkey=/no/such", "/no/such is no program"),
        ("base=/bin/true", "there is no server true"),
    ],
)
def test_mistakes_of_the_command_line(text, message):
    with pytest.raises(Problem, match=message):
        servers.parse_choice(text)


def test_placeholders_are_checked(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(SERVER.replace("@code@", "@cod@"))
    with pytest.raises(Problem, match=r"own.toml:7: config.server.py: @cod@ stands for nothing; do you mean code\?"):
        servers.load_kind(str(path))
    path.write_text(SERVER + '[variants.tls.values]\ncoed = ""\n')
    with pytest.raises(Problem, match=r"own.toml:14: variants.tls.values.coed: \[values\] has no such name"):
        servers.load_kind(str(path))


def test_a_server_that_is_not_installed():
    choice = servers.Choice("nginx", servers.load_kind("nginx"), (), "")
    with pytest.raises(Problem, match="nginx is not installed: install the Debian package nginx-light"):
        servers.Server(choice, "folder", "root")


def test_a_server_that_ends_at_once(tmp_path, root):
    server = make_own(tmp_path, root, 'print("bad luck", flush=True); sys.exit(3)')
    with pytest.raises(Problem, match=r"(?s)own does not start: it ended with status 3; .*server.py.*\n  bad luck"):
        server.start()


def test_a_server_that_does_not_listen(tmp_path, root, monkeypatch):
    monkeypatch.setattr(servers, "START_SECONDS", 0.5)
    server = make_own(tmp_path, root, "time.sleep(60)")
    with pytest.raises(Problem, match="own does not start: no answer on port"):
        server.start()
    assert not is_alive(server.pid)


def test_a_server_that_dies(tmp_path, root):
    server = make_own(tmp_path, root, LISTEN + '; print("ready", flush=True); time.sleep(60)')
    server.start()
    server.check_health()
    os.kill(server.pid, signal.SIGSEGV)
    server.process.wait(5)
    with pytest.raises(Problem, match=r"(?s)own died: signal SIGSEGV; .*\n  ready"):
        server.check_health()
    server.stop()


def test_workers_end_with_a_server_that_does_not_care(tmp_path, root, monkeypatch):
    """It ignores SIGTERM, and so does a process that it has started."""
    monkeypatch.setattr(servers, "STOP_SECONDS", 0.3)
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    child = "p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); "
    server = make_own(tmp_path, root, ignore + child + LISTEN + "; time.sleep(60)")
    server.start()
    worker = int(server.last_output()[0])
    assert is_alive(worker)
    server.stop()
    end = time.monotonic() + 5
    while is_alive(worker) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_alive(worker) and not is_alive(server.pid)


def test_a_server_ends_with_its_parent(tmp_path, root):
    pid_file, path = tmp_path / "pid", tmp_path / "own.toml"
    path.write_text(SERVER.replace("CODE", LISTEN + "; time.sleep(60)"))
    child = os.fork()
    if child == 0:
        server = servers.Server(servers.parse_choice(str(path)), tmp_path / "own", root)
        server.start()
        pid_file.write_text(str(server.pid))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    end = time.monotonic() + 5
    while is_alive(int(pid_file.read_text())) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_alive(int(pid_file.read_text()))


def test_a_wrong_answer_is_told(tmp_path, root):
    server = make_own(tmp_path, root, "")
    server.texts["server.py"] = (
        "import socket, sys\n" + LISTEN + "\nwhile True:\n  c = s.accept()[0]; c.recv(9999)\n"
        "  c.send(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nhi'); c.close()\n"
    )
    server.start()
    try:
        message = r"own answers W1 /13.txt with HTTP/1.1, status 200, 2 bytes.* instead of .*13 bytes"
        with pytest.raises(Problem, match=message):
            check_answers(WORKLOADS["W1"], server)
    finally:
        server.stop()


def test_one_cpu_is_told(monkeypatch):
    assert environment.choose_cpus([3], share=True) == (3, 3)
    with pytest.raises(Problem, match="this machine gives wr one CPU"):
        environment.choose_cpus([3])
    monkeypatch.setattr(environment, "read_siblings", lambda cpu: {0: {0, 1}, 2: {2, 3}}.get(cpu, {cpu}))
    assert environment.choose_cpus([0, 1, 2, 3]) == (0, 2)
    assert environment.choose_cpus([0, 1]) == (0, 1)
