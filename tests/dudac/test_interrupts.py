# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, SIGTERM and SIGHUP in each phase: no process and no temporary file is left, and the exit status tells."""

import contextlib
import ctypes
import itertools
import os
import pathlib
import queue
import signal
import sys
import threading

import pytest
from dudac.events import Events
from dudac.interrupts import Interrupt, await_files, install_handlers, interruptible
from dudac.new import make_service

from harness.server import await_true, is_alive
from running import SECONDS, make_folder, make_source, run_dudac

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
# One handler serves all: where a test has each of them for one command, the others have one.
ONE_SIGNAL = [SIGNALS[0], *(pytest.param(*each, marks=pytest.mark.slow) for each in SIGNALS[1:])]
CHECKS = '[[check]]\nget = "/"\n'
# A compiler that never ends, with a child that has its output open and ignores SIGTERM.
HANGING = '#!/bin/sh\n(trap "" TERM; echo $$ >PIDS.new; exec sleep 1000) &\necho $! >>PIDS\necho $$ >>PIDS\nwait\n'
# Holds each request, and creates a file when the first one comes.
SILENT = """#include <duda/duda.h>
#include <stdio.h>

static void hold(duda_request_t *dr)
{
    response->wait(dr);
    fclose(fopen("ASKED", "w"));
}

int duda_main(void)
{
    return router->get("/", hold) ? 0 : -1;
}
"""
PYTEST = """import pathlib, subprocess, pytest


@pytest.fixture
def child():
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


def test_it(child):
    pathlib.Path("PIDS").write_text(f"{child.pid}\\n")
    child.wait()
"""


def read_pids(path, count):
    """Waits until so many processes have written their numbers."""
    def numbers():
        return [int(word) for word in path.read_text().split()] if path.exists() else []

    return await_true(lambda: len(numbers()) >= count and numbers(), SECONDS)


def list_left(folder):
    """What is left in the build folder of a run or of a link."""
    return sorted(path.name for pattern in ("run-*", "*.new", "*.copy") for path in (folder / "build").glob(pattern))


def make_compiler(tmp_path):
    """Returns the compiler, and the file with the numbers of its processes."""
    path = tmp_path / "hanging"
    path.write_text(HANGING.replace("PIDS", str(tmp_path / "pids")))
    path.chmod(0o755)
    return path, tmp_path / "pids"


COMMANDS = ["build"], ["run", "-p", 0], ["run", "--watch", "-p", 0], ["test"], ["routes"]
HANGS = [pytest.param(words, *each, marks=[pytest.mark.slow] * (row > 0 and row % 3 != column),
                      id="-".join(map(str, [*words, each[0].name])))
         for row, words in enumerate(COMMANDS) for column, each in enumerate(SIGNALS)]


@pytest.mark.parametrize("command, number, status", HANGS)
def test_while_a_compiler_hangs(tmp_path, start, command, number, status):
    folder = make_folder(tmp_path, files={"apple.c": make_source(), "checks.toml": CHECKS})
    compiler, pids = make_compiler(tmp_path)
    program = start(*command, folder, env={"CC": compiler})
    processes = read_pids(pids, 2)
    assert program.stop(number) == status and not list_left(folder)
    await_true(lambda: not any(map(is_alive, processes)))
    assert "Traceback" not in program.output


def test_while_a_linker_hangs(tmp_path, start):
    folder, pids = make_folder(tmp_path), tmp_path / "pids"
    compiler = tmp_path / "linker"
    compiler.write_text(f'#!/bin/sh\ncase " $* " in *" -c "*) exec gcc "$@" ;; esac\n'
                        f'for last; do :; done\necho part >"$last"\necho $$ >>{pids}\nexec sleep 1000\n')
    compiler.chmod(0o755)
    program = start("build", folder, env={"CC": compiler})
    [process] = read_pids(pids, 1)
    assert program.stop(signal.SIGTERM) == 143
    assert not is_alive(process) and not list_left(folder) and not (folder / "build/apple.duda").exists()


def test_what_has_compiled_before_is_kept(tmp_path, start):
    files = {"a.c": make_source(), "b.c": "int hang;\n"}
    folder, pids = make_folder(tmp_path, files=files), tmp_path / "pids"
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\ncase " $* " in *" b.c "*) ;; *) exec gcc "$@" ;; esac\n'
                        f'while ! [ -s {folder}/build/obj/apple/a.c.cmd ]; do sleep 0.01; done\n'
                        f'echo $$ >>{pids}\nexec sleep 1000\n')
    compiler.chmod(0o755)
    program = start("build", folder, env={"CC": compiler})
    read_pids(pids, 1)
    assert program.stop() == 130
    (folder / "b.c").unlink()
    done = run_dudac("build", folder, env={"CC": compiler})
    assert done.returncode == 0 and "compile  " not in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("number, status", ONE_SIGNAL)
def test_while_a_makefile_runs_a_command(tmp_path, start, number, status):
    pids = tmp_path / "pids"
    text = f"NAME = pear\nCFLAGS = $(shell sh -c 'echo $$$$ >>{pids}; exec sleep 1000'; true)\n"
    program = start("build", make_folder(tmp_path, files={"Makefile.in": text, "a.c": make_source()}))
    processes = read_pids(pids, 1)
    assert program.stop(number) == status
    await_true(lambda: not any(map(is_alive, processes)))


@pytest.mark.parametrize("number, status", ONE_SIGNAL)
def test_while_a_check_waits(tmp_path, start, number, status):
    asked = tmp_path / "asked"
    folder = make_folder(tmp_path, files={"apple.c": SILENT.replace("ASKED", str(asked)), "checks.toml": CHECKS})
    program = start("test", folder)
    await_true(asked.exists, SECONDS)
    server = program.server_pid()
    assert program.stop(number) == status and not is_alive(server) and not list_left(folder)


@pytest.mark.parametrize("number, status", ONE_SIGNAL)
def test_while_pytest_runs(tmp_path, start, number, status):
    """Its fixtures end what they have started."""
    pids = tmp_path / "pids"
    files = {"apple.c": make_source(), "test_apple.py": PYTEST.replace("PIDS", str(pids))}
    folder = make_folder(tmp_path, files=files)
    program = start("test", folder)
    processes = [*read_pids(pids, 1), program.server_pid()]
    assert program.stop(number) == status and not list_left(folder)
    await_true(lambda: not any(map(is_alive, processes)))


@pytest.mark.parametrize("number, status", ONE_SIGNAL)
def test_while_it_waits_for_a_change(tmp_path, start, number, status):
    pytest.importorskip("watchdog", reason="NOT TESTED: no python3-watchdog here")
    folder = make_folder(tmp_path)
    program = start("run", folder, "--watch", "-p", 0)
    program.wait_url()
    server = program.server_pid()
    assert program.stop(number) == status and not is_alive(server) and not list_left(folder)


@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize("number, status", ONE_SIGNAL)
def test_while_a_service_blocks_in_its_start(tmp_path, start, number, status, ignores):
    """SIGTERM ends the server, unless the service ignores it: then it is killed."""
    began = tmp_path / "began"
    first = "signal(SIGTERM, SIG_IGN);\n    " if ignores else ""
    source = "#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\n" + make_source().replace(
        "return router", f'{first}fclose(fopen("{began}", "w"));\n    for (;;)\n        pause();\n    return router')
    folder = make_folder(tmp_path, files={"apple.c": source})
    program = start("run", folder, "-p", 0)
    await_true(began.exists, SECONDS)
    server = program.server_pid()
    assert program.stop(number) == status and not is_alive(server) and not list_left(folder)
    how = "did not end after SIGTERM, and was killed" if ignores else r"has ended: SIGTERM \(Terminated\)"
    program.wait_line(f"^dudac: the server {how}")


def test_while_it_waits_for_another_build(tmp_path, start):
    folder = make_folder(tmp_path)
    compiler, pids = make_compiler(tmp_path)
    first = start("build", folder, env={"CC": compiler})
    read_pids(pids, 2)
    second = start("build", folder)
    second.wait_line("^dudac: waiting for another dudac, which builds in ")
    assert second.stop() == 130
    third = start("build", folder)
    third.wait_line("^dudac: waiting for another dudac")
    first.stop()
    third.wait_line("built in")
    assert third.process.wait(SECONDS) == 0


def test_what_a_service_has_started_ends_with_it(tmp_path, start):
    """Also if the server crashes while that has the server's log open."""
    pids = tmp_path / "pids"
    source = make_source().replace("#include <duda/duda.h>", "#include <duda/duda.h>\n#include <stdlib.h>").replace(
        "return router", f'if (system("sleep 1000 & echo $! >>{pids}"))\n        return -1;\n    return router')
    program = start("run", make_folder(tmp_path, files={"apple.c": source}), "-p", 0)
    program.wait_url()
    [child] = read_pids(pids, 1)
    assert is_alive(child)
    os.kill(program.server_pid(), signal.SIGKILL)
    assert program.process.wait(SECONDS) == 1
    program.wait_line("^dudac: the server has ended: SIGKILL")
    await_true(lambda: not is_alive(child))


# ── several signals ──


# Blocks in duda_exit() until the file exists, and says so by another one.
SLOW_END = "#include <stdio.h>\n#include <unistd.h>\n" + make_source() + """
void duda_exit(void)
{
    fclose(fopen("ENDS", "w"));
    while (access("MAY_END", F_OK) != 0)
        usleep(1000);
}
"""


def list_threads(pid):
    try:
        return [int(path.name) for path in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def storm(program, first=0):
    """Signals to each thread, the main one last, until the program has ended. Returns its exit status."""
    tgkill = ctypes.CDLL(None, use_errno=True).tgkill
    for number, _ in itertools.cycle([*SIGNALS[first:], *SIGNALS[:first]]):
        for thread in sorted(list_threads(program.process.pid), reverse=True):
            tgkill(program.process.pid, thread, number)
        if program.process.poll() is not None:
            return program.stop()


@pytest.mark.parametrize("command", [["run"], ["run", "--watch"]])
@pytest.mark.parametrize("numbers", [(signal.SIGINT, signal.SIGTERM), (signal.SIGHUP,)])
def test_signals_that_another_thread_gets(tmp_path, start, command, numbers):
    """The kernel gives a signal to another thread if one waits for the main thread already."""
    pytest.importorskip("watchdog", reason="NOT TESTED: no python3-watchdog here")
    folder = make_folder(tmp_path)
    program = start(*command, folder, "-p", 0)
    program.wait_url()
    server = program.server_pid()
    thread = max(list_threads(program.process.pid))
    for number in numbers:
        ctypes.CDLL(None).tgkill(program.process.pid, thread, number)
    program.reader.join(SECONDS)
    assert program.stop() == 128 + numbers[0]
    assert not is_alive(server) and not list_left(folder) and "Traceback" not in program.output


def prepare_compiling(tmp_path, start):
    compiler, pids = make_compiler(tmp_path)
    program = start("build", make_folder(tmp_path), env={"CC": compiler})
    return program, read_pids(pids, 2)


def prepare_starting(tmp_path, start):
    source = "#include <stdio.h>\n#include <unistd.h>\n" + make_source().replace(
        "return router", f'fclose(fopen("{tmp_path}/began", "w"));\n    for (;;)\n        pause();\n    return router')
    program = start("run", make_folder(tmp_path, files={"apple.c": source}), "-p", 0)
    await_true((tmp_path / "began").exists, SECONDS)
    return program, [program.server_pid()]


def prepare_serving(tmp_path, start):
    program = start("run", make_folder(tmp_path), "-p", 0)
    program.wait_url()
    return program, [program.server_pid()]


def prepare_ending(tmp_path, start):
    source = SLOW_END.replace("MAY_END", str(tmp_path / "may_end")).replace("ENDS", str(tmp_path / "ends"))
    program = start("run", make_folder(tmp_path, files={"apple.c": source}), "-p", 0)
    program.wait_url()
    server = program.server_pid()
    program.process.send_signal(signal.SIGINT)
    await_true((tmp_path / "ends").exists, SECONDS)
    (tmp_path / "may_end").touch()
    return program, [server]


def prepare_checking(tmp_path, start):
    asked = tmp_path / "asked"
    files = {"apple.c": SILENT.replace("ASKED", str(asked)), "checks.toml": CHECKS}
    program = start("test", make_folder(tmp_path, files=files))
    await_true(asked.exists, SECONDS)
    return program, [program.server_pid()]


def prepare_testing(tmp_path, start):
    pids = tmp_path / "pids"
    files = {"apple.c": make_source(), "test_apple.py": PYTEST.replace("PIDS", str(pids))}
    program = start("test", make_folder(tmp_path, files=files))
    return program, [*read_pids(pids, 1), program.server_pid()]


@pytest.mark.parametrize("prepare", [prepare_compiling, prepare_starting, prepare_serving, prepare_ending,
                                     prepare_checking, prepare_testing])
def test_any_number_of_signals(tmp_path, start, prepare):
    """To all threads, until dudac has ended: it leaves no process and no file, and fails nowhere."""
    program, processes = prepare(tmp_path, start)
    assert storm(program) in [status for _, status in SIGNALS]
    assert not list_left(tmp_path / "apple") and "Traceback" not in program.output, program.output
    await_true(lambda: not any(map(is_alive, processes)))


# ── dudac new ──


@pytest.mark.parametrize("exists", [False, True])
def test_a_new_folder_is_removed_if_it_is_not_whole(tmp_path, monkeypatch, exists):
    folder = tmp_path / "a/b/apple"
    if exists:
        folder.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    from dudac import new

    write = new.write_file

    def write_one(path, data, made):
        write(path, data, made)
        if path.name == "checks.toml":
            sys.exit(143)  # as a signal does

    monkeypatch.setattr(new, "write_file", write_one)
    with pytest.raises(SystemExit):
        make_service(str(folder), "hello")
    assert sorted(tmp_path.rglob("*")) == before


# ── the module ──


@pytest.fixture
def handlers(monkeypatch):
    """Those of the tests come back."""
    before = {number: signal.getsignal(number) for number, _ in SIGNALS}
    for field, value in (("number", 0), ("was_raised", False), ("wakeups", ())):
        monkeypatch.setattr(Interrupt, field, value)
    yield
    file = signal.set_wakeup_fd(-1)
    for each in (file, *Interrupt.wakeups):
        os.close(each)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number, status", SIGNALS)
def test_the_next_wait_raises_once(handlers, number, status):
    install_handlers()
    os.kill(os.getpid(), number)
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SystemExit) as error:
        await_files()
    assert error.value.code == status
    os.kill(os.getpid(), number)
    assert await_files(seconds=0) == []


def test_the_end_of_what_waits_is_not_interrupted(handlers):
    install_handlers()
    steps = []
    with pytest.raises(SystemExit):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("before the wait")
            await_files()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            steps.append(await_files(seconds=0))
    assert steps == ["before the wait", []]


@pytest.mark.parametrize("wait", [await_files, Events().get])
def test_a_signal_of_another_thread_ends_the_wait(handlers, wait):
    """The kernel may choose any thread, and the wait of the main thread is not interrupted then."""
    install_handlers()

    def send():
        for number, _ in SIGNALS:
            signal.pthread_kill(threading.get_ident(), number)

    thread = threading.Thread(target=send)
    thread.start()
    with pytest.raises(SystemExit):
        wait()
    thread.join()


def test_a_signal_ends_what_blocks(handlers):
    install_handlers()
    reader, writer = os.pipe()
    with contextlib.ExitStack() as stack:
        for file in (reader, writer):
            stack.callback(os.close, file)
        timer = threading.Timer(0, signal.pthread_kill, (threading.get_ident(), signal.SIGTERM))
        timer.start()
        with pytest.raises(SystemExit), interruptible():
            os.read(reader, 1)
        timer.join()


def test_events_that_always_come_do_not_hide_a_signal(handlers):
    install_handlers()
    events = Events()
    events.put(("line", "a"))
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(SystemExit):
        events.get()
    assert events.get() == ("line", "a")
    with pytest.raises(queue.Empty):
        events.get(0)


def test_nohup_is_kept(handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    install_handlers()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_an_interrupt_while_python_starts(tmp_path):
    """Before main(): not a traceback, but the exit status."""
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = run_dudac("--version", env={"PYTHONPATH": tmp_path})
    assert (done.returncode, done.stderr) == (130, "")
