# SPDX-License-Identifier: Apache-2.0
"""Makes the package of `wr` and the harness of the end-to-end tests importable, and Ctrl-C reach what tests start."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tools" / "wr"), str(HERE), str(HERE.parent / "e2e")]

from harness import inherited_signals  # noqa: E402

inherited_signals.restore()


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes a minute, or part of a product; run by ./dev test slow")
