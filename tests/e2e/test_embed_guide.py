# SPDX-License-Identifier: Apache-2.0
"""The guide to embedding: each of its programs is compiled, and each of its commands prints what the page says."""

import os
import re
import shutil
import subprocess

import pytest

from harness import build, embed
from harness.server import free_port

PAGE = build.TOP / "docs" / "guide" / "embed.md"
BLOCK = re.compile(r"^```(c|console)\n(.*?)^```", re.S | re.M)

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET == "small", reason="the small build has no library for programs"),
]


def steps():
    """The blocks below each heading."""
    for part in re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:]:
        blocks = BLOCK.findall(part)
        if blocks:
            yield part.split("\n", 1)[0], blocks


STEPS = dict(steps())


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return embed.install(tmp_path_factory.mktemp("prefix"))


@pytest.fixture
def environment(prefix, tmp_path):
    """In which the page's commands run: `cc` adds what the preset needs."""
    library = next(prefix.rglob("libmonkey.so")).parent
    compiler = tmp_path / "bin" / "cc"
    compiler.parent.mkdir()
    words = [shutil.which(embed.COMPILERS[".c"][0]), *embed.FLAGS, "-Wall", f"-Wl,-rpath,{library}"]
    compiler.write_text(f"#!/bin/sh\nexec {' '.join(words)} \"$@\"\n")
    compiler.chmod(0o755)
    return {
        **build.environment(),
        "PATH": f"{compiler.parent}:{os.environ['PATH']}",
        "PKG_CONFIG_PATH": str(next(prefix.rglob("monkey.pc")).parent),
    }


def run_console(block, folder, environment):
    """Runs the commands of a block in one shell, and compares all that they print."""
    rows = block.splitlines(keepends=True)
    script = "".join(row[2:] for row in rows if row.startswith("$ "))
    expected = "".join(row for row in rows if not row.startswith("$ "))
    script = f"trap 'kill $(jobs -p) 2>&- || true' EXIT\nset -e\n{script}"
    run = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )
    assert (run.stdout, run.stderr, run.returncode) == (expected, "", 0)


@pytest.mark.parametrize("step", STEPS)
def test_step(environment, prefix, step):
    folder, port = prefix / re.sub(r"\W", "-", step), str(free_port())
    folder.mkdir()  # next to lib/, where the program finds modules
    for kind, block in STEPS[step]:
        block = block.replace("2001", port)
        if kind == "c":
            name, text = re.match(r"// file: (\S+)\n(.*)", block, re.S).groups()
            (folder / name).write_text(text)
        else:
            run_console(block, folder, environment)


def test_there_are_steps():
    assert len(STEPS) == 4
