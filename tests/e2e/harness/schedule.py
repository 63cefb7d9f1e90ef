# SPDX-License-Identifier: Apache-2.0
"""Which worker runs which test of a parallel run, and in which order. A plugin of pytest, with xdist.

A worker takes whole files, so that fixtures of a module are made once, and those with most seconds first, so that no
worker runs alone at the end. Files in SPLIT are taken by test functions.
"""

import re

from xdist.scheduler import LoadScopeScheduling

# Seconds of files (or of functions of split files) that take long, with six workers on two cores.
SECONDS = {}
SPLIT = ()


def find_unit(nodeid):
    """The part of a node's name by which it is assigned: its file, or its function."""
    path, _, name = nodeid.partition("::")
    return f"{path}::{re.match(r'[^[]*', name)[0]}" if path.endswith(SPLIT) else path


def seconds_of(unit):
    return SECONDS.get(unit.rpartition("/")[2].removeprefix("test_").replace(".py", ""), 0)


class UnitScheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid):
        return find_unit(nodeid)


def pytest_xdist_make_scheduler(config, log):
    return UnitScheduling(config, log)


def pytest_collection_modifyitems(items):
    """The scheduler hands units out in the order of their first tests."""
    items.sort(key=lambda item: -seconds_of(find_unit(item.nodeid)))
