# SPDX-License-Identifier: Apache-2.0
"""What the tests promise their user: no process is left behind, and each failed step of ./dev test is named."""

import collections
import contextlib
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys

import pytest

from harness import build, scripts
from harness.server import await_true, is_alive

pytestmark = pytest.mark.single_protocol
E2E = pathlib.Path(__file__).parent
ALONE = {"PYTHONPATH": str(E2E), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins need half a second

# A test that leaves a server, a supervised one, a daemon and a successor behind.
CARELESS = """
import pathlib, signal, threading
from harness.chain import Chain
from harness.server import Server, await_true, run, write_config

def test_it(tmp_path):
    (tmp_path / "root").mkdir()
    pids = []
    pids.append(Server("-c", write_config(tmp_path / "a", tmp_path / "root")).pid)
    supervised = Server("-c", write_config(tmp_path / "b", tmp_path / "root"), "--supervise")
    pids += [supervised.pid, int(supervised.wait_log(r"supervisor: process (\\d+) serves")[0][1])]
    run("-D", "-c", write_config(tmp_path / "c", tmp_path / "root", {"PidFile": tmp_path / "pid"}))
    pids.append(int((tmp_path / "pid").read_text()))
    chain = Chain(tmp_path)
    chain.upgrade()
    chain.await_old()
    pids.append(chain.pids[-1])
    pathlib.Path("PIDS.new").write_text(" ".join(map(str, pids)))
    pathlib.Path("PIDS.new").rename("PIDS")
    if "WAITS":
        threading.Event().wait()
    assert False
"""


@pytest.mark.parametrize(
    "number, parallel",
    [
        (None, 1),
        (signal.SIGTERM, 0),
        (signal.SIGKILL, 1),
        pytest.param(None, 0, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 1, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, 0, marks=pytest.mark.slow),
    ],
)
def test_no_server_is_left_behind(tmp_path, number, parallel):
    """By a run whose test fails, and by a run that is killed."""
    test, list_of_pids = tmp_path / "test_careless.py", tmp_path / "pids"
    test.write_text(CARELESS.replace("PIDS", str(list_of_pids)).replace("WAITS", "yes" if number else ""))
    options = ["-p", "xdist.plugin", "-p", "harness.orphans", "-p", "no:cacheprovider", "-n", str(parallel)]
    options.append(f"--basetemp={tmp_path / 'base'}")  # pytest closes the folder of all runs to others
    pytest_of_it = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, test],
        env={**os.environ, **ALONE},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    pids = []
    try:
        await_true(list_of_pids.exists, 120, "the start of the servers")
        pids = list(map(int, list_of_pids.read_text().split()))
        if number:
            assert len(pids) == 5 and all(map(is_alive, pids))
            pytest_of_it.send_signal(number)
        assert pytest_of_it.wait(120) == (-number if number else 1)
        await_true(lambda: not any(map(is_alive, pids)), 60, "the end of all servers")
    finally:
        for pid in [*pids, pytest_of_it.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        pytest_of_it.wait()


def test_processes_that_end_while_they_are_listed():
    """Linux answers ESRCH for files in /proc of a process that ends after its folder was found."""
    shell = subprocess.Popen(["sh", "-c", "while :; do (:); done"])
    try:
        assert any([scripts.children(shell.pid) for _ in range(5000)])
    finally:
        shell.kill()
        shell.wait()


# ── products of parameters ──

PRODUCTS = """
import pytest
ways = pytest.mark.parametrize("way", ["h1", "h2", "h1-tls", "h2-tls"])

@ways
@pytest.mark.parametrize("size", [{"n": n} for n in range(8)], ids=range(8))
def test_sizes(way, size):
    pass

@ways
def test_ways(way):
    pass

@pytest.mark.parametrize("a", range(3))
@pytest.mark.parametrize("b", range(3))
def test_others(a, b):
    pass
"""


def test_a_product_with_ways_runs_in_part(tmp_path):
    """Each other value is in it once, each way as often as the others, and the rest is slow."""
    test = tmp_path / "test_products.py"
    test.write_text(PRODUCTS)

    def collect(*options):
        command = [sys.executable, "-m", "pytest", "-p", "harness.products", "-p", "no:cacheprovider", "-q"]
        done = subprocess.run(
            [*command, "--collect-only", *options, test],
            env={**os.environ, **ALONE},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=280,
        )
        return [row.partition("::")[2] for row in done.stdout.splitlines() if "::" in row]

    assert len(collect()) == 8 * 4 + 4 + 9
    rows = collect("-m", "not slow")
    sizes = [re.fullmatch(r"test_sizes\[(\d+)-(.*)\]", row).groups() for row in rows if row.startswith("test_sizes")]
    assert sorted(size for size, _ in sizes) == list("01234567")
    assert collections.Counter(way for _, way in sizes) == {"h1": 2, "h2": 2, "h1-tls": 2, "h2-tls": 2}
    assert sum(row.startswith("test_ways") for row in rows) == 1
    assert len(rows) == 8 + 1 + 9


# ── ./dev test ──

STUBS = {  # commands that ./dev calls, with what they do here
    "cmake": "exit 0",
    "sync": "exit 0",
    "getconf": "echo 1",
    "dpkg-query": "printf installed",
    "setarch": "exit 1",
    "ctest": 'case "$*" in *asan*) echo "1 tests failed, 0 tests passed"; exit 8 ;; esac; echo "100% tests passed"',
}


DEFAULT_STEPS = ["lint", "build, asan", "build, release and small", "unit tests and seeds, asan", "end to end, asan",
                 "wr and dudac, asan", "budgets, release and small"]


def make_executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def copy_dev(tmp_path):
    """Copies ./dev into a tree of small tests, whose commands do next to nothing: copy_dev({path: text})."""

    def make(files, fails=False):
        shutil.copy(build.TOP / "dev", tmp_path / "dev")
        compiled = pathlib.Path(os.environ.get("PYTHONPYCACHEPREFIX", build.TOP / "build/pycache"), "usr")
        if compiled.exists():  # pytest and its plugins, which would be compiled once more
            (tmp_path / "build/pycache").mkdir(parents=True)
            (tmp_path / "build/pycache/usr").symlink_to(compiled)
        for name, text in STUBS.items():
            make_executable(tmp_path / "bin" / name, text if fails or name != "ctest" else "echo 100% tests passed")
        for path, text in {"tests/lint/lint_test.py": "def test_it(): pass", **files}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text + "\n")
        # pytest closes the folder of all runs to others
        return {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "PYTEST_DEBUG_TEMPROOT": str(tmp_path)}

    return make


@pytest.mark.slow
@pytest.mark.parametrize("breaks", [True, False])
def test_all_steps_run_and_each_failed_one_is_named(tmp_path, copy_dev, breaks):
    code, failing = ("raise SystemExit(1)", "assert False") if breaks else ("", "pass")
    environment = copy_dev({
        "tests/lint/check.py": code,
        "tests/wr/test_it.py": f"import pytest\n@pytest.mark.parametrize('n', range(40))\ndef test_it(n): {failing}",
        "tests/dudac/test_it.py": "def test_it(): pass",
        "tests/e2e/test_it.py": "import pytest\n"
        f"def test_good(): pass\n@pytest.mark.budget\ndef test_bad(): {failing}\n",
    }, fails=breaks)
    done = subprocess.run(
        [tmp_path / "dev", "test", "tests/e2e/test_it.py"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    ran = [row.removeprefix("==> ") for row in done.stdout.splitlines() if row.startswith("==> ")]
    assert ran[:-1] == ["packages", *DEFAULT_STEPS], done.stdout
    summary = done.stdout.rpartition("==> ")[2].splitlines()
    assert len(summary) < 24
    for step in DEFAULT_STEPS:
        assert any(re.match(rf"  {step} +\d+ s", row) for row in summary), done.stdout
    if breaks:
        assert done.returncode == 1
        named = [row.strip() for row in done.stderr.rpartition("failed steps:")[2].splitlines()]
        expected = ["lint", "unit tests and seeds, asan", "tools", "budgets"]
        assert [name for name in named if name] == expected
        assert any("FAILED tests/e2e/test_it.py::test_bad" in row for row in summary)
        assert sum("FAILED tests/wr/test_it.py::test_it" in row for row in summary) == 5
        assert "      and 35 more" in summary
    else:
        assert done.returncode == 0, done.stdout + done.stderr
        assert ran[-1] == "everything passed"


@pytest.mark.slow
def test_an_interrupt_ends_the_tests_that_run_beside(tmp_path, copy_dev):
    """They are in another session, which Ctrl-C does not reach."""
    pid_file = tmp_path / "pid"
    write = f"pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))"
    environment = copy_dev({
        "tests/lint/check.py": "",
        "tests/wr/test_it.py": f"import os, pathlib, time\ndef test_it(): {write}; time.sleep(280)",
        "tests/dudac/test_it.py": "def test_it(): pass",
        "tests/e2e/test_it.py": "import time\ndef test_it(): time.sleep(280)",
    })
    dev = subprocess.Popen([tmp_path / "dev", "test"], env=environment, start_new_session=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await_true(lambda: pid_file.exists() and pid_file.read_text(), 120, "the start of the tests of wr")
        os.killpg(dev.pid, signal.SIGINT)
        assert dev.wait(60) == 130
        await_true(lambda: not is_alive(int(pid_file.read_text())), 60, "the end of the tests of wr")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(dev.pid, signal.SIGKILL)


def test_words():
    """Each word of `./dev test` has steps; `--full` has all of them, and `--turn` one, by the commit."""
    text = (build.TOP / "dev").read_text()
    words = ["tools", "budgets", *re.search(r"^words='(.*)'$", text, re.M)[1].split()]
    steps = re.search(r"^steps_of\(\).*?^}$", text, re.M | re.S)[0]
    assert re.findall(r"^    ([a-z0-9]+)\)", steps, re.M) == words
    turns = re.search(r"^word_of_commit\(\).*?set -- ([a-z0-9 ]+)$", text, re.M | re.S)[1].split()
    assert set(turns) < set(words)
    contributing = (build.TOP / "CONTRIBUTING.md").read_text()
    assert all(f"`{word}`" in contributing for word in words)
