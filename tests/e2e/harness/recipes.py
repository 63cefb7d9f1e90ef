# SPDX-License-Identifier: Apache-2.0
"""Recipes of the guide: configurations and programs as they stand in its pages, below a folder of the test and at free
ports."""

import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess

import pytest

from . import build
from .server import Server, await_true, free_port, run

PAGE = build.TOP / "docs/guide/recipes.md"
BLOCK = re.compile(r"^```\w+\n(?:#|//|<!--) file: (\S+)(?: -->)?\n(.*?)^```", re.S | re.M)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.S | re.M)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.M)
PARTS = dict(part.split("\n", 1) for part in re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:])
PORT = re.compile(r"\b(?:3000|4873|80[0-9][0-9]|8888|9090)\b")
START_SECONDS = 120
INSTALL_SECONDS = 900
OFFLINE = re.compile(r"ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|ECONNRESET|NewConnectionError")  # npm and pip


class Recipe:
    """A section of the page. Files of the server are in conf, those of the program in app; /srv, /run and
    /var/lib are folders of the test, too."""

    def __init__(self, folder, heading):
        self.folder, self.heading, self.ports = folder, heading, {}
        self.processes, self.server, self.replaced = [], None, {}
        for name in ("srv", "run", "var/lib", "app"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def port(self, written="8000"):
        return self.ports.setdefault(written, free_port())

    def translate(self, text):
        for written, here in self.replaced.items():
            text = text.replace(written, here)
        text = text.replace("Listen          2001", "Listen 127.0.0.1:0")
        text = PORT.sub(lambda found: str(self.port(found[0])), text)
        return re.sub(r"(?<![\w/}])/(srv|run|var/lib)/", rf"{self.folder}/\1/", text)

    def path(self, name):
        """Where a file of a section is: a name with a slash before it is one of another folder."""
        if name.startswith("/"):
            return pathlib.Path(self.translate(name))
        is_conf = name == "monkey.conf" or name.startswith(("sites/", "plugins/"))
        return self.folder / ("conf" if is_conf else "app") / name

    def write(self):
        blocks = {"monkey.conf": dict(BLOCK.findall(next(iter(PARTS.values()))))["monkey.conf"]}
        for name, text in (blocks | dict(BLOCK.findall(PARTS[self.heading]))).items():
            path = self.path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.translate(text))
            if text.startswith("#!"):
                path.chmod(0o755)
        return self.folder / "conf"

    def commands(self):
        """Those of the section's consoles: what prepares it, and the program as the last one."""
        text = "\n".join(CONSOLE.findall(PARTS[self.heading]))
        return [self.translate(found.replace("\\\n", " ")) for found in COMMAND.findall(text)]

    def run_command(self, command, **environment):
        """Runs one to its end. A registry that cannot be reached is a reason to skip the test."""
        done = subprocess.run(["/bin/sh", "-c", command], cwd=self.folder / "app", capture_output=True, text=True,
                              env={**self.environment(), **environment}, timeout=INSTALL_SECONDS)  # fmt: skip
        if done.returncode != 0 and re.match(r"npm |\S*pip", command) and OFFLINE.search(done.stderr):
            pytest.skip(f"the registry cannot be reached: {command}")
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def environment(self):
        return {**os.environ, "HOME": str(self.folder), "NO_UPDATE_NOTIFIER": "1"}

    def spawn(self, command, port="8000", path=None, **environment):
        """Starts a program, and waits until it accepts connections. Each is a process group."""
        log = self.folder / f"program{len(self.processes)}.log"
        with log.open("w") as output:
            process = subprocess.Popen(shlex.split(command), cwd=self.folder / "app", stdout=output, stderr=output,
                                       stdin=subprocess.DEVNULL, start_new_session=True,
                                       env={**self.environment(), **environment})  # fmt: skip
        self.processes.append(process)

        def accepts():
            assert process.poll() is None, log.read_text()
            with socket.socket(socket.AF_UNIX if path else socket.AF_INET) as probe:
                return probe.connect_ex(str(path) if path else ("127.0.0.1", self.port(port))) == 0

        await_true(accepts, START_SECONDS, f"the start of {command}")
        return process

    def serve(self):
        conf = self.write()
        checked = run("-c", conf, "-t")
        assert (checked.returncode, checked.stderr) == (0, "monkey: the configuration is fine\n"), checked.stderr
        self.server = Server("-c", conf)
        return self.server

    def stop(self):
        if self.server:
            self.server.stop()
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def needs_plugins(*names):
    missing = [name for name in names if not (build.PLUGINS / f"{name}.so").exists()]
    return pytest.mark.skipif(bool(missing), reason=f"this preset has no plugin {missing}")
