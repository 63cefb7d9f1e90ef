# SPDX-License-Identifier: Apache-2.0
"""Which worker runs which test of a parallel run, and in which order. A plugin of pytest, with xdist.

A worker takes whole files, so that fixtures of a module are made once, and those that take longest first, so that no
worker runs alone at the end. Of slow tests, each of which takes longer than a fixture, it takes one at a time.
"""

from xdist.scheduler import LoadFileScheduling

# The files that take longest, the longest first, with six workers on two cores.
LONGEST = """
    cache duda_http embed duda_old harness duda_redis duda_websocket auth shell duda_memcached duda_session
    counters tls_config access proxy_bodies sources supervisor duda_services upstream_names install duda_tunnel
    listing_browser logger reload websocket_hostile tls status tls_watched config cache_limits updates
    embed_python
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
