# SPDX-License-Identifier: Apache-2.0
"""What the plugin status costs a request while nothing looks at the server: user instructions, by callgrind."""

import shutil

import pytest

from harness import build
from harness.metrics import needs_status, status_section
from test_counter_budget import count_per_request, make_shim

pytestmark = [needs_status, pytest.mark.budget]

LOADED_MAX, PATHS_MAX = 450, 600


def test_instructions_of_a_request(serve, tmp_path, record_property):
    """Loaded, it counts; the durations of requests, which it makes the server measure, are a part of this."""
    if build.PRESET != "release":
        pytest.skip("of the release only: other builds check more")
    assert shutil.which("valgrind"), "valgrind is not installed"
    shim, costs = make_shim(tmp_path), {}
    for name, config in (
        ("without", {}),
        ("loaded", {"plugins/status/status.conf": status_section()}),
        ("paths", {"plugins/status/status.conf": status_section(Paths="On")}),
    ):
        costs[name] = count_per_request(serve, tmp_path, shim, config=config)
        record_property(name, costs[name])
    print({name: round(cost) for name, cost in costs.items()})
    assert costs["without"] > 1000  # it was counted at all
    assert 0 < costs["loaded"] - costs["without"] <= LOADED_MAX
    assert costs["paths"] - costs["loaded"] <= PATHS_MAX
