# SPDX-License-Identifier: Apache-2.0
"""Makes the package of `dudac` and the harness of the end-to-end tests importable."""

import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tools" / "dudac"), str(HERE), str(HERE.parent / "e2e")]

import pytest  # noqa: E402
from harness import inherited_signals  # noqa: E402
from harness.redis import Redis  # noqa: E402
from running import Running  # noqa: E402

inherited_signals.restore()


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes a minute, or part of a product; ./dev test leaves it to --full")


@pytest.fixture
def start():
    """Starts `dudac`, and ends it after the test."""
    programs = []

    def begin(*arguments, **rest):
        programs.append(Running(*arguments, **rest))
        return programs[-1]

    yield begin
    for program in programs:
        program.end()


@pytest.fixture
def servers(tmp_path):
    """Starts what examples need, by their names; returns the environment that tells them where it is."""
    made = []

    def start(name):
        if name != "16-redis" or not shutil.which("redis-server"):
            return None
        made.append(Redis(tmp_path / "redis"))
        return {"REDIS_ADDRESS": made[-1].address}

    yield start
    for one in made:
        one.kill()
