# SPDX-License-Identifier: Apache-2.0
"""Hostile clients of servers that several threads of a program start and stop: tests/embed/attack.c."""

import subprocess

import pytest

from harness import build, embed
from harness.embed import PROGRAMS

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.concurrent,
    pytest.mark.skipif(build.PRESET == "small", reason="the small build has no library for programs"),
]

ROUNDS = {"threads": 20, "caller": 10, "plugins": 10, "closed": 5, "few": 5}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    prefix = embed.install(tmp_path_factory.mktemp("prefix"))
    return embed.compile_program(prefix, prefix, PROGRAMS / "attack.c")  # next to lib/, where it finds modules


@pytest.mark.parametrize("kind", ROUNDS)
def test_attack(program, kind):
    """Friendly clients are answered, each connection ends with its server, and nothing is left or written."""
    run = subprocess.run(
        [program, str(ROUNDS[kind]), kind], capture_output=True, timeout=500, text=True, env=build.environment()
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
