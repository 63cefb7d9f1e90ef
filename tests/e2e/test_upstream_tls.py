# SPDX-License-Identifier: Apache-2.0
"""Groups of servers behind https:// and of Unix sockets: whose name the certificate covers, kept connections, ends."""

import contextlib

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.certificates import Authority
from harness.few_descriptors import fail_each_descriptor
from harness.proxies import TEXT
from harness.services import reload

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "upstream.so").exists(), reason="this preset has no groups"),
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} lacks tls"),
]


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def secure(ca):
    """Starts servers with certificates for these names, which respond with their number."""
    with contextlib.ExitStack() as stack:

        def start(*names):
            return [
                stack.enter_context(Backend(answer(b"%d" % number, TEXT), tls=ca.make(name, name)))
                for number, name in enumerate(names)
            ]

        yield start


def ask_bodies(server, count, path="/x?y"):
    with server.connect() as client:
        return [(got := client.ask(path)).status == 200 and got.body for _ in range(count)]


def test_requests(serve_group, secure, ca):
    """The certificate of each server covers the name of the group, which is that of SNI and of Host; a path goes before
    that of the request. Each server has a kept connection, also after a reload."""
    servers = secure("app", "app")
    server = serve_group(servers, {"Balance": "RoundRobin"}, {"To": "https://app/v2", "TlsCA": ca.cert})
    assert sorted(ask_bodies(server, 6)) == [b"0"] * 3 + [b"1"] * 3
    reload(server)
    assert sorted(ask_bodies(server, 4)) == [b"0"] * 2 + [b"1"] * 2
    for each in servers:
        assert {(got.target, got["Host"]) for got in each.requests} == {("/v2/x?y", "app")}
        assert [peer.server_name for peer in each.peers] == ["app"], "one connection"


@pytest.mark.parametrize("host, sent", [("Client", "localhost"), ("Backend", "app"), ("a.example", "a.example")])
def test_host(serve_group, secure, ca, host, sent):
    (one,) = secure("app")
    server = serve_group([one], {}, {"To": "https://app", "TlsCA": ca.cert, "HostHeader": host})
    assert ask_bodies(server, 1) == [b"0"]
    assert one.requests[0]["Host"] == sent


def test_another_name(serve_group, secure, ca):
    """TlsName is expected instead of the group's, of all of its servers."""
    server = serve_group(secure("a.test"), {}, {"To": "https://app", "TlsCA": ca.cert, "TlsName": "a.test"})
    assert ask_bodies(server, 2) == [b"0"] * 2


@pytest.mark.parametrize("name, trusts, text", [
    ("other", True, "the certificate of the server does not cover app"),
    ("app", False, "the certificate of the server is of an authority that is not trusted"),
])  # fmt: skip
def test_a_certificate_that_is_refused(serve_group, secure, ca, name, trusts, text):
    """No server gets a byte of the request; a good one gets those of the bad one."""
    wrong, valid = secure(name, "app")
    keys = {"TlsCA": ca.cert} if trusts else {}
    server = serve_group([wrong], {}, {"To": "https://app", **keys})
    with server.connect() as client:
        assert client.ask("/").status == 502
    server.wait_log(text)
    if trusts:
        group = serve_group([wrong, valid], {"Balance": "First"}, {"To": "https://app", **keys})
        assert ask_bodies(group, 5) == [b"1"] * 5
    assert not wrong.requests


def test_each_descriptor_fails_once(serve_group, secure, ca):
    """Of requests that go to a second server, whose certificate is the right one."""
    servers = secure("other", "app")
    server = serve_group(servers, {"Balance": "First", "EjectAfter": 0},
                         {"To": "https://app", "TlsCA": ca.cert, "KeepAlive": 0})  # fmt: skip
    assert fail_each_descriptor(server, server.connect, lambda client: client.ask("/").status) >= 1


def test_unix_sockets(serve_group, tmp_path):
    """One that is removed is like a server that refuses connections."""
    with contextlib.ExitStack() as stack:
        paths = [tmp_path / f"{number}.sock" for number in range(2)]
        servers = [stack.enter_context(Backend(answer(b"%d" % n, TEXT), path=path)) for n, path in enumerate(paths)]
        rows = [each.url for each in servers]
        server = serve_group(rows, {"Balance": "RoundRobin"}, {"KeepAlive": 0})
        assert sorted(ask_bodies(server, 6)) == [b"0"] * 3 + [b"1"] * 3
        paths[0].unlink()
        assert ask_bodies(server, 6) == [b"1"] * 6
