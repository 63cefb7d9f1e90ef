# SPDX-License-Identifier: Apache-2.0
"""Makes the package of `wr` and the harness of the end-to-end tests importable, and Ctrl-C reach what tests start."""

import pathlib
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tools" / "wr"), str(HERE), str(HERE.parent / "e2e")]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background: programs would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes a minute, or part of a product; run by ./dev test slow")
