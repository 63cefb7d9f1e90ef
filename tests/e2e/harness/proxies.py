# SPDX-License-Identifier: Apache-2.0
"""Configurations with [PROXY] sections, for tests with backends (backend.py)."""

from .server import section

TEXT = "Content-Type: text/plain"
# A loaded machine may pause between two requests, or amid a TLS handshake, for longer than the defaults.
PATIENT = {"KeepAliveTimeout": "60s", "ConnectTimeout": "20s"}


def proxy_section(backend, keys=None):
    """A section that passes all requests, or those of `Match`, to a backend, or to the `To` of the keys."""
    return section("PROXY", {**({"To": backend.url} if backend else {}), **PATIENT, **(keys or {})})
