# SPDX-License-Identifier: Apache-2.0
"""421 Misdirected Request: when another connection would be a better one for the host of a request, and when not."""

import ssl

import pytest

from harness import build
from harness.certificates import TlsClient
from harness.content import FILES, populate
from harness.h2 import H2Client
from harness.server import Server, section, write_config

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not (build.speaks("tls") and build.speaks("h2")), reason=f"the preset {build.PRESET} lacks tls or HTTP/2"
    ),
]
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
NO_SNI = None


@pytest.fixture(scope="module")
def pairs(ca):
    return {
        "one": ca.make("one", "one.test", "IP:192.0.2.1"),
        "two": ca.make("two", "two.test"),
        "wild": ca.make("wild", "*.wild.test"),
        "all": ca.make("all", *(f"{name}.test" for name in ("one", "two", "any", "asks", "modern"))),
        "rsa": ca.make("rsa", "one.test", kind="rsa"),
        "client": ca.make("client", subject="/CN=alice"),
    }


# Hosts by set: {names: (pair, further keys)}; the first one is the default host.
SETS = {
    "one": {"one.test": ("one", None)},
    "one-asks": {"one.test": ("one", "asks")},
    "two": {"one.test": ("one", None), "two.test": ("two", None)},
    "wild": {"one.test": ("one", None), "*.wild.test": ("wild", None)},
    "wild-default": {"*.wild.test": ("wild", None), "two.test": ("two", None)},
    "bare": {"one.test": ("one", None), "bare.test": (None, None)},
    "second-asks": {"one.test any.test": ("all", None), "asks.test": ("all", "asks"), "two.test": ("two", None)},
    "default-asks": {"one.test": ("all", "asks"), "any.test": ("all", None), "two.test": ("two", "asks"),
                     "asks.test": ("all", "may")},
    "modern": {"one.test": ("all", None), "modern.test": ("all", "modern")},
    "address": {"one.test": ("one", None), "192.0.2.1": ("one", None), "[2001:db8::1]": ("two", None)},
}  # fmt: skip

ALL = [V12, V13]
# set, versions, SNI, {Host: status}
ROWS = [
    # Without SNI another connection would get the same certificate.
    ("one", ALL, NO_SNI, {"one.test": 200, "www.public.test": 200, "192.0.2.1": 200, "192.0.2.2:8443": 200,
                          "[2001:db8::1]": 200, "ONE.TEST.": 200}),
    ("two", ALL, NO_SNI, {"one.test": 200, "two.test": 200, "two.test:443": 200, "none.test": 200}),
    ("wild", [V13], NO_SNI, {"x.wild.test": 200, "wild.test": 200, "x.y.wild.test": 200}),
    ("wild-default", [V13], NO_SNI, {"x.wild.test": 200, "two.test": 200, "none.test": 200}),
    ("bare", [V13], NO_SNI, {"one.test": 200, "bare.test": 200}),
    ("address", [V13], NO_SNI, {"192.0.2.1": 200, "[2001:db8::1]": 200, "192.0.2.3": 200}),
    # A host that asks for more than the default host does.
    ("second-asks", ALL, NO_SNI, {"one.test": 200, "any.test": 200, "two.test": 200, "asks.test": 421}),
    ("modern", [V12], NO_SNI, {"one.test": 200, "modern.test": 421, "none.test": 200}),
    ("modern", [V13], NO_SNI, {"one.test": 200, "modern.test": 200}),
    # The default host asks: others that ask for the same or for nothing, and one with other rules.
    ("one-asks", ALL, NO_SNI, {"one.test": 200, "www.public.test": 200, "192.0.2.7": 200}),
    ("default-asks", ALL, NO_SNI, {"one.test": 200, "two.test": 200, "any.test": 200, "none.test": 200,
                                   "asks.test": 421}),
    # With SNI the certificate must cover the host, unless it is the one of the SNI.
    ("one", ALL, "one.test", {"one.test": 200, "one.test.": 200, "192.0.2.1": 200, "none.test": 421,
                              "192.0.2.2": 421}),
    ("one", [V13], "none.test", {"none.test": 200, "NONE.test:443": 200, "none.test.": 200, "one.test": 200,
                                 "other.test": 421}),
    ("two", ALL, "one.test", {"one.test": 200, "two.test": 421, "none.test": 421}),
    ("two", [V13], "two.test", {"two.test": 200, "one.test": 421}),
    ("wild", [V13], "x.wild.test", {"x.wild.test": 200, "y.wild.test": 200, "x.y.wild.test": 421, "wild.test": 421,
                                    "one.test": 421}),
    ("bare", [V13], "bare.test", {"bare.test": 200, "one.test": 200, "none.test": 421}),
    ("address", [V13], "one.test", {"192.0.2.1": 200, "[2001:db8::1]": 421}),
    ("second-asks", ALL, "one.test", {"any.test": 200, "two.test": 200, "asks.test": 421}),
    ("second-asks", [V13], "asks.test", {"asks.test": 200, "one.test": 421, "two.test": 421}),
    ("default-asks", [V13], "one.test", {"two.test": 200, "any.test": 421, "asks.test": 421}),
    ("one-asks", [V13], "one.test", {"one.test": 200, "none.test": 421}),
    ("modern", [V12], "one.test", {"one.test": 200, "modern.test": 421}),
    ("modern", [V13], "one.test", {"modern.test": 200}),
    ("modern", [V13], "modern.test", {"one.test": 200}),
]  # fmt: skip


def write_sites(hosts, pairs, ca, root):
    asks = {"ClientCertificate": "Required", "ClientCA": ca.cert}
    named = {"asks": asks, "may": {**asks, "ClientCertificate": "Optional"}, "modern": {"Profile": "modern"}}
    texts = {}
    for names, (pair, keys) in hosts.items():
        text = section("HOST", {"ServerName": names, "DocumentRoot": root})
        text += section("TLS", pairs[pair].keys(**named.get(keys, {}))) if pair else ""
        texts[f"sites/host{len(texts)}" if texts else "sites/default"] = text
    return texts


@pytest.fixture(scope="module")
def servers(ca, pairs, tmp_path_factory):
    """A server for each set of hosts."""
    root, started = populate(tmp_path_factory.mktemp("root"), FILES), {}
    for name, hosts in SETS.items():
        conf = tmp_path_factory.mktemp("conf")
        write_config(conf, root, {"Listen": "127.0.0.1:0 tls"}, files=write_sites(hosts, pairs, ca, root))
        started[name] = Server("-c", conf)
    yield started
    for server in started.values():
        server.settle()
        server.stop()


def ask(client, host):
    if isinstance(client, H2Client):
        return client.ask(authority=host).status
    return client.ask(host=host).status


def connect(server, context, name, kind, session=None):
    if kind == "HTTP/2":
        client = H2Client(server.addresses[0], context=context, name=name)
    else:
        client = TlsClient(server.addresses[0], context, name, session=session)
    server.clients.append(client)
    return client


CASES = [(name, version, sni, hosts) for name, versions, sni, hosts in ROWS for version in versions]


@pytest.mark.parametrize("kind", ["HTTP/1.1", "HTTP/2", "resumed"])
def test_what_is_misdirected(servers, ca, pairs, kind):
    """All rows: over HTTP/1.1, over HTTP/2, and in a session that was resumed."""
    wrong = []
    for name, version, sni, hosts in CASES:
        context = ca.context(minimum_version=version, maximum_version=version, pair=pairs["client"])
        client = connect(servers[name], context, sni, kind)
        if kind == "resumed":
            assert ask(client, next(iter(hosts))) in (200, 421)  # the ticket of TLS 1.3 comes with the response
            client = connect(servers[name], context, sni, kind, client.sock.session)
            assert client.sock.session_reused
        found = {host: ask(client, host) for host in hosts}
        if found != hosts:
            wrong.append((name, version.name, sni, {h: s for h, s in found.items() if s != hosts[h]}))
        client.close()
    assert not wrong
