# SPDX-License-Identifier: Apache-2.0
"""Products of parameters, of which the normal run takes a part. A plugin of pytest.

A test that asks over every way (HTTP/1.1 and HTTP/2, in the clear and by TLS) and has other parameters, too, runs over
one way for each combination of those: the first over the first way, the second over the second, and so on, so that each
value of each parameter appears. A test without other parameters runs over two ways, one of HTTP/1 and one of HTTP/2.
The rest of the product is marked `slow`, which ./dev test slow runs.
"""

import zlib

import pytest

from .ways import WAYS

ROTATED = ("way", "ws_server")  # names of parameters


def kept(n_values, group, n_groups):
    """The indices of the values that a group keeps; all groups together keep all values. One that is alone keeps two
    neighbours of the WAYS, which are one of HTTP/1 and one of HTTP/2."""
    if n_groups == 1 and n_values == len(WAYS):
        return {0, 1}
    return {value for value in range(n_values) if value % n_groups == group % min(n_values, n_groups)}


def group_items(items):
    """The tests with a rotated parameter: {test: {combination of the other parameters: [item]}}."""
    tests = {}
    for item in items:
        params = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        if any([params.pop(name, None) is not None for name in ROTATED]):
            groups = tests.setdefault(item.nodeid.partition("[")[0], {})
            groups.setdefault(repr(sorted(params.items(), key=lambda pair: pair[0])), []).append(item)
    return tests


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Before pytest looks at the markers."""
    for name, groups in group_items(items).items():
        first = zlib.crc32(name.encode())  # tests with few combinations begin with different ways
        for number, group in enumerate(groups.values()):
            indices = kept(len(group), number, len(groups))
            for index, item in enumerate(group):
                if (index + first) % len(group) not in indices:
                    item.add_marker("slow")
