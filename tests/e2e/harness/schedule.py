# SPDX-License-Identifier: Apache-2.0
"""Which worker runs which test of a parallel run, and in which order. A plugin of pytest, with xdist.

A worker takes whole files, so that fixtures of a module are made once, and those that take longest first, so that no
worker runs alone at the end.
"""

from xdist.scheduler import LoadFileScheduling

# The files that take longest, the longest first: 95 to 25 s with six workers on two cores.
LONGEST = """
    cache tls_scanners duda_websocket counters tls access status updates reload duda_http supervisor
    duda_redis status_page auth tls_config harness tls_watched duda_tunnel websocket_hostile duda_session
    install cache_limits logger shell robustness listing_browser duda_memcached duda_services
    """.split()
ORDER = {f"test_{name}.py": place for place, name in enumerate(LONGEST)}


def pytest_xdist_make_scheduler(config, log):
    return LoadFileScheduling(config, log)


def pytest_collection_modifyitems(items):
    """The scheduler hands units out in the order of their first tests."""
    items.sort(key=lambda item: ORDER.get(item.path.name, len(ORDER)))
