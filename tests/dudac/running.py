# SPDX-License-Identifier: Apache-2.0
"""Services and `dudac` for its tests: as a program that ends, and as one that serves."""

import http.client
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
from urllib.parse import urlsplit

from harness import build
from harness.server import REPORT

DUDAC = build.binary().parent / "dudac"
EXAMPLES = sorted(path for path in (build.TOP / "docs/examples/services").glob("*") if path.is_dir())
PYTHON = "/usr/bin/python3" if pathlib.Path("/usr/bin/python3").exists() else sys.executable
SECONDS = 60

SOURCE = """#include <duda/duda.h>

DUDA_REGISTER("test", "test");

static void say(duda_request_t *dr)
{
    response->printf(dr, "%s\\n", TEXT);
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/", say) ? 0 : -1;
}
"""


def make_source(text="one"):
    return SOURCE.replace("TEXT", f'"{text}"')


def make_folder(top, name="apple", files=None, text="one"):
    """A source folder; `files` is name to text, or a service that answers `text`."""
    folder = top / name
    for file, content in (files or {f"{name}.c": make_source(text)}).items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def environment(changes=None):
    """That of the caller without what changes dudac; a change to None removes a variable."""
    env = {key: value for key, value in build.environment().items()
           if key not in ("CC", "NO_COLOR", "NOTIFY_SOCKET") and not key.startswith("PYTHON")}
    env |= {"LC_ALL": "C.UTF-8", "TERM": "xterm"}  # the words of the compiler, and its colours
    for key, value in (changes or {}).items():
        env.pop(key, None)
        env.update({} if value is None else {key: str(value)})
    return env


def run_dudac(*arguments, program=DUDAC, cwd=None, env=None):
    """Runs `dudac` to its end."""
    return subprocess.run([PYTHON, "-B", str(program), *map(str, arguments)], cwd=cwd, env=environment(env), text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS * 2, check=False)


class Running:
    """`dudac run` as a process; its lines are read by a thread, so that tests wait for a line."""

    def __init__(self, *arguments, cwd=None, env=None, program=DUDAC, pass_fds=()):
        self.lines, self.news, self.ended = [], threading.Condition(), False
        self.process = subprocess.Popen(
            [PYTHON, "-B", "-u", str(program), *map(str, arguments)], cwd=cwd, env=environment(env),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True, pass_fds=pass_fds,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.rstrip("\n"))
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    @property
    def output(self):
        with self.news:
            return "\n".join(self.lines)

    def wait_line(self, pattern, count=1):
        """Waits until `count` lines match; returns the last of these matches."""
        def matches():
            return [match for match in map(re.compile(pattern).search, self.lines) if match]

        with self.news:
            self.news.wait_for(lambda: len(matches()) >= count or self.ended, SECONDS)
            found = matches()
        assert len(found) >= count, f"{count} x {pattern!r} not in the output:\n{self.output}"
        return found[count - 1]

    def wait_url(self, count=1):
        """The URL of the count-th version that was served."""
        return self.wait_line(r"^serving  (\S+)", count)[1]

    def server_pid(self):
        """The PID of the server, a child of dudac."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return next(int(pid) for pid in children if "monkey" in os.readlink(f"/proc/{pid}/exe"))

    def stop(self, number=signal.SIGINT):
        """Returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(SECONDS)
        self.reader.join(10)
        return status

    def end(self):
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process.stdout.close()
        assert not REPORT.search(self.output), self.output


def ask(url, path="", method="GET", headers=None):
    """Returns status and text of one request."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=SECONDS)
    try:
        connection.request(method, parts.path + path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()
