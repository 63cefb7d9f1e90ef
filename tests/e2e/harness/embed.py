# SPDX-License-Identifier: Apache-2.0
"""Programs that embed the server: compiled against what is installed, and run."""

import os
import pathlib
import re
import subprocess

import pytest

from . import build
from .protocol import Client

EXAMPLES = build.TOP / "docs" / "examples" / "embed"
PROGRAMS = build.TOP / "tests" / "embed"
FLAGS = {"asan": ["-fsanitize=address,undefined", "-g"], "tsan": ["-fsanitize=thread", "-g"]}.get(build.PRESET, ["-O2"])
COMPILERS = {".c": ["clang-14" if build.PRESET == "clang" else "cc", "-std=gnu17", "-Wmissing-prototypes"],
             ".cpp": ["clang++-14" if build.PRESET == "clang" else "c++", "-std=c++20"]}


def install(folder):
    """Installs what was built below a folder."""
    built = build.TOP / "build" / build.PRESET
    if not (built / "lib" / "libmonkey.so").exists():
        pytest.skip(f"the preset {build.PRESET} has no shared library")
    subprocess.run(["cmake", "--install", built, "--prefix", folder], check=True, capture_output=True)
    return folder


def pkg_config(prefix, *words):
    folder = next(pathlib.Path(prefix).rglob("monkey.pc")).parent
    environment = {**os.environ, "PKG_CONFIG_PATH": str(folder)}
    run = subprocess.run(["pkg-config", *words], env=environment, check=True, capture_output=True, text=True)
    return run.stdout.split()


def compile_program(prefix, folder, source, *packages, static=False):
    """Compiles folder/NAME; `static`: with libmonkey.a. Returns its path."""
    program = folder / source.stem
    library = next(pathlib.Path(prefix).rglob("libmonkey.so")).parent
    command = [*COMPILERS[source.suffix], "-Wall", "-Wextra", "-Werror", *FLAGS, source, "-o", program]
    command += pkg_config(prefix, *(["--static"] if static else []), "--cflags", "--libs", *packages, "monkey")
    command += ["-pthread"] if static else ["-pthread", f"-Wl,-rpath,{library}"]
    if static:
        command = [library / "libmonkey.a" if word == "-lmonkey" else word for word in command]
    subprocess.run(list(map(str, command)), check=True)
    return program


class Program:
    """A running example: it prints its URL, and ends with a line on stdin."""

    def __init__(self, *command, env=None):
        environment = {**build.environment(), **(env or {})}
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self.line = self.process.stdout.readline().decode()
        found = re.match(r"\w+://127\.0\.0\.1:(\d+)(/\S*)\n", self.line)
        assert found, self.line
        self.address, self.path = ("127.0.0.1", int(found[1])), found[2]

    def ask(self, path=None, *fields, **rest):
        with Client(self.address) as client:
            return client.ask(path or self.path, *fields, **rest)

    def private_dirty_kb(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(re.search(r"^Private_Dirty:\s+(\d+) kB", text, re.M)[1])

    def end(self):
        rest, _ = self.process.communicate(b"\n", timeout=60)
        assert self.process.returncode == 0
        assert rest == b""  # the library prints nothing

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        if kind:
            self.process.kill()
            self.process.communicate()
        else:
            self.end()
