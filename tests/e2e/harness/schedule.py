# SPDX-License-Identifier: Apache-2.0
"""Which worker runs which test of a parallel run, and in which order. A plugin of pytest, with xdist.

A worker takes whole files, so that fixtures of a module are made once, and those that take longest first, so that no
worker runs alone at the end. Of slow tests, each of which takes longer than a fixture, it takes one at a time.
"""

from xdist.scheduler import LoadFileScheduling

# The files that take longest, the longest first: 95 to 25 s with six workers on two cores.
LONGEST = """
    cache_consistency cache tls_scanners duda_websocket counters tls access status updates reload duda_http supervisor
    duda_redis status_page auth tls_config harness tls_watched duda_tunnel websocket_hostile duda_session
    install cache_limits logger shell robustness listing_browser duda_memcached duda_services
    """.split()
ORDER = {f"test_{name}.py": place for place, name in enumerate(LONGEST)}


class SingleTests(LoadFileScheduling):
    def _split_scope(self, nodeid):
        return nodeid


def pytest_xdist_make_scheduler(config, log):
    slow = config.option.markexpr.startswith("slow")
    return (SingleTests if slow else LoadFileScheduling)(config, log)


def pytest_collection_modifyitems(items):
    """The scheduler hands units out in the order of their first tests."""
    items.sort(key=lambda item: ORDER.get(item.path.name, len(ORDER)))
