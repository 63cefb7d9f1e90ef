# SPDX-License-Identifier: Apache-2.0
"""Products of parameters, of which the normal run takes a part. A plugin of pytest.

A test that asks over every way (HTTP/1.1 and HTTP/2, in the clear and by TLS) runs over one way for each combination of
its other parameters: the first over one, the second over the next, and so on. A test without other parameters runs over
the way that its name chooses. The rest of the product is marked `slow`, which ./dev test slow runs.
"""

import re
import zlib

import pytest

WAY = re.compile(r"h[12]([-_]|$)")
ROTATED = "way", "ws_server"  # names of parameters


def group_items(items):
    """The tests with a rotated parameter: {test: {combination of the other parameters: [item]}}."""
    tests = {}
    for item in items:
        params = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        ways = [name for name in ROTATED if WAY.match(str(params.get(name)))]
        if ways:
            del params[ways[0]]
            groups = tests.setdefault(item.nodeid.partition("[")[0], {})
            groups.setdefault(repr(sorted(params.items(), key=lambda pair: pair[0])), []).append(item)
    return tests


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Before pytest looks at the markers."""
    for name, groups in group_items(items).items():
        first = zlib.crc32(name.encode())  # tests with few combinations begin with different ways
        for number, group in enumerate(groups.values()):
            for index, item in enumerate(group):
                if (index - number - first) % len(group):
                    item.add_marker("slow")
