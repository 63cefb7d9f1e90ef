# SPDX-License-Identifier: Apache-2.0
"""Encrypted connections: what clients get, and what they cannot do."""

import contextlib
import datetime
import os
import re
import signal
import socket
import ssl
import subprocess
import time

import pytest

from harness import build, frames
from harness.certificates import Authority, Bytes, TlsClient, alert_of, openssl
from harness.content import populate
from harness.messages import CLOSE, request
from harness.server import HTTP1_ONLY, Server, await_true, free_port, run, section, write_config

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
BIG = os.urandom(3_000_000)
FILES = {"hello.txt": b"Hello, world\n", "big.bin": BIG}
TLS = {"Listen": ["127.0.0.1:0 tls", "127.0.0.1:0"]}
OVER, CLEAR = 0, 1  # the listeners
PHASE = datetime.timedelta(seconds=15)  # enough for a server to start, and for handshakes, on a loaded machine

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no tls"),
]


@pytest.fixture(scope="module")
def pairs(ca):
    return {
        "localhost": ca.make("localhost", "localhost", "IP:127.0.0.1"),
        "rsa": ca.make("rsa", "localhost", kind="rsa"),
        "a": ca.make("a", "a.example", "shared.example"),
        "wild": ca.make("wild", "*.wild.example"),
        "asks": ca.make("asks", "asks.example", "may.example", "shared.example"),
        "client": ca.make("client", subject="/O=Clients, Inc./CN=alice"),
    }


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """Another authority, which no test trusts."""
    return Authority(tmp_path_factory.mktemp("strangers"), "strangers")


def host(root, names, tls=None, more=""):
    text = section("HOST", {"ServerName": names, "DocumentRoot": root})
    return text + (section("TLS", tls) if tls else "") + more


@pytest.fixture(scope="module")
def hosts(ca, pairs, tmp_path_factory):
    """The files of a server with a host of each kind; each has a file that names it."""
    top = tmp_path_factory.mktemp("hosts")
    own = {
        "default": ("localhost", {
            "Certificate": [pairs["localhost"].cert, pairs["rsa"].cert],
            "CertificateKey": [pairs["localhost"].key, pairs["rsa"].key],
            "OCSPFile": [ca.staple(pairs["localhost"]), ca.staple(pairs["rsa"])],
        }),
        "a": ("a.example", pairs["a"].keys(StrictTransportSecurity="365d includeSubDomains preload", Redirect="https")),
        "wild": ("*.wild.example", pairs["wild"].keys()),
        "asks": ("asks.example", pairs["asks"].keys(ClientCertificate="Required", ClientCA=ca.cert)),
        "may": ("may.example", pairs["asks"].keys(ClientCertificate="Optional", ClientCA=ca.cert)),
        "modern": ("modern.example", pairs["localhost"].keys(Profile="modern")),
        "none": ("none.example", None),
    }  # fmt: skip
    files = {}
    for name, (names, tls) in own.items():
        root = populate(top / name, {**FILES, "who.txt": name.encode()})
        files[f"sites/{name}"] = host(root, names, tls)
    return files


@pytest.fixture(scope="module")
def tls_server(hosts, tmp_path_factory, site_root):
    conf = write_config(tmp_path_factory.mktemp("conf"), site_root, {**TLS, "Workers": 2}, files=hosts)
    server = Server("-c", conf, listeners=2)
    yield server
    server.settle()
    server.stop()


@pytest.fixture
def connect(ca, tls_server):
    def open_one(name="localhost", *, session=None, server=None, listener=OVER, do_handshake=True, first=b"", **rest):
        server = server or tls_server
        context = rest.pop("context", None) or ca.context(**rest)
        address = server.addresses[listener]
        client = TlsClient(address, context, name, session=session, first=first, do_handshake=do_handshake)
        server.clients.append(client)
        return client

    yield open_one
    tls_server.settle()


def reload(server, outcome="the new configuration is in use"):
    server.baseline += 2  # of the loop that waits for old generations
    server.send_signal(signal.SIGHUP)
    server.wait_log(outcome)


def ask(client, target="/hello.txt", host="localhost", *fields, **rest):
    return client.ask(target, *fields, host=host, **rest)


def who(client, host):
    answer = ask(client, "/who.txt", host)
    return answer.body.decode() if answer.status == 200 else answer.status


# ── versions, ciphers, certificates ──


@pytest.mark.parametrize("version, name", [(V12, "TLSv1.2"), (V13, "TLSv1.3")])
def test_versions(connect, version, name):
    with connect(minimum_version=version, maximum_version=version) as client:
        assert client.sock.version() == name
        assert ask(client).body == FILES["hello.txt"]


OLD = [("-tls1", "localhost"), ("-tls1_1", "localhost"), ("-tls1_2", "modern.example")]


@pytest.mark.parametrize("version, name", OLD)
def test_old_versions_are_refused(tls_server, version, name):
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{tls_server.port}", version, "-cipher", "ALL:@SECLEVEL=0",
         "-servername", name],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
    )  # fmt: skip
    assert done.returncode != 0 and b"alert" in done.stderr
    assert b"Cipher is (NONE)" in done.stdout


def test_modern_is_tls_1_3(connect):
    with connect("modern.example") as client:
        assert client.sock.version() == "TLSv1.3"


INTERMEDIATE = {
    f"ECDHE-{key}-{cipher}"
    for key in ("ECDSA", "RSA")
    for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")
}


def accepted_ciphers(tls_server, ca, names):
    found = set()
    for name in names:
        context = ca.context(minimum_version=V12, maximum_version=V12)
        try:
            context.set_ciphers(f"{name}:@SECLEVEL=0")
        except ssl.SSLError:
            continue  # this client does not know it
        with contextlib.suppress(ssl.SSLError, ConnectionError), TlsClient(tls_server.addresses[0], context) as client:
            found.add(client.sock.cipher()[0])
    return found


def test_ciphers_of_tls_1_2(tls_server, ca):
    names = openssl("ciphers", "ALL:COMPLEMENTOFALL:@SECLEVEL=0").decode().strip().split(":")
    names = [n for n in names if not n.startswith("TLS_") and "PSK" not in n and "SRP" not in n]
    assert accepted_ciphers(tls_server, ca, names) == INTERMEDIATE
    tls_server.settle()


OF_TLS_1_3 = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}


def test_ciphers_of_tls_1_3(tls_server):
    for suite in (*OF_TLS_1_3, "TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256"):
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{tls_server.port}", "-tls1_3", "-ciphersuites", suite],
            input=b"", capture_output=True, timeout=120,
        )  # fmt: skip
        assert (f"Cipher is {suite}".encode() in done.stdout) == (suite in OF_TLS_1_3), suite
        assert (b"Cipher is (NONE)" in done.stdout) == (suite not in OF_TLS_1_3), suite


@pytest.mark.parametrize("ciphers, pair", [("ECDHE+aECDSA", "localhost"), ("ECDHE+aRSA", "rsa")])
def test_both_kinds_of_certificates(connect, ca, pairs, ciphers, pair):
    context = ca.context(maximum_version=V12)
    context.set_ciphers(ciphers)
    with connect(context=context) as client:
        assert client.fingerprint == pairs[pair].fingerprint
        assert ask(client).status == 200


# ── the system's own settings of libssl ──

STRICT = """
MaxProtocol = TLSv1.2
Protocol = ALL, -TLSv1.3
CipherString = AES256-SHA
Ciphersuites = TLS_AES_128_CCM_SHA256
Groups = P-521
SignatureAlgorithms = ed448
ClientSignatureAlgorithms = ed448
Options = -SessionTicket, ServerPreference
VerifyMode = Require
NumTickets = 0
RecordPadding = 16384
"""
LOOSE = """
MinProtocol = TLSv1
CipherString = ALL:COMPLEMENTOFALL:@SECLEVEL=0
Groups = P-521:secp256k1
Options = UnsafeLegacyRenegotiation, Compression
NumTickets = 5
"""


@pytest.fixture(scope="module", params=[STRICT, LOOSE], ids=["strict", "loose"])
def views(request, tmp_path_factory):
    """An environment with another openssl.cnf."""
    path = tmp_path_factory.mktemp("system") / "openssl.cnf"
    head = "openssl_conf = init\n[init]\nssl_conf = ssl\n[ssl]\nsystem_default = own\n[own]\n"
    path.write_text(head + request.param)
    return {"OPENSSL_CONF": str(path)}


@pytest.fixture(scope="module")
def systemic(views, hosts, tmp_path_factory, site_root):
    """The server where the system has views of its own."""
    conf = write_config(tmp_path_factory.mktemp("conf"), site_root, TLS, files=hosts)
    server = Server("-c", conf, listeners=2, env=views)
    yield server
    server.settle()
    server.stop()


def test_the_system_does_not_change_versions(connect, systemic):
    for name, versions in (("localhost", (V12, V13)), ("modern.example", (V13,))):
        for version in versions:
            with connect(name, server=systemic, minimum_version=version, maximum_version=version) as client:
                assert who(client, name) == ("default" if name == "localhost" else "modern")
    for old in OLD:
        test_old_versions_are_refused(systemic, *old)


def test_the_system_does_not_change_ciphers(systemic, ca):
    test_ciphers_of_tls_1_2(systemic, ca)
    test_ciphers_of_tls_1_3(systemic)


def test_the_system_does_not_change_groups(systemic):
    for group, taken in (("X25519", True), ("P-384", True), ("P-521", False)):
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{systemic.port}", "-groups", group], input=b"",
            capture_output=True, timeout=120,
        )  # fmt: skip
        assert (b"Cipher is (NONE)" not in done.stdout) == taken, group


def test_the_system_does_not_change_records(systemic):
    """A padded one would be 16 KB, whatever is in it."""
    done = openssl(
        "s_client", "-connect", f"127.0.0.1:{systemic.port}", "-servername", "localhost", "-tls1_3", "-ign_eof", "-msg",
        data=bytes(request("/who", CLOSE)),
    )  # fmt: skip
    sizes = [
        int(size.replace(b" ", b""), 16)
        for size in re.findall(rb"<<< TLS 1.\d, RecordHeader \[length 0005\]\n +.. .. .. (.. ..)", done)
    ]
    assert len(sizes) > 3 and max(sizes) < 4096, sizes


@pytest.mark.parametrize("version", [V12, V13])
def test_the_system_does_not_change_sessions(connect, ca, systemic, version):
    context = ca.context(minimum_version=version, maximum_version=version)
    with connect(context=context, server=systemic) as client:
        assert ask(client).status == 200
        session = client.sock.session
    assert resume(connect, "localhost", session, context=context, server=systemic) == (True, 200)


@pytest.mark.parametrize("version", [V12, V13])
def test_the_system_does_not_change_which_clients_are_let_in(connect, pairs, strangers, systemic, version):
    rest = {"server": systemic, "minimum_version": version, "maximum_version": version}
    with connect("asks.example", pair=pairs["client"], **rest) as client:
        assert who(client, "asks.example") == "asks"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        with connect("asks.example", pair=strangers.make("eve"), **rest) as client:
            who(client, "asks.example")


def test_the_system_does_not_bring_renegotiation_back(systemic):
    test_renegotiation_is_refused(systemic)


def test_the_system_does_not_change_which_keys_are_too_weak(views, ca, tmp_path):
    pair = ca.make("weak", "localhost", kind="weak")
    conf = write_config(tmp_path, tmp_path, TLS, files={"sites/default": host(tmp_path, "localhost", pair.keys())})
    done = run("-t", "-c", conf, env={**build.environment(), **views})
    assert done.returncode == 1 and "cannot be used: ee key too small" in done.stderr, done.stderr


# ── names ──


def make_hello(change):
    """The first record of a client that asks for "localhost", with its extension server_name changed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    hello = out.read()
    whole = b"\x00\x00\x00\x0e\x00\x0c\x00\x00\x09localhost"
    assert hello.count(whole) == 1
    return hello.replace(whole, whole[:4] + change(whole[4:]))


@pytest.mark.single_protocol
@pytest.mark.parametrize(
    "change, alert",
    [
        (lambda ext: b"\x00\x0d" + ext[2:], 50),  # the list is longer than the extension
        (lambda ext: b"\x00\x00" + ext[2:], 50),
        (lambda ext: ext[:3] + b"\x00\x0a" + ext[5:], 50),  # the name is longer than the list
        (lambda ext: ext[:3] + b"\x00\x00" + ext[5:], 50),
        (lambda ext: ext[:2] + b"\x01" + ext[3:], 50),  # not a host_name
        (lambda ext: ext.replace(b"local", b"loc\0l"), 112),
    ],
)
def test_malformed_server_names(tls_server, change, alert):
    """RFC 8446 section 6.2: decode_error for what cannot be parsed; unrecognized_name for what is no name."""
    with tls_server.connect(OVER) as client:
        client.send(make_hello(change))
        assert client.rest() == b"\x15\x03\x03\x00\x02\x02" + bytes([alert])
    tls_server.settle()


@pytest.mark.parametrize(
    "name, pair, host",
    [
        ("localhost", "localhost", "default"),
        ("a.example", "a", "a"),
        ("A.EXAMPLE", "a", "a"),
        ("x.wild.example", "wild", "wild"),
        ("none.example", "localhost", "none"),
        ("nobody.example", "localhost", "default"),
        (None, "localhost", "default"),
    ],
)
def test_server_names(connect, pairs, name, pair, host):
    with connect(name) as client:
        assert client.fingerprint == pairs[pair].fingerprint
        assert who(client, name or "localhost") == host


def test_421_for_a_name_that_the_certificate_does_not_cover(connect):
    with connect("a.example") as client:
        assert who(client, "a.example") == "a"
        assert who(client, "localhost") == 421
        assert who(client, "x.wild.example") == 421
        assert who(client, "none.example") == 421
        assert who(client, "shared.example") == "default"  # covered, and the host asks for no more
        assert who(client, "a.example:443") == "a"


def test_421_where_the_certificate_shown_does_not_cover_the_name(serve, ca, pairs, tmp_path):
    """Of two. Which of them was shown is not known of a session that was resumed: then both must cover it."""
    root = populate(tmp_path / "r", FILES)
    more = ca.make("more", "localhost", "more.example")
    for order in ((more, pairs["rsa"]), (pairs["rsa"], more)):
        keys = {"Certificate": [p.cert for p in order], "CertificateKey": [p.key for p in order]}
        texts = {"sites/default": host(root, "localhost more.example", keys)}
        server = serve({"Listen": "127.0.0.1:0 tls"}, config=texts)
        for ciphers, shown, status in (("ECDHE+ECDSA", more, 200), ("ECDHE+aRSA", pairs["rsa"], 421)):
            context = ca.context(maximum_version=V12)  # whose ciphers choose the certificate
            context.set_ciphers(ciphers)
            with TlsClient(server.addresses[0], context) as client:
                assert client.fingerprint == shown.fingerprint
                assert ask(client).status == 200
                assert ask(client, host="more.example").status == status
                session = client.sock.session
            with TlsClient(server.addresses[0], context, session=session) as client:
                assert ask(client).status == 200 and client.sock.session_reused
                assert ask(client, host="more.example").status == 421


def test_421_where_other_certificates_of_clients_are_asked_for(connect, pairs):
    with connect("a.example") as client:
        assert who(client, "asks.example") == 421
    with connect("asks.example", pair=pairs["client"]) as client:
        assert who(client, "asks.example") == "asks"
        assert who(client, "may.example") == 421  # its certificate covers that, its policy differs
        assert who(client, "shared.example") == 421


def test_421_where_the_connection_speaks_a_version_that_the_host_refuses(serve, ca, tmp_path):
    pair = ca.make("both", "localhost", "old.example")
    server = serve({"Listen": "127.0.0.1:0 tls"}, config={
        "sites/default": host(populate(tmp_path / "r", FILES), "localhost", pair.keys(Profile="modern")),
        "sites/old": host(populate(tmp_path / "s", FILES), "old.example", pair.keys()),
    })  # fmt: skip
    for version, status in ((V12, 421), (V13, 200)):
        context = ca.context(minimum_version=version, maximum_version=version)
        with TlsClient(server.addresses[0], context, "old.example") as client:
            assert ask(client, host="old.example").status == 200
            assert ask(client, host="localhost").status == status


def test_no_421_for_the_name_of_the_handshake(connect):
    """Though the certificate does not cover it: the client has accepted that. Others are not meant."""
    with connect("nobody.example") as client:
        assert who(client, "nobody.example") == who(client, "NOBODY.example:443") == "default"
        for other in "somebody.example", "x.nobody.example", "192.0.2.1", "[2001:db8::1]":
            assert who(client, other) == 421
        assert who(client, "localhost") == "default"  # covered
    with connect("none.example") as client:
        assert who(client, "none.example") == "none"
        assert who(client, "nobody.example") == 421


def test_421_for_an_address_that_asks_for_more(serve, ca, pairs, tmp_path):
    root = populate(tmp_path / "r", FILES)
    tls = pairs["asks"].keys(ClientCertificate="Required", ClientCA=ca.cert)
    server = serve({"Listen": "127.0.0.1:0 tls"}, config={
        "sites/default": host(root, "localhost", pairs["localhost"].keys()),
        "sites/address": host(root, "192.0.2.9", tls),
        "sites/modern": host(root, "192.0.2.10", pairs["localhost"].keys(Profile="modern")),
    })  # fmt: skip
    for version, status in ((V12, 421), (V13, 200)):
        context = ca.context(minimum_version=version, maximum_version=version)
        with TlsClient(server.addresses[0], context, None) as client:
            assert ask(client, host="192.0.2.8").status == 200
            assert ask(client, host="192.0.2.9").status == 421
            assert ask(client, host="192.0.2.10").status == status


# ── certificates of clients ──


def test_a_required_certificate(connect, pairs, strangers):
    with connect("asks.example", pair=pairs["client"]) as client:
        assert who(client, "asks.example") == "asks"
    for wrong in (None, strangers.make("eve")):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            with connect("asks.example", pair=wrong) as client:  # TLS 1.3 tells only afterwards
                who(client, "asks.example")


def test_an_optional_certificate(connect, pairs, strangers):
    for pair in (None, pairs["client"]):
        with connect("may.example", pair=pair) as client:
            assert who(client, "may.example") == "may"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        with connect("may.example", pair=strangers.make("mallory")) as client:
            who(client, "may.example")


def test_hosts_that_do_not_ask_ignore_certificates(connect, strangers):
    with connect("a.example", pair=strangers.make("trent")) as client:
        assert who(client, "a.example") == "a"


# ── tickets ──


def resume(client_of, name, session, **rest):
    with client_of(name, session=session, **rest) as client:
        answer = ask(client, host=name)
        return client.sock.session_reused, answer.status


@pytest.mark.concurrent
@pytest.mark.parametrize("version", [V12, V13])
def test_sessions_are_resumed_across_workers(connect, ca, version):
    context = ca.context(minimum_version=version, maximum_version=version)
    with connect(context=context) as client:
        ask(client)
        session = client.sock.session
    for _ in range(12):  # two workers: all of them in one is one in two thousand
        assert resume(connect, "localhost", session, context=context) == (True, 200)


def test_each_resumption_brings_a_ticket_for_the_next(tls_server, tmp_path):
    """Tickets of TLS 1.3 are for one use (RFC 8446 §C.4): a client without one needs a full handshake."""
    ticket, tickets = tmp_path / "ticket", set()
    for resumed in (False, True, True, True):
        known = ["-sess_in", ticket] if resumed else []
        done = openssl(
            "s_client", "-connect", f"127.0.0.1:{tls_server.port}", "-servername", "localhost", "-tls1_3", "-ign_eof",
            *known, "-sess_out", ticket, data=bytes(request("/who", CLOSE)),
        )  # fmt: skip
        assert (b"Reused, TLSv1.3" in done) is resumed
        assert done.count(b"Post-Handshake New Session Ticket arrived") == 1
        tickets.add(ticket.read_bytes())
    assert len(tickets) == 4


@pytest.mark.parametrize("version", [V12, V13])
def test_sessions_stay_with_their_host(connect, ca, pairs, version):
    context = ca.context(minimum_version=version, maximum_version=version, pair=pairs["client"])
    with connect("asks.example", context=context) as client:
        ask(client, host="asks.example")
        session = client.sock.session
    assert resume(connect, "asks.example", session, context=context) == (True, 200)
    for name in ("may.example", "a.example", "localhost"):
        assert resume(connect, name, session, context=context) == (False, 200)


def test_a_session_without_a_certificate_is_no_way_in(connect, ca):
    """CVE-2025-23419: a ticket of a host that asks for nothing, at one that requires a certificate."""
    context = ca.context()
    with connect("localhost", context=context) as client:
        ask(client)
        session = client.sock.session
    with pytest.raises((ssl.SSLError, ConnectionError)):
        resume(connect, "asks.example", session, context=context)


@pytest.mark.parametrize("way", ["Required", "Optional"])
def test_no_session_outlives_the_certificate_of_its_client(serve, ca, pairs, tmp_path, way):
    root = populate(tmp_path / "r", FILES)
    text = host(root, "localhost", pairs["localhost"].keys(ClientCertificate=way, ClientCA=ca.cert))
    server = serve({"Listen": "127.0.0.1:0 tls"}, config={"sites/default": text})
    end = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + PHASE
    pair = ca.make("short", subject="/CN=short", end=f"{end:%Y%m%d%H%M%SZ}")
    known = {}
    for version in (V12, V13):
        context = ca.context(pair=pair, minimum_version=version, maximum_version=version)
        for resumed in (False, True):
            with TlsClient(server.addresses[0], context, session=known.get(context)) as client:
                assert (ask(client).status, client.sock.session_reused) == (200, resumed)
                known[context] = client.sock.session
    await_true(lambda: datetime.datetime.now(datetime.timezone.utc) > end + datetime.timedelta(seconds=1), 60)
    for context, session in known.items():
        with pytest.raises((ssl.SSLError, ConnectionError), match="(?i)certificate.expired"):
            with TlsClient(server.addresses[0], context, session=session) as client:
                ask(client)


def test_resumed_sessions_keep_the_client(serve, ca, pairs, tmp_path):
    server = serve(
        {"Listen": "127.0.0.1:0 tls"},
        config={
            "sites/default": host(populate(tmp_path / "r", FILES), "localhost",
                                  pairs["localhost"].keys(ClientCertificate="Optional", ClientCA=ca.cert),
                                  section("LOGGER", {"AccessLog": tmp_path / "log", "Format":
                                  '"$tls_version $tls_cipher $tls_server_name $tls_client"'})),
        },
    )  # fmt: skip
    context = ca.context(pair=pairs["client"])
    session = None
    for resumed in (False, True):
        with TlsClient(server.addresses[0], context, session=session) as client:
            ask(client)
            assert client.sock.session_reused is resumed  # not known any more once it is closed
            session = client.sock.session
    with TlsClient(server.addresses[0], ca.context(maximum_version=V12)) as client:
        ask(client)
    server.drop_clients()
    lines = await_true(lambda: (tmp_path / "log").exists() and len(rows := (tmp_path / "log").read_text().splitlines())
                       == 3 and rows)  # fmt: skip
    assert lines[0] == lines[1] == r"TLSv1.3 TLS_AES_256_GCM_SHA384 localhost CN=alice,O=Clients\x5c,\x20Inc."
    assert lines[2] == "TLSv1.2 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 localhost -"


@pytest.fixture
def minute(serve, hosts):
    """A server whose tickets last as short as they can."""
    return serve(TLS, listeners=2, config={**hosts, "plugins/tls/tls.conf": section("TLS", {"TicketLifetime": "1m"})})


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_a_ticket_tells_how_long_it_lasts(minute, version):
    done = openssl(
        "s_client", "-connect", f"127.0.0.1:{minute.port}", "-servername", "localhost", version, "-ign_eof",
        data=bytes(request("/hello.txt", CLOSE)),
    )  # fmt: skip
    assert b"lifetime hint: 60 (seconds)" in done


@pytest.mark.slow
def test_keys_of_tickets_rotate(minute, connect, ca):
    """A ticket of the key before is good as long as it lasts, and no longer."""
    context, sessions, began = ca.context(maximum_version=V12), [], time.monotonic()
    for after in (0, 40):
        await_true(lambda after=after: time.monotonic() - began > after, 60)
        with connect(server=minute, context=context) as client:
            ask(client)
            sessions.append(client.sock.session)
    await_true(lambda: time.monotonic() - began > 65, 60)
    reused = [resume(connect, "localhost", session, context=context, server=minute)[0] for session in sessions]
    assert reused == [False, True]


def test_tickets_survive_a_reload(serve, hosts, ca):
    server = serve(TLS, config=hosts, listeners=2)
    context = ca.context()
    with TlsClient(server.addresses[0], context) as client:
        ask(client)
        session = client.sock.session
    reload(server)
    with TlsClient(server.addresses[0], context, session=session) as client:
        assert ask(client).status == 200 and client.sock.session_reused


def test_machines_share_tickets_by_a_file(serve, hosts, ca, tmp_path):
    keys = tmp_path / "tickets"
    first, second = os.urandom(80), os.urandom(80)

    def start(content):
        keys.write_bytes(content)
        keys.chmod(0o600)
        return serve(TLS, config={**hosts, "plugins/tls/tls.conf": section("TLS", {"TicketKeys": keys})}, listeners=2)

    context = ca.context()
    one = start(first)
    with TlsClient(one.addresses[0], context) as client:
        ask(client)
        session = client.sock.session
    for content, resumed in ((second + first, True), (second, False)):
        other = start(content)
        with TlsClient(other.addresses[0], context, session=session) as client:
            assert (ask(client).status, client.sock.session_reused) == (200, resumed)


# ── protocols, OCSP ──


def test_protocols(connect):
    first = "h2" if build.speaks("h2") else "http/1.1"
    with connect(alpn=["http/1.1", "h2"]) as client:
        assert client.sock.selected_alpn_protocol() == first  # ours in our order
    for offer, chosen in ((["http/1.1"], "http/1.1"), (["foo", "http/1.1"], "http/1.1"), (None, None)):
        with connect(alpn=offer) as client:
            assert client.sock.selected_alpn_protocol() == chosen
            assert ask(client).status == 200


def test_a_client_that_wants_another_protocol_is_refused(tls_server, ca):
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
        TlsClient(tls_server.addresses[0], ca.context(alpn=["smtp", "http/0.9"]))


def test_where_http2_is_switched_off(serve, hosts, ca):
    """A client that knows nothing else is refused, and not answered in a language that it did not offer."""
    server = serve({"Listen": "127.0.0.1:0 tls"}, config={**hosts, **HTTP1_ONLY})
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
        TlsClient(server.addresses[0], ca.context(alpn=["h2"]))
    for offer, chosen in ((["h2", "http/1.1"], "http/1.1"), (None, None)):
        with TlsClient(server.addresses[0], ca.context(alpn=offer)) as client:
            assert client.sock.selected_alpn_protocol() == chosen
            client.assert_open()


def test_ocsp_responses_are_stapled(tls_server):
    for signature in ("ECDSA+SHA256", "RSA-PSS+SHA256"):
        done = openssl(
            "s_client", "-connect", f"127.0.0.1:{tls_server.port}", "-status", "-servername", "localhost",
            "-sigalgs", signature, data=b"",
        )  # fmt: skip
        assert b"OCSP Response Status: successful" in done and b"Cert Status: good" in done
    address = f"127.0.0.1:{tls_server.port}"
    done = openssl("s_client", "-connect", address, "-status", "-servername", "a.example", data=b"")
    assert b"OCSP response: no response sent" in done


def show_staple(server):
    return openssl(
        "s_client", "-connect", f"127.0.0.1:{server.port}", "-status", "-servername", "localhost", data=b""
    )


@pytest.mark.parametrize(
    "status, shown",
    [("R", b"Cert Status: revoked"), (None, b"OCSP response: no response sent")],
    ids=["revoked", "unknown"],
)
def test_what_the_issuer_denies(serve, ca, pairs, tmp_path, status, shown):
    """That it has revoked the certificate is for clients to know; that it knows nothing is nothing."""
    keys = pairs["localhost"].keys(OCSPFile=ca.staple(pairs["localhost"], status=status))
    server = serve({"Listen": "127.0.0.1:0 tls"}, config={"sites/default": host(tmp_path, "localhost", keys)})
    assert shown in show_staple(server)


def test_ocsp_responses_of_others_are_not_stapled(serve, ca, pairs, strangers, tmp_path):
    keys = pairs["a"].keys(OCSPFile=ca.staple(pairs["a"], signer=strangers), CertificateChain=ca.cert)
    server = serve({"Listen": "127.0.0.1:0 tls"}, config={"sites/default": host(tmp_path, "localhost", keys)})
    assert b"OCSP response: no response sent" in show_staple(server)


def test_ocsp_responses_end(serve, ca, tmp_path):
    pair = ca.make("stapled", "localhost")
    root = populate(tmp_path / "r", FILES)
    end = datetime.datetime.now(datetime.timezone.utc) + PHASE
    text = host(root, "localhost", pair.keys(OCSPFile=ca.staple(pair, f"{end:%Y%m%d%H%M%SZ}")))
    server = serve({"Listen": "127.0.0.1:0 tls"}, config={"sites/default": text})
    assert b"Cert Status: good" in show_staple(server)
    await_true(lambda: datetime.datetime.now(datetime.timezone.utc) > end + datetime.timedelta(seconds=1), 60)
    assert b"OCSP response: no response sent" in show_staple(server)


def test_ocsp_responses_begin(serve, ca, tmp_path):
    pair = ca.make("prepared", "localhost")
    root = populate(tmp_path / "r", FILES)
    begin = datetime.datetime.now(datetime.timezone.utc) + PHASE
    text = host(root, "localhost", pair.keys(OCSPFile=ca.staple(pair, begin=f"{begin:%Y%m%d%H%M%SZ}")))
    server = serve({"Listen": "127.0.0.1:0 tls"}, config={"sites/default": text})
    assert b"OCSP response: no response sent" in show_staple(server)
    await_true(lambda: datetime.datetime.now(datetime.timezone.utc) > begin + datetime.timedelta(seconds=1), 60)
    assert b"OCSP Response Status: successful" in show_staple(server)


# ── HTTP where HTTPS is spoken, and the other way round ──


@pytest.mark.concurrent
@pytest.mark.parametrize("pieces", [1, 1000])
def test_plain_http_at_the_port_of_tls(tls_server, pieces):
    with tls_server.connect(OVER) as client:
        data = request("/hello.txt")
        for i in range(0, len(data), max(1, len(data) // pieces)):
            client.send(data[i : i + max(1, len(data) // pieces)])
        answer = client.response()
        assert (answer.status, answer.closes) == (400, True)
        assert b"https://" in answer.body and b"plain HTTP" in answer.body
        client.assert_closed()
    tls_server.settle()


def test_plain_http_that_comes_slowly(tls_server):
    """The failed handshake is behind the connection when the rest of the head comes."""
    with tls_server.connect(OVER) as client, tls_server.connect(CLEAR) as other:
        data = request("/hello.txt")
        client.send(data[:9])
        assert other.ask("/hello.txt", host="localhost").status == 200  # so those nine bytes were looked at
        client.send(data[9:])
        assert client.response().status == 400
        client.assert_closed()
    tls_server.settle()


def test_redirect_to_https(tls_server):
    """Without the port, which the system has chosen here, and the configuration cannot know."""
    with tls_server.connect(CLEAR) as client:
        answer = client.ask("/who.txt?a=%20b", host="a.example:8080")
        assert (answer.status, answer["Location"]) == (301, "https://a.example/who.txt?a=%20b")
        answer = client.ask("/x%25y z/".replace(" ", "%20"), method="POST", host="a.example", body=b"1")
        assert (answer.status, answer["Location"]) == (308, "https://a.example/x%25y%20z/")
        for same in ("/a%3bb%2Bc%26d?", "/a//b/../c", "/a%2Fb?c=%2F", "/%7e?", "//evil.example/%2e%2e/"):
            assert client.ask(same, host="a.example")["Location"] == f"https://a.example{same}"
        assert client.ask("/hello.txt").status == 200  # another host
    tls_server.settle()


@pytest.mark.parametrize(
    "asked, named",
    [
        ("evil.example", "localhost"),
        ("LOCALHOST:80", "LOCALHOST"),
        ("127.0.0.1:8080", "127.0.0.1"),
        ("192.0.2.1", "localhost"),
        ("x.wild.example", "x.wild.example"),
        ("wild.example", "localhost"),
        ("evil.com%2f.wild.example", "localhost"),
        ("evil.com'.wild.example", "localhost"),
        ("*.wild.example", "localhost"),
    ],
)
def test_redirects_name_no_foreign_host(serve, pairs, tmp_path, asked, named):
    root = populate(tmp_path / "r", FILES)
    text = host(root, "*.wild.example localhost", pairs["localhost"].keys(Redirect="https"))
    server = serve({"Listen": ["127.0.0.1:0", "127.0.0.1:0 tls"]}, config={"sites/default": text}, listeners=2)
    with server.connect(0) as client:
        assert client.ask("/hello.txt", host=asked)["Location"] == f"https://{named}/hello.txt"


def test_redirects_of_a_host_without_a_name(serve, pairs, tmp_path):
    root = populate(tmp_path / "r", FILES)
    text = section("HOST", {"DocumentRoot": root}) + section("TLS", pairs["localhost"].keys(Redirect="https"))
    server = serve({"Listen": ["127.0.0.1:0", "127.0.0.1:0 tls"]}, config={"sites/default": text}, listeners=2)
    server.wait_log('"Redirect https" needs a ServerName')
    with server.connect(0) as client:
        assert client.ask("/hello.txt", host="127.0.0.1")["Location"] == "https://127.0.0.1/hello.txt"
        assert client.ask("/hello.txt", host="evil.example").status == 400


def test_redirects_name_the_port(serve, ca, pairs, tmp_path):
    port = free_port()
    text = host(populate(tmp_path / "r", FILES), "localhost", pairs["localhost"].keys(Redirect="https"))
    server = serve({"Listen": ["127.0.0.1:0", f"127.0.0.1:{port} tls"]}, config={"sites/default": text}, listeners=2)
    with server.connect(0) as client:
        assert client.ask("/hello.txt")["Location"] == f"https://localhost:{port}/hello.txt"
    with TlsClient(server.addresses[1], ca.context()) as client:
        assert ask(client).status == 200


def test_redirects_behind_a_proxy(serve, pairs, tmp_path):
    """What a trusted proxy says of the client's scheme counts; of the handshake of a WebSocket it may say wss."""
    text = host(populate(tmp_path / "r", FILES), "localhost", pairs["localhost"].keys(Redirect="https"))
    settings = {"Listen": ["127.0.0.1:0", "127.0.0.1:0 tls"], "TrustedProxies": "127.0.0.1"}
    server = serve(settings, config={"sites/default": text}, listeners=2)
    rows = [("https", 200), ("wss", 200), ("WSS", 200), ("http", 301), ("ws", 301), ("on", 301)]
    with server.connect(0) as client:
        for scheme, status in rows:
            got = client.ask("/hello.txt", "X-Forwarded-For: 192.0.2.1", f"X-Forwarded-Proto: {scheme}")
            assert got.status == status, scheme


def test_strict_transport_security(connect, tls_server):
    expected = "max-age=31536000; includeSubDomains; preload"
    with connect("a.example") as client:
        for target in ("/hello.txt", "/nothing"):
            assert ask(client, target, "a.example")["Strict-Transport-Security"] == expected
    with tls_server.connect(CLEAR) as client:
        assert client.ask("/", host="a.example")["Strict-Transport-Security"] is None
    with connect("localhost") as client:
        assert ask(client)["Strict-Transport-Security"] is None


def test_defaults_for_all_hosts(serve, ca, pairs, tmp_path):
    """Profile, StrictTransportSecurity and Redirect of the server hold for hosts that do not set them; also without
    a section [TLS] of their own. A reload changes them."""
    root = populate(tmp_path / "r", FILES)
    defaults = {"Profile": "modern", "StrictTransportSecurity": "30d", "Redirect": "https"}
    own = {"Profile": "intermediate", "StrictTransportSecurity": "Off", "Redirect": "Off"}
    config = {
        "plugins/tls/tls.conf": section("TLS", defaults),
        "sites/default": host(root, "localhost", pairs["localhost"].keys()),
        "sites/a": host(root, "a.example", pairs["a"].keys(**own)),
        "sites/asks": host(root, "asks.example", pairs["asks"].keys(StrictTransportSecurity="1d", Profile="server")),
        "sites/none": host(root, "none.example"),
    }
    server = serve({"Listen": ["127.0.0.1:0", "127.0.0.1:0 tls"]}, config=config, listeners=2)

    def describe(name, sni=None):
        """Whether TLS 1.2 is refused, the header, and the status without TLS."""
        with server.connect(0) as client:
            status = client.ask("/hello.txt", host=name).status
        with TlsClient(server.addresses[1], ca.context(), sni or name) as client:
            hsts = ask(client, host=name)["Strict-Transport-Security"]
        try:
            TlsClient(server.addresses[1], ca.context(maximum_version=V12), sni or name).close()
        except ssl.SSLError:
            return True, hsts, status
        return False, hsts, status

    month = "max-age=2592000"
    assert describe("localhost") == (True, month, 301)
    assert describe("a.example") == (False, None, 200)
    assert describe("asks.example") == (True, "max-age=86400", 301)
    assert describe("none.example", "localhost") == (True, month, 301)
    (server.conf / "plugins/tls/tls.conf").write_text(section("TLS", {"StrictTransportSecurity": "Off"}))
    reload(server)
    assert describe("localhost") == (False, None, 200)
    assert describe("asks.example") == (False, "max-age=86400", 200)


# ── bytes ──


@pytest.mark.concurrent
@pytest.mark.parametrize("version", [V12, V13])
def test_large_downloads(connect, version):
    with connect(minimum_version=version, maximum_version=version) as client:
        for _ in range(2):
            assert ask(client, "/big.bin").body == BIG
        assert ask(client, "/big.bin", "localhost", "Range: bytes=100000-1999999").body == BIG[100000:2000000]


def test_a_slow_reader_gets_every_byte(ca, tls_server):
    with TlsClient(tls_server.addresses[0], ca.context(), rcvbuf=4096) as slow:
        slow.send(request("/big.bin"))
        with TlsClient(tls_server.addresses[0], ca.context()) as other:  # and no other connection waits for it
            assert ask(other, "/big.bin").body == BIG
        assert slow.response().body == BIG
    tls_server.settle()


@pytest.mark.parametrize("version", [V12, V13])
@pytest.mark.parametrize("fields", [(CLOSE,), ()])
def test_a_slow_reader_hears_that_nothing_is_missing(serve, ca, pairs, tmp_path, version, fields):
    """The socket is full when the response ends: close_notify waits for the client, and so does the close."""
    text = host(populate(tmp_path / "r", {"large": BIG[:400_000]}), "localhost", pairs["localhost"].keys())
    settings = {**TLS, "MaxKeepAliveRequest": 1, "LingerTimeout": "300ms"}
    server = serve(settings, config={"sites/default": text})
    context = ca.context(minimum_version=version, maximum_version=version)
    with TlsClient(server.addresses[0], context, rcvbuf=4096) as slow:
        slow.send(request("/large", *fields))
        for _ in range(4):  # it reads with pauses, which are longer than LingerTimeout in all
            slow.exactly(20_000)
            time.sleep(0.2)
        slow.rest()  # fails without close_notify


@pytest.mark.concurrent
def test_pipelining(connect):
    with connect() as client:
        client.send(request("/hello.txt") * 200 + request("/big.bin") + request("/hello.txt", CLOSE))
        answers = client.responses()
        assert [a.status for a in answers] == [200] * 202
        assert answers[200].body == BIG


def test_uploads(connect):
    with connect() as client:
        for size in (1, 1000, 16384, 100_000):
            answer = ask(client, "/hello.txt", method="POST", body=b"x" * size)
            assert answer.status == 405
            if answer.closes:
                break
            client.assert_open()


def test_records_grow(tls_server, ca):
    """Small ones at first, so that a client can use what has come; the largest once the window is open."""
    shuttle = Bytes(ca.context())
    with socket.create_connection(tls_server.addresses[0], 60) as sock:
        done, out = shuttle.step()
        while not done:
            sock.sendall(out)
            shuttle.incoming.write(sock.recv(65536))
            done, out = shuttle.step()
        sock.sendall(out + shuttle.write(request("/big.bin", CLOSE)))
        data = b""
        while len(data) < len(BIG):
            data += sock.recv(262144)
    sizes = []
    while len(data) >= 5:
        size = int.from_bytes(data[3:5], "big")
        sizes.append(size)
        data = data[5 + size :]
    assert all(size <= 1400 for size in sizes[:10]) and max(sizes) > 16384
    assert sum(size > 16384 for size in sizes) > 100
    tls_server.settle()


# ── handshakes ──


def test_a_handshake_byte_by_byte(tls_server, ca):
    shuttle = Bytes(ca.context())
    with socket.create_connection(tls_server.addresses[0], 60) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        done, out = shuttle.step()
        while not done:
            for byte in out:
                sock.sendall(bytes([byte]))
            shuttle.incoming.write(sock.recv(65536))
            done, out = shuttle.step()
        for byte in out + shuttle.write(request("/hello.txt", CLOSE)):
            sock.sendall(bytes([byte]))
        text = b""
        while b"Hello, world" not in text:
            shuttle.incoming.write(sock.recv(65536))
            with contextlib.suppress(ssl.SSLWantReadError):
                text += shuttle.object.read(65536)
    tls_server.settle()


@pytest.mark.parametrize(
    "data, alert",
    [
        (b"\x16\x03\x01\x00\x05hello", 10),
        (b"\x16\x03\x01\xff\xff" + b"x" * 100, 22),
        (b"\x17\x03\x03\x00\x10" + b"x" * 16, 10),
        (b"\x80\x2e\x01\x00\x02" + b"\0" * 60, None),
        (b"\0" * 100, None),
        (b"\x15\x03\x03\x00\x02\x02\x28", None),
    ],
    ids=["no hello", "too long", "data", "version 2", "zeros", "alert"],
)
def test_garbage_instead_of_a_handshake(connect, tls_server, data, alert):
    found = alert_of(tls_server.addresses[0], data)
    assert alert in (None, found)
    with connect() as client:  # this does not apply to the next client
        assert ask(client).status == 200


def test_a_failure_does_not_touch_others(connect, tls_server):
    with connect() as client:
        for _ in range(3):
            alert_of(tls_server.addresses[0], b"\x16\x03\x01\x00\x05hello")
            client.assert_open()


def test_renegotiation_is_refused(tls_server):
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{tls_server.port}", "-tls1_2", "-servername", "localhost"],
        input=b"R\n", capture_output=True, timeout=120,
    )  # fmt: skip
    assert b"RENEGOTIATING" in done.stdout + done.stderr and b"no renegotiation" in done.stderr
    tls_server.settle()


def test_neither_compression_nor_early_data(tls_server):
    done = openssl("s_client", "-connect", f"127.0.0.1:{tls_server.port}", "-servername", "localhost", data=b"")
    assert b"Compression: NONE" in done and b"Max Early Data: 0" in done or b"Early data was not sent" in done


def test_a_handshake_takes_no_longer_than_it_may(serve, hosts, ca):
    server = serve({**TLS, "HandshakeTimeout": "300ms", "DeferAccept": 0}, config=hosts, listeners=2)
    shuttle = Bytes(ca.context())
    _, hello = shuttle.step()
    for data in (b"", hello[:20], hello):
        with server.connect(0) as client:
            client.send(data)
            client.assert_gone()


def test_the_oldest_handshake_gives_way(serve, hosts, ca):
    server = serve({**TLS, "MaxHandshakes": 2, "DeferAccept": 0, "HandshakeTimeout": "60s"}, config=hosts, listeners=2)
    with TlsClient(server.addresses[0], ca.context()) as served:
        served.assert_open()
        waiting = []
        for _ in range(3):
            waiting.append(server.connect(0))
            waiting[-1].send(b"\x16\x03\x01")
            served.assert_open()  # the server has seen it
        waiting[0].assert_gone()
        served.assert_open()
        waiting[1].assert_quiet()


@pytest.mark.concurrent
def test_a_flood_of_handshakes_leaves_time_for_others(serve, hosts, ca):
    """All at once in one worker: established connections are answered before the last handshake."""
    server = serve({**TLS, "Workers": 1}, config=hosts, listeners=2)
    with TlsClient(server.addresses[0], ca.context()) as served:
        served.assert_open()
        shuttles = [Bytes(ca.context()) for _ in range(300)]  # a second of handshakes with sanitizers
        hellos = [shuttle.step()[1] for shuttle in shuttles]
        flood = [server.connect(0) for _ in shuttles]
        os.kill(server.pid, signal.SIGSTOP)
        for client, hello in zip(flood, hellos):
            client.send(hello)
        served.send(request("/hello.txt"))
        os.kill(server.pid, signal.SIGCONT)
        assert served.response().status == 200
        flood[-1].sock.setblocking(False)
        answered = 0
        for client in flood:
            client.sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                answered += bool(client.sock.recv(1))
        assert answered < len(flood)


def test_proxy_header_before_the_handshake(serve, hosts, ca, tmp_path):
    log = section("LOGGER", {"AccessLog": tmp_path / "log", "Format": '"$client $tls_version"'})
    server = serve(
        {"Listen": "127.0.0.1:0 tls proxy", "TrustedProxies": "127.0.0.1"},
        config={**hosts, "sites/default": hosts["sites/default"] + log},
    )
    header = b"PROXY TCP4 192.0.2.7 192.0.2.8 1000 443\r\n"
    with TlsClient(server.addresses[0], ca.context(), first=header) as client:
        assert ask(client).status == 200
    await_true(lambda: (tmp_path / "log").exists() and (tmp_path / "log").read_text() == "192.0.2.7 TLSv1.3\n")


# ── the end ──


@pytest.mark.parametrize("version", [V12, V13])
def test_the_end_sends_close_notify(connect, version):
    """Python raises where the server leaves without its close_notify."""
    with connect(minimum_version=version, maximum_version=version) as client:
        client.send(request("/hello.txt", CLOSE))
        assert [a.status for a in client.responses()] == [200]


def test_an_idle_connection_ends_politely(serve, hosts, ca):
    server = serve({**TLS, "KeepAliveTimeout": "200ms"}, config=hosts, listeners=2)
    with TlsClient(server.addresses[0], ca.context()) as client:
        client.assert_open()
        client.assert_closed()


def test_an_answer_that_was_cut_off_has_no_end(serve, hosts, ca, tmp_path):
    server = serve({**TLS, "SendTimeout": "300ms", "LogLevel": "debug"}, config=hosts, listeners=2)
    root = re.search(r"DocumentRoot (\S+)", hosts["sites/default"])[1]
    with open(f"{root}/endless.bin", "wb") as file:
        file.truncate(100_000_000)
    with TlsClient(server.addresses[0], ca.context(), rcvbuf=4096) as client:
        client.send(request("/endless.bin"))
        server.wait_log(r"write to closed")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            client.rest()


def test_clients_that_leave_in_every_way(connect, tls_server):
    for version in (V12, V13):
        for leave in ("unwrap", "close", "reset", "shut"):
            client = connect(minimum_version=version, maximum_version=version)
            ask(client)
            if leave == "unwrap":
                with contextlib.suppress(OSError):
                    client.sock.unwrap()
            elif leave == "shut":
                client.sock.shutdown(socket.SHUT_WR)
            elif leave == "reset":
                client.reset()
            client.close()
    with connect() as client:
        client.assert_open()


def test_a_request_that_was_cut_off_is_none(connect, tls_server):
    with connect() as client:
        client.send(b"POST /hello.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc")
        client.sock.shutdown(socket.SHUT_WR)
        client.assert_gone()


# ── reloads ──


@pytest.mark.concurrent
def test_a_reload_replaces_certificates_and_drops_no_client(serve, ca, pairs, tmp_path):
    def text(pair):
        return host(tmp_path / "r", "localhost", pair.keys())

    populate(tmp_path / "r", FILES)
    settings = {**TLS, "Workers": 2, "HandshakeTimeout": "60s", "KeepAliveTimeout": "60s"}
    server = serve(settings, config={"sites/default": text(pairs["localhost"])}, listeners=2)
    shuttle = Bytes(ca.context())
    _, hello = shuttle.step()
    with TlsClient(server.addresses[0], ca.context()) as old, server.connect(0) as amid:
        amid.send(hello[:40])
        old.assert_open()
        new = ca.make("renewed", "localhost")
        (server.conf / "sites" / "default").write_text(text(new))
        reload(server)

        def is_new():
            with TlsClient(server.addresses[0], ca.context()) as client:
                return client.fingerprint == new.fingerprint

        await_true(lambda: all(is_new() for _ in range(8)), 30)
        old.assert_open()
        assert old.fingerprint == pairs["localhost"].fingerprint
        amid.send(hello[40:])
        shuttle.incoming.write(amid.sock.recv(65536))
        done, out = shuttle.step()
        assert done  # under the generation that it began with, whose files are gone
        amid.send(out + shuttle.write(request("/hello.txt", CLOSE)))
        assert amid.sock.recv(10)


@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
def test_http2_is_switched_off_amid_a_handshake(serve, ca, hosts):
    """The client was promised it, and must not get HTTP/1 instead."""
    server = serve({**TLS, "HandshakeTimeout": "60s"}, config=hosts, listeners=2)
    (server.conf / "plugins" / "static").mkdir(parents=True)
    (server.conf / "plugins" / "static" / "static.conf").write_text(section("HTTP2", {"Enabled": "Off"}))
    client = Bytes(ca.context(alpn=["h2", "http/1.1"]))
    with socket.create_connection(server.addresses[OVER], 60) as sock:
        sock.sendall(client.step()[1])
        client.incoming.write(sock.recv(65536))
        reload(server)
        done, last = client.step()
        assert done and client.object.selected_alpn_protocol() == "h2"
        sock.sendall(last + client.write(frames.PREFACE + frames.settings()))
        with contextlib.suppress(ConnectionResetError):
            while piece := sock.recv(65536):
                client.incoming.write(piece)
    with contextlib.suppress(ssl.SSLError):
        said = client.object.read(65536)
        assert not said, said


def test_a_reload_with_a_wrong_certificate_changes_nothing(serve, ca, pairs, tmp_path):
    cert = tmp_path / "own.pem"
    cert.write_text(pairs["localhost"].cert.read_text())
    text = host(populate(tmp_path / "r", FILES), "localhost", pairs["localhost"].keys(Certificate=cert))
    server = serve({"Listen": "127.0.0.1:0 tls"}, config={"sites/default": text})
    cert.write_text("nonsense\n")
    reload(server, "holds no certificate in PEM")
    with TlsClient(server.addresses[0], ca.context()) as client:
        client.assert_open()


@pytest.mark.concurrent
def test_connections_that_one_thread_accepts(serve, hosts, ca):
    server = serve({**TLS, "Scheduler": "fair", "Workers": 2}, config=hosts, listeners=2)
    clients = [TlsClient(server.addresses[0], ca.context()) for _ in range(8)]
    for client in clients:
        client.assert_open()
        assert ask(client, "/big.bin").body == BIG
        client.close()


# ── without a configuration ──


def test_one_shot_https(site_root):
    server = Server("--https", "--one-shot", site_root, "-l", "127.0.0.1:0")
    logged = server.wait_log(
        r"made a self-signed certificate, .* for DNS:localhost,.*IP:127\.0\.0\.1,IP:::1, SHA-256 fingerprint (\S+)"
    )
    context = ssl._create_unverified_context()
    with TlsClient(server.addresses[0], context) as client:
        client.assert_open()
        assert logged[0][1].replace(":", "").lower() == client.fingerprint
    reload(server)
    assert server.log.count("made a self-signed certificate") == 1
    with TlsClient(server.addresses[0], context) as client:
        assert logged[0][1].replace(":", "").lower() == client.fingerprint
    server.settle()
    server.stop()


def test_https_is_for_one_shot():
    done = run("--https")
    assert done.returncode == 2 and "--one-shot" in done.stderr


def test_build_information():
    text = run("-b").stdout
    assert re.search(r"OpenSSL 3\.\S+ .*; the kernel (cannot encrypt|encrypts what is sent) \(kTLS\)", text)
