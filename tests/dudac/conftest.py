# SPDX-License-Identifier: Apache-2.0
"""Makes the package of `dudac` and the harness of the end-to-end tests importable."""

import pathlib
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tools" / "dudac"), str(HERE), str(HERE.parent / "e2e")]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background: programs would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

import pytest  # noqa: E402
from running import Running  # noqa: E402


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
