# SPDX-License-Identifier: Apache-2.0
"""Which worker runs which test of a parallel run, and in which order. A plugin of pytest, with xdist.

A worker takes whole files, so that fixtures of a module are made once, and those that take longest first, so that no
worker runs alone at the end. Of slow tests, each of which takes longer than a fixture, it takes one at a time.
"""

from xdist.scheduler import LoadFileScheduling

# The files that take longest, the longest first, with six workers on two cores.
LONGEST = """
    cache duda_websocket cache_notify tls auth_forward access websocket_hostile counters cgi upstream_names status
    cache_limits upstream listing_browser duda_tunnel proxy_faults cache_page status_page duda_http tls_watched
    script_faults h2_ends upstream_checks proxy_bodies timeouts cache_consistency supervisor logger websocket_reload
    archives fastcgi_php duda_redis fastcgi reload auth_bearer proxy duda_sqlite duda_session listener_reload embed
    upstream_waits shell duda_old auth duda_task maintenance guide updates fastcgi_checks compress proxy_websocket
    sources duda_memcached
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
