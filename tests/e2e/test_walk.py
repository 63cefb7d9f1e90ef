# SPDX-License-Identifier: Apache-2.0
"""The walks of the guide: their files are written, their commands run, and what they print is compared."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess

import pytest

from harness import build
from harness.server import await_true, free_port

pytestmark = pytest.mark.single_protocol

GUIDE = build.TOP / "docs/guide"
# Each page with its folder below /srv, and the plugins that it needs.
WALKS = {
    "protect": ("share", ("auth", "dirlisting", "mandril")),
    "questions": ("questions", ("cheetah", "headers", "logger", "mandril", "proxy")),
    "slow": ("slow", ("cheetah", "duda", "status")),
}
BLOCK = re.compile(r"^```(conf|console|c)\n(.*?)^```", re.S | re.M)
MODULES = build.binary().parent.parent / "lib" / "monkey"
IN_USE = "the new configuration is in use"


class Walk:
    """The page's steps below a folder of the test's own, at its own port."""

    def __init__(self, folder, name):
        self.folder, self.name, self.port, self.reloads = folder, name, free_port(), 0
        self.env = {**build.environment(), "PATH": f"{build.binary().parent}:{os.environ['PATH']}"}

    @property
    def log(self):
        path = self.folder / self.name / "error.log"
        return path.read_text() if path.exists() else ""

    def translate(self, text):
        text = text.replace("Listen          2001", f"Listen          127.0.0.1:{self.port}")
        text = text.replace("localhost:2001", f"127.0.0.1:{self.port}").replace(":2001", f":{self.port}")
        text = text.replace("Listen 2001", f"Listen 127.0.0.1:{self.port}")
        return text.replace("/srv/", f"{self.folder}/")

    def write(self, block):
        name, text = re.match(r"(?:#|//) file: (\S+)\n(.*)", block, re.S).groups()
        path = self.folder / self.name / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.translate(text))

    def pid_file(self):
        return self.folder / self.name / "monkey.pid"

    def run(self, command, expected):
        command = self.translate(command)
        done = subprocess.run(command, shell=True, env=self.env, capture_output=True, text=True, timeout=120)
        printed = (done.stdout + done.stderr).replace("\r", "")
        pattern = ".*".join(map(re.escape, self.translate(expected).split("...")))
        assert re.fullmatch(pattern, printed), f"{command}\n{printed}\n{self.log}"
        if command.startswith("export "):
            name, value = command.split()[1].split("=")
            self.env[name] = value
        if "kill -HUP" in command:
            self.reloads += 1
            await_true(lambda: self.log.count(IN_USE) == self.reloads, 60, "the reload")

    def stop(self):
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(self.pid_file().read_text()), signal.SIGKILL)


@pytest.fixture(params=WALKS)
def walk(request, tmp_path):
    name, plugins = WALKS[request.param]
    if not all((MODULES / f"{plugin}.so").exists() for plugin in plugins):
        pytest.skip(f"the preset {build.PRESET} does not build all plugins of the walk")
    one = Walk(tmp_path, name)
    one.page = (GUIDE / f"{request.param}.md").read_text()
    yield one
    one.stop()


def test_every_step(walk):
    for kind, text in BLOCK.findall(walk.page):
        if kind != "console":
            walk.write(text)
            continue
        for step in re.split(r"^\$ ", text, flags=re.M)[1:]:
            walk.run(*step.split("\n", 1))
    await_true(lambda: not walk.pid_file().exists(), 60, "the end of the server")
    assert "Sanitizer" not in walk.log
