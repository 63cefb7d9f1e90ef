# SPDX-License-Identifier: Apache-2.0
"""Which worker runs which test of a parallel run, and in which order. A plugin of pytest, with xdist.

A worker takes whole files, so that fixtures of a module are made once, and those that take longest first, so that no
worker runs alone at the end. Of slow tests, each of which takes longer than a fixture, it takes one at a time.
"""

from xdist.scheduler import LoadFileScheduling

# The files that take longest, the longest first, with eight workers on two cores.
LONGEST = """
    cache embed sources tls auth shell cache_notify auth_forward proxy_bodies config updates cgi reload status
    proxy_uploads duda_session cache_limits fastcgi_php guide upstream_checks script_faults duda_redis duda_services
    fastcgi access counters proxy_faults duda_websocket upstream_names routes candidates upstream timeouts proxy
    tls_config archives robustness static dirlisting h2_ends duda_memcached duda_common_mistakes listener_reload
    duda_examples compress mistakes supervisor logger auth_bearer maintenance health check proxy_memory duda_task
    redirects upstream_waits cache_api fastcgi_checks plugin_counters rights
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
