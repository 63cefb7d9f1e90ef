# SPDX-License-Identifier: Apache-2.0
"""The walk of docs/guide/protect.md: its files are written, its commands run, and what they print is compared."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess

import pytest

from harness import build
from harness.server import await_true, free_port

PAGE = build.TOP / "docs/guide/protect.md"
BLOCK = re.compile(r"^```(conf|console)\n(.*?)^```", re.S | re.M)
MODULES = build.binary().parent.parent / "lib" / "monkey"
IN_USE = "the new configuration is in use"

pytestmark = pytest.mark.skipif(
    not all((MODULES / f"{name}.so").exists() for name in ("auth", "dirlisting", "mandril")),
    reason=f"the preset {build.PRESET} does not build all plugins of the walk",
)


class Walk:
    """The page's steps below a folder of the test's own, at a port of its own."""

    def __init__(self, folder):
        self.folder, self.port, self.reloads = folder, free_port(), 0
        self.env = {**build.environment(), "PATH": f"{build.binary().parent}:{os.environ['PATH']}"}

    @property
    def log(self):
        path = self.folder / "share/error.log"
        return path.read_text() if path.exists() else ""

    def translate(self, text):
        text = text.replace("Listen          2001", f"Listen          127.0.0.1:{self.port}")
        text = text.replace("localhost:2001", f"127.0.0.1:{self.port}").replace(":2001", f":{self.port}")
        return text.replace("/srv/", f"{self.folder}/")

    def write(self, block):
        name, text = re.match(r"# file: (\S+)\n(.*)", block, re.S).groups()
        (self.folder / "share" / name).write_text(self.translate(text))

    def run(self, command, expected):
        command = self.translate(command)
        done = subprocess.run(command, shell=True, env=self.env, capture_output=True, text=True, timeout=60)
        printed = (done.stdout + done.stderr).replace("\r", "")
        pattern = ".*".join(map(re.escape, self.translate(expected).split("...")))
        assert re.fullmatch(pattern, printed), f"{command}\n{printed}\n{self.log}"
        if "kill -HUP" in command:
            self.reloads += 1
            await_true(lambda: self.log.count(IN_USE) == self.reloads, 20, "the reload")

    def stop(self):
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((self.folder / "share/monkey.pid").read_text()), signal.SIGKILL)


@pytest.fixture
def walk(tmp_path):
    one = Walk(tmp_path)
    yield one
    one.stop()


def test_every_step(walk):
    for kind, text in BLOCK.findall(PAGE.read_text()):
        if kind == "conf":
            walk.write(text)
            continue
        for step in re.split(r"^\$ ", text, flags=re.M)[1:]:
            walk.run(*step.split("\n", 1))
    await_true(lambda: not pathlib.Path(walk.folder / "share/monkey.pid").exists(), 20, "the end of the server")
    assert "Sanitizer" not in walk.log
