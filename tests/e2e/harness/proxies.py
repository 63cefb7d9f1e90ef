# SPDX-License-Identifier: Apache-2.0
"""Configurations with [PROXY] sections, for tests with backends (backend.py)."""

from .server import section

TEXT = "Content-Type: text/plain"
PATIENT = {"KeepAliveTimeout": "60s"}  # a loaded machine may pause between two requests for longer than the default


def proxy_section(backend, keys=None):
    """A section that passes all requests, or those of `Match`, to a backend, or to the `To` of the keys."""
    return section("PROXY", {**({"To": backend.url} if backend else {}), **PATIENT, **(keys or {})})
