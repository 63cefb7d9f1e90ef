# SPDX-License-Identifier: Apache-2.0
"""Which worker runs which test of a parallel run, and in which order. A plugin of pytest, with xdist.

A worker takes whole files, so that fixtures of a module are made once, and those that take longest first, so that no
worker runs alone at the end. Of slow tests, each of which takes longer than a fixture, it takes one at a time.
"""

from xdist.scheduler import LoadFileScheduling

# The files that take longest, the longest first, with six workers on two cores.
LONGEST = """
    cache duda_websocket duda_http cache_notify embed duda_old tls harness upstream_names websocket_hostile
    duda_redis auth shell cache_limits counters duda_memcached duda_session auth_forward h2spec status script_faults
    access cache_consistency cache_page timeouts tls_config proxy_bodies sources supervisor websocket_reload
    fastcgi_php duda_tunnel duda_services proxy_faults listener_reload maintenance install upstream listing_browser
    status_page h2_ends logger reload cache_attacks cgi proxy_websocket fastcgi_checks upstream_checks health
    tls_watched config updates embed_python
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
