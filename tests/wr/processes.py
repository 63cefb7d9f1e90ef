# SPDX-License-Identifier: Apache-2.0
"""Programs for the tests of `wr`: a server that counts, processes of known consumption, and `wr` itself."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import urllib.request

from harness.server import await_true

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
BUILD = TOP / "build" / os.environ.get("MONKEY_PRESET", "asan") / "bin"
# Beside the programs of the build under test, which it finds there before those of another preset.
WR = next(path for path in (BUILD / "wr", TOP / "tools" / "wr" / "wr") if path.exists())
PYTHON = "/usr/bin/python3" if pathlib.Path("/usr/bin/python3").exists() else sys.executable


class SmallServer:
    """small_server.py as a process."""

    def __init__(self, *options):
        self.process = subprocess.Popen([PYTHON, str(HERE / "small_server.py"), *map(str, options)],
                                        stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}/"

    def count(self):
        with urllib.request.urlopen(self.url + "count", timeout=60) as answer:
            return int(answer.read())

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def small_server(*options):
    server = SmallServer(*options)
    try:
        yield server
    finally:
        server.end()


class Child:
    """A Python process that runs a text; it reads commands and answers them, line by line."""

    def __init__(self, text):
        self.process = subprocess.Popen([PYTHON, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def hear(self):
        return self.process.stdout.readline().strip()

    def tell(self, line="go"):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line="go"):
        self.tell(line)
        return self.hear()


@contextlib.contextmanager
def child(text):
    process = Child(text)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.wait()
        process.process.stdin.close()
        process.process.stdout.close()


def run_wr(*arguments, program=WR, cwd=None, path=None, timeout=300):
    """Runs `wr`; `path` is a folder before those of PATH."""
    env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"} if path else None
    return subprocess.run([PYTHON, str(program), *map(str, arguments)], cwd=cwd, env=env, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout, check=False)


def start_wr(*arguments, program=WR, cwd=None):
    """Starts `wr` in its own session, where SIGINT is not ignored."""
    return subprocess.Popen([PYTHON, str(program), *map(str, arguments)], cwd=cwd, text=True, start_new_session=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))


def wait_until(condition, seconds=30):
    """Returns the first true value of condition()."""
    return await_true(condition, seconds)


def descendants(pid):
    """The PIDs below a process, from /proc."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        if parent == pid:
            found += [int(folder.name), *descendants(int(folder.name))]
    return found
