# SPDX-License-Identifier: Apache-2.0
"""Handshakes that fail: each reason has a counter and a line in the log; the line is written once in a while. And
authorities of client certificates that are no roots."""

import contextlib
import re
import ssl
import subprocess

import pytest

from cryptography import x509

from harness import build
from harness.certificates import Authority, TlsClient, read_name
from harness.content import FILES, populate
from harness.metrics import needs_status, scrape, status_section, total
from harness.server import await_true, section

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no tls"),
    needs_status,
]
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
FAILED = "TLS handshake failed: "
OVER, CLEAR = 0, 1  # the listeners


def issue(authority, folder, name, subject=None):
    """An authority that another one has signed."""
    made = Authority(folder, name)
    made.name = read_name(subject or f"/CN=Test {name}")
    own = [(x509.BasicConstraints(ca=True, path_length=None), True)]
    start, end = x509.load_pem_x509_certificate(authority.cert.read_bytes()), None
    authority.write(made, made.signing_key, made.name, start.not_valid_before, start.not_valid_after, own)
    return made


def join(path, *pairs):
    path.write_bytes(b"".join(pair.cert.read_bytes() for pair in pairs))
    return path


@pytest.fixture(scope="module")
def pki(ca, tmp_path_factory):
    """A root, an authority below it, one below that, and a client of the last."""
    folder = tmp_path_factory.mktemp("pki")
    root = Authority(folder / "root", "root")
    middle = issue(root, folder / "middle", "middle")
    issuing = issue(middle, folder / "issuing", "issuing")
    client = issuing.make("client", subject="/CN=client")
    return {"root": root, "middle": middle, "issuing": issuing, "client": client, "folder": folder,
            "site": ca.make("site", "localhost", "other.test", "deep.test"), "self": ca}  # fmt: skip


@pytest.fixture
def start(serve, tmp_path):
    """A server of hosts {names: keys of [TLS]}; the first one is the default host. The second listener is plain."""

    def run(hosts):
        root, texts = populate(tmp_path / "root", FILES), {"plugins/status/status.conf": status_section()}
        for number, (names, keys) in enumerate(hosts.items()):
            text = section("HOST", {"ServerName": names, "DocumentRoot": root})
            texts[f"sites/host{number}" if number else "sites/default"] = text + (section("TLS", keys) if keys else "")
        return serve({"Listen": ["127.0.0.1:0 tls", "127.0.0.1:0"]}, config=texts, listeners=2)

    return run


def count(server, reason):
    with server.connect(CLEAR) as client:
        return total(scrape(client), "monkey_tls_failures_total", reason=reason)


def fail(server, context, name="localhost"):
    """A handshake and a request, neither of which succeeds: over TLS 1.3 an alert may come after the handshake."""
    with contextlib.suppress(OSError), TlsClient(server.addresses[OVER], context, name) as client:
        client.ask()
        pytest.fail("it did not fail")


def use_openssl(server, *options):
    subprocess.run(
        ["openssl", "s_client", "-connect", "127.0.0.1:%d" % server.addresses[OVER][1], *options],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
    )  # fmt: skip


# ── reasons ──

NO_NAME = "the client has sent no name \\(SNI\\), and the default host has no certificate"
# what the client does: options of openssl, or those of a context; the counter, the line
REASONS = {
    "unknown name": ("bare", ["-servername", "x.test"], "name", "no host has a certificate for the name x.test "),
    "no name": ("bare", ["-noservername"], "name", NO_NAME),
    "not a name": (
        "bare", ["-servername", "a\nb"], "name", "the client has sent a name \\(SNI\\) that is not a valid host name"),
    "no certificate": ("asks", {}, "client_certificate", "the client has sent no certificate, which \"ClientCert"),
    "stranger": ("asks", {"pair": "stranger"}, "client_certificate", "the certificate of the client is of an authority "
                 "that is not trusted"),
    "expired": ("asks", {"pair": "expired"}, "client_certificate", "the certificate of the client has expired"),
    "later": ("asks", {"pair": "later"}, "client_certificate", "the certificate of the client is not valid yet"),
    "purpose": ("asks", {"pair": "signs"}, "client_certificate", "the certificate of the client is not for clients"),
    "optional": ("may", {"pair": "stranger"}, "client_certificate", "the certificate of the client is of an authority"),
    "protocol": ("plain", {"alpn": ["ftp"]}, "protocol", "the client offers only protocols .* \\(ALPN\\)"),
    "version": ("modern", ["-tls1_2"], "version", "the client supports no version of TLS that the Profile allows"),
    "old version": ("plain", ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], "version", "the client supports no version"),
    "cipher": ("plain", ["-tls1_2", "-cipher", "AES128-SHA"], "cipher", "the client and this server have no cipher"),
    "group": ("plain", ["-tls1_3", "-groups", "P-521"], "cipher", "the client and this server have no group"),
    "alert": ("plain", {"trusts": "root"}, "client_alert", 'the client has refused with the TLS alert "unknown CA"'),
}  # fmt: skip


def hosts_of(kind, pki, ca):
    keys = pki["site"].keys()
    asks = {**keys, "ClientCertificate": "Required", "ClientCA": ca.cert}
    return {
        "plain": {"localhost": keys},
        "bare": {"localhost": None, "other.test": keys},
        "asks": {"localhost": asks},
        "may": {"localhost": {**asks, "ClientCertificate": "Optional"}},
        "modern": {"localhost": {**keys, "Profile": "modern"}},
    }[kind]


def make_pair(name, ca, pki):
    return {
        "stranger": lambda: pki["root"].make("stranger"),
        "expired": lambda: ca.make("expired", end="20210101000000Z"),
        "later": lambda: ca.make("later", start="20480101000000Z"),
        "signs": lambda: ca.make("signs", use="OCSPSigning"),
    }[name]()


@pytest.mark.parametrize("case", REASONS)
def test_reasons(start, ca, pki, case):
    kind, options, reason, line = REASONS[case]
    server = start(hosts_of(kind, pki, ca))
    versions = [V12, V13] if kind in ("asks", "may") else [V13]
    for version in versions:
        if isinstance(options, list):
            use_openssl(server, *options)
        else:
            more = {**options, **({"pair": make_pair(options["pair"], ca, pki)} if "pair" in options else {})}
            authority = pki[more.pop("trusts", "self")]
            fail(server, authority.context(minimum_version=version, maximum_version=version, **more))
    await_true(lambda: count(server, reason) == len(versions), 30, f"{reason} in the counters")
    (found,) = [text for text in server.log.splitlines() if FAILED in text]
    peer = "(127.0.0.1|unknown)" if case == "alert" else "127.0.0.1"  # it may have reset the connection since
    assert re.search(f" info  {FAILED}{line}.*, peer: {peer}, listener: 127.0.0.1:0", found), found


def test_one_line_for_many(start, clock, ca, pki):
    server = start(hosts_of("asks", pki, ca))
    for _ in range(50):
        fail(server, ca.context())
    await_true(lambda: count(server, "client_certificate") == 50, 30, "the counter")
    assert server.log.count(FAILED) == 1
    fail(server, ca.context(pair=pki["client"]))  # another reason has its own line
    server.wait_log(FAILED, 2)
    clock.advance(11)
    fail(server, ca.context())
    server.wait_log("sent no certificate.* \\(and 49 more since the last such line\\), peer: ")


def test_nothing_is_logged_of_clients_that_leave(start, pki):
    server = start({"localhost": pki["site"].keys()})
    with server.connect(OVER) as client:
        client.send(b"\x16\x03\x01")
    await_true(lambda: count(server, "client_closed") == 1, 30, "the counter")
    with server.connect(OVER) as client:
        assert client.ask().status == 400  # plain HTTP
    assert FAILED not in server.log


# ── authorities ──

ANCHORS = {
    "the issuing one": (("issuing",), (), 3, True),
    "all": (("issuing", "middle", "root"), (), 3, True),
    "one in the middle": (("middle",), ("issuing",), 3, True),
    "one in the middle, and the client sends only its own": (("middle",), (), 3, False),
    "the root": (("root",), ("issuing", "middle"), 3, True),
    "a stranger's": (("self",), ("issuing", "middle"), 3, False),
    "the root, too deep": (("root",), ("issuing", "middle"), 1, False),
    "the issuing one is no depth": (("issuing",), (), 0, True),
}


@pytest.mark.parametrize("host", ["localhost", "other.test"])
@pytest.mark.parametrize("case", ANCHORS)
def test_authorities_that_are_no_roots(start, ca, pki, tmp_path, case, host):
    """ClientCA may have any of the chain: of the default host, and of one that the name selects."""
    anchors, sent, depth, good = ANCHORS[case]
    keys = pki["site"].keys(ClientCertificate="Required", ClientDepth=depth,
                            ClientCA=join(tmp_path / "anchors.pem", *(pki[name] for name in anchors)))  # fmt: skip
    server = start({"localhost": keys} if host == "localhost" else {"localhost": pki["site"].keys(), host: keys})
    assert "is not of an authority" not in server.log
    chain = join(tmp_path / "chain.pem", pki["client"], *(pki[name] for name in sent))
    for version in (V12, V13):
        context = ca.context(minimum_version=version, maximum_version=version)
        context.load_cert_chain(chain, pki["client"].key)
        if not good:
            fail(server, context, host)
            continue
        with TlsClient(server.addresses[OVER], context, host) as client:
            assert client.ask(host=host).status == 200
    assert bool(re.search(FAILED, server.log)) == (not good)


# ── ALPN ──


@pytest.mark.parametrize("offered, chosen", [
    (["http/1.0"], "http/1.0"), (["http/1.0", "http/1.1"], "http/1.1"), (["spdy/1", "http/1.0"], "http/1.0"),
    (["http/1.0", "h2"], "h2" if build.speaks("h2") else "http/1.0"),
])  # fmt: skip
def test_alpn_of_http_1_0(start, ca, pki, offered, chosen):
    server = start({"localhost": pki["site"].keys()})
    with TlsClient(server.addresses[OVER], ca.context(alpn=offered)) as client:
        assert client.sock.selected_alpn_protocol() == chosen
        if chosen != "h2":
            client.send(b"GET /hello.txt HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert client.response().status == 200
            client.assert_gone()
