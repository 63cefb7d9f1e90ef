# SPDX-License-Identifier: Apache-2.0
"""What an operator gets wrong about certificates and keys, reported with file and host."""

import os
import re
import signal
import socket
import ssl

import pytest

from harness import build
from harness.certificates import Authority, TlsClient, openssl
from harness.content import populate
from harness.server import run, section, write_config

TLS = {"Listen": "127.0.0.1:0 tls"}

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no tls"),
]


@pytest.fixture(scope="module")
def other(ca):
    return ca.make("other", "other.example")


@pytest.fixture
def check(tmp_path):
    """Runs -t on a host with these keys of [TLS]; returns its exit code and what it said."""

    def run_it(keys, *, server=TLS, names="localhost", tls=None):
        root = populate(tmp_path / "root", {"a.txt": b"a"})
        text = section("HOST", {"ServerName": names, "DocumentRoot": root} if names else {"DocumentRoot": root})
        text += section("TLS", keys) if keys is not None else ""
        files = {"sites/default": text}
        if tls:
            files["plugins/tls/tls.conf"] = section("TLS", tls)
        done = run("-t", "-c", write_config(tmp_path / "conf", root, server, files=files))
        return done.returncode, done.stderr

    return run_it


def own(tmp_path, name, content, mode=0o600):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)
    return path


def test_what_is_right(check, certificate):
    assert check(certificate.keys()) == (0, "monkey: the configuration is fine\n")


LINE = r"sites/default:\d+:\d+: {}: .*"


def wrong(result, sentence, severity="error", code=1):
    assert result[0] == code, result
    assert re.search(LINE.format(severity) + sentence, result[1]), result[1]


def test_no_host_has_a_certificate(check):
    code, text = check(None)
    assert code == 1
    assert re.search(r"monkey\.conf:\d+:\d+: error: no host has a certificate for this listener", text), text


def test_a_certificate_needs_a_key(check, certificate):
    wrong(check({"Certificate": certificate.cert}), 'there is no "CertificateKey" for this "Certificate"')
    wrong(check({"CertificateKey": certificate.key}), 'there is no "Certificate" for this "CertificateKey"')
    wrong(
        check({"Certificate": [certificate.cert, certificate.cert], "CertificateKey": certificate.key}),
        'there is no "CertificateKey" for this "Certificate", but one for another',
    )


def test_files_that_are_not_there(check, certificate, tmp_path):
    missing = tmp_path / "missing.pem"
    for key, what in (("Certificate", "certificate"), ("CertificateKey", "private key")):
        wrong(
            check(certificate.keys(**{key: missing})),
            f"host localhost: the {what} {missing} cannot be read: No such file",
        )


def test_a_start_with_a_wrong_key(certificate, other, tmp_path):
    """The same sentence as with -t, and no server."""
    root = populate(tmp_path / "root", {"a.txt": b"a"})
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
    text += section("TLS", certificate.keys(CertificateKey=other.key))
    done = run("-c", write_config(tmp_path / "conf", root, TLS, files={"sites/default": text}))
    wrong(
        (done.returncode, done.stderr),
        r"host localhost: the private key \S+ does not belong to the certificate \S+",
    )
    assert "listening" not in done.stderr


def test_a_host_without_a_name(check, certificate, tmp_path):
    wrong(check(certificate.keys(Certificate=tmp_path / "x"), names=None), "host without a name: the certificate")


@pytest.mark.parametrize("key, what", [("Certificate", "certificate"), ("CertificateKey", "private key")])
def test_files_that_hold_something_else(check, certificate, tmp_path, key, what):
    wrong(check(certificate.keys(**{key: own(tmp_path, "e", "")})), rf"the {what} \S+ is empty")
    wrong(check(certificate.keys(**{key: tmp_path})), rf"the {what} \S+ is not a regular file")
    os.mkfifo(tmp_path / "fifo", 0o600)
    wrong(check(certificate.keys(**{key: tmp_path / "fifo"})), rf"the {what} \S+ is not a regular file")
    wrong(
        check(certificate.keys(**{key: own(tmp_path, "n", "nonsense\n")})),
        rf"the {what} \S+ holds no {what} in PEM\n",
    )
    broken = own(tmp_path, "b", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    wrong(check(certificate.keys(**{key: broken})), rf"the {what} \S+ holds (no|a) ")
    with open(tmp_path / "large", "wb") as file:
        file.truncate(5 << 20)
    (tmp_path / "large").chmod(0o600)
    wrong(check(certificate.keys(**{key: tmp_path / "large"})), rf"the {what} \S+ has more than 4194304 bytes")


CERTIFICATE, KEY, UNLOCK = "certificate", "private key", ["-passin", "pass:secret"]
# what operators have instead of PEM: how it is made, what is said, what the advice asks for, which files it helps
NOT_PEM = {
    "certificate": ("x509 -in {0.cert} -outform DER", "is a certificate in DER", [], [CERTIFICATE]),
    "key": ("pkey -in {0.key} -outform DER", "is a private key in DER", [], [KEY]),
    "locked key": (
        "pkcs8 -topk8 -in {0.key} -outform DER -passout pass:secret",
        "is a private key in DER with a passphrase",
        UNLOCK,
        [KEY],
    ),
    "PKCS#12": (
        "pkcs12 -export -in {0.cert} -inkey {0.key} -passout pass:secret", "is in PKCS#12", UNLOCK, [CERTIFICATE, KEY]
    ),
    "PKCS#7": ("crl2pkcs7 -nocrl -certfile {0.cert} -outform DER", "is in PKCS#7", [], [CERTIFICATE]),
}  # fmt: skip


@pytest.mark.parametrize("key, what", [("Certificate", CERTIFICATE), ("CertificateKey", KEY)])
@pytest.mark.parametrize("kind", NOT_PEM)
def test_files_that_are_not_pem(check, certificate, tmp_path, kind, key, what):
    """Each sentence has a command, which helps."""
    made, sentence, answers, helps = NOT_PEM[kind]
    path = own(tmp_path, "der", openssl(*made.format(certificate).split()))
    result = check(certificate.keys(**{key: path}))
    wrong(result, rf"the {what} {path} {sentence}; openssl .* writes")
    command = re.search("; openssl (.*) writes ", result[1])[1].replace("FILE", str(path)).split()
    pem = own(tmp_path, "pem", openssl(*command, *answers))
    assert (check(certificate.keys(**{key: pem}))[0] == 0) == (what in helps)


def test_a_part_of_a_file_in_der(check, certificate, tmp_path):
    for part in certificate.der[:-1], certificate.der[:1], b"0" * 500:
        wrong(check(certificate.keys(Certificate=own(tmp_path, "part", part))), r"holds no certificate in PEM\n")
        wrong(check(certificate.keys(CertificateKey=own(tmp_path, "part", part))), r"holds no private key in PEM\n")


def test_a_key_that_belongs_elsewhere(check, certificate, other):
    wrong(
        check(certificate.keys(CertificateKey=other.key)),
        r"the private key \S+ does not belong to the certificate \S+",
    )


def test_a_key_and_a_certificate_that_changed_places(check, certificate):
    """The certificate may be open to others: that its mode is none of a key says nothing."""
    result = check({"Certificate": certificate.key, "CertificateKey": certificate.cert})
    wrong(result, r"holds a private key and no certificate: the names of both files may be exchanged")
    wrong(result, r"holds a certificate and no private key: the names of both files may be exchanged")
    assert "its mode" not in result[1]


def test_a_key_with_a_passphrase(check, certificate, tmp_path):
    locked = tmp_path / "locked.key"
    openssl("pkey", "-in", certificate.key, "-aes256", "-passout", "pass:secret", "-out", locked)
    locked.chmod(0o600)
    wrong(check(certificate.keys(CertificateKey=locked)), r"the private key \S+ has a passphrase")


@pytest.mark.parametrize("mode, fine", [(0o400, True), (0o600, True), (0o640, True), (0o440, True)] + [
    (mode, False) for mode in (0o604, 0o602, 0o644, 0o660, 0o666, 0o601, 0o610)
])  # fmt: skip
def test_keys_that_others_may_read(check, certificate, tmp_path, mode, fine):
    key = own(tmp_path, "key", certificate.key.read_bytes(), mode)
    result = check(certificate.keys(CertificateKey=key))
    if fine:
        assert result[0] == 0
    else:
        wrong(result, rf"the private key {key} is open to others: its mode is {mode:03o}, .*chmod 600, or 640")


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_a_key_that_the_user_cannot_read(certificate, open_folder):
    """At the start root reads it; what a reload would meet is reported by -t."""
    root = populate(open_folder / "root", {"a.txt": b"a"})
    key = own(open_folder, "key", certificate.key.read_bytes())
    cert = own(open_folder, "cert", certificate.cert.read_bytes(), 0o644)
    conf = write_config(
        open_folder / "conf", root, {**TLS, "User": "nobody"},
        files={"sites/default": section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
               + section("TLS", {"Certificate": cert, "CertificateKey": key})},
    )  # fmt: skip
    done = run("-t", "-c", conf, program=build.for_others())
    assert done.returncode == 0, done.stderr
    assert re.search(r"the private key \S+ cannot be read: Permission denied", done.stderr), done.stderr
    assert "a reload runs as that user and would be refused" in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_warnings_of_the_user_alone(open_folder):
    """A reload is not refused for them, and it is not said that it would be."""
    root = populate(open_folder / "root", {"a.txt": b"a"})
    with socket.socket(socket.AF_UNIX) as backend:
        backend.bind(str(open_folder / "backend"))
        backend.listen()
        (open_folder / "backend").chmod(0o600)
        text = section("HOST", {"DocumentRoot": root}) + section("FASTCGI", {"To": f"unix:{open_folder}/backend"})
        settings = {"Listen": "127.0.0.1:0", "User": "nobody"}
        conf = write_config(open_folder / "conf", root, settings, files={"sites/default": text})
        done = run("-t", "-c", conf, program=build.for_others())
    assert done.returncode == 0 and "may not be opened by the user of this server" in done.stderr, done.stderr
    assert "would be refused" not in done.stderr
    assert "the user nobody has these warnings: a start as root has not, but a reload runs as that user" in done.stderr


# Other files in PEM, in place of the certificate and of the key.
OTHER_FILES = {
    "key": ("holds a private key and no certificate: the names of both files may be exchanged", None),
    "certificate": (None, "holds a certificate and no private key: the names of both files may be exchanged"),
    "request": ("holds a request for a certificate, which an authority has to sign",
                "holds a request for a certificate and no private key"),
    "public": ("holds no certificate in PEM", "holds a public key and no private one"),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHER_FILES)
def test_other_files_in_place(check, certificate, tmp_path, kind):
    texts = {
        "key": certificate.key.read_bytes(),
        "certificate": certificate.cert.read_bytes(),
        "request": b"-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n",
        "public": b"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n",
    }
    path = own(tmp_path, "other", texts[kind])
    for key, sentence in zip(("Certificate", "CertificateKey"), OTHER_FILES[kind]):
        if sentence:
            wrong(check(certificate.keys(**{key: path})), r".* \S+/other " + re.escape(sentence))


# ── doubts ──


def test_dates(check, ca):
    old = ca.make("old", "localhost", start="20200101000000Z", end="20210101000000Z")
    wrong(check(old.keys()), r"the certificate \S+ has expired: it was good until 2021-01-01 00:00 UTC", "warning", 0)
    early = ca.make("early", "localhost", start="20400101000000Z")
    wrong(check(early.keys()), r"the certificate \S+ is not valid yet: it will be from 2040-01-01", "warning", 0)


def test_doubts_are_logged_at_a_start_too(serve, ca, tmp_path):
    old = ca.make("old", "localhost", start="20200101000000Z", end="20210101000000Z")
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": populate(tmp_path / "root", {"a.txt": b"a"})})
    server = serve(TLS, config={"sites/default": text + section("TLS", old.keys())})
    server.wait_log(r"sites/default:\d+:\d+: warning: .* has expired: it was good until 2021-01-01")
    assert server.log.count("has expired") == 1


def test_an_ocsp_response_that_is_out_of_date(check, ca, certificate):
    wrong(
        check(certificate.keys(OCSPFile=ca.staple(certificate, "20210101000000Z"))),
        r"the OCSP response \S+ is out of date: no client gets it\n", "warning", 0,
    )  # fmt: skip
    assert check(certificate.keys(OCSPFile=ca.staple(certificate)))[1] == "monkey: the configuration is fine\n"


def test_an_ocsp_response_that_is_not_valid_yet(check, ca, certificate):
    wrong(
        check(certificate.keys(OCSPFile=ca.staple(certificate, "20480101000000Z", begin="20470101000000Z"))),
        r"the OCSP response \S+ is not valid yet by the clock of this machine: no client gets it until then\n",
        "warning",
        0,
    )


REVOKED = r"says that the certificate is revoked: clients that get it refuse the host, which needs another certificate"
UNKNOWN = r"says that the issuer does not know the certificate: no client gets it\n"
UNSIGNED = r"has no valid signature of the certificate's issuer: no client gets it\n"


@pytest.mark.parametrize("status, doubt", [("R", REVOKED), (None, UNKNOWN)])
def test_ocsp_responses_that_say_no_good(check, ca, certificate, status, doubt):
    wrong(
        check(certificate.keys(OCSPFile=ca.staple(certificate, status=status))),
        rf"host localhost: the OCSP response {certificate.cert.with_suffix('.ocsp')} {doubt}", "warning", 0,
    )  # fmt: skip
    code, said = check(certificate.keys(OCSPFile=ca.staple(certificate, "20210101000000Z", status=status)))
    assert code == 0 and re.search(doubt, said) and "is out of date" in said, said


@pytest.fixture(scope="module")
def impostor(tmp_path_factory):
    """Another authority of the same name."""
    return Authority(tmp_path_factory.mktemp("impostor"))


def test_ocsp_responses_of_another_authority(check, ca, certificate, impostor, tmp_path_factory):
    """By the number alone, they would be about our certificate."""
    stranger = Authority(tmp_path_factory.mktemp("stranger"), "stranger")
    other = r"the file \S+ is an OCSP response about another certificate\n"
    for chain in {}, {"CertificateChain": ca.cert}:
        wrong(check(certificate.keys(OCSPFile=stranger.staple(certificate), **chain)), other)
        wrong(check(certificate.keys(OCSPFile=stranger.staple(certificate, bare=True), **chain)), other)
    wrong(check(certificate.keys(OCSPFile=impostor.staple(certificate), CertificateChain=ca.cert)), other)


def test_signatures_of_ocsp_responses(check, ca, certificate, impostor):
    """The issuer's signature, or a delegated responder's, whose certificate is in the chain or in the response."""
    helper, idler = ca.make("helper", use="OCSPSigning"), ca.make("idler")
    chain = {"CertificateChain": ca.cert}
    for signer, bare, more, doubted in (
        (ca, False, {}, False),
        (ca, True, chain, False),
        (helper, False, chain, False),
        (impostor, False, chain, True),
        (impostor, True, chain, True),
        (idler, False, chain, True),
        (certificate, False, chain, True),
        (impostor, True, {}, False),  # cannot be verified
    ):
        result = check(certificate.keys(OCSPFile=ca.staple(certificate, signer=signer, bare=bare), **more))
        if doubted:
            wrong(result, rf"the OCSP response \S+ {UNSIGNED}", "warning", 0)
        else:
            assert result == (0, "monkey: the configuration is fine\n"), (signer.cert, bare, more)


def test_an_ocsp_response_that_was_changed(check, ca, certificate):
    path = ca.staple(certificate, status="R")
    path.write_bytes(path.read_bytes().replace(b"20240101000000Z", b"20230101000000Z"))  # when it was revoked
    wrong(check(certificate.keys(OCSPFile=path)), rf"the OCSP response \S+ {UNSIGNED}", "warning", 0)


@pytest.mark.parametrize(
    "names, uncovered",
    [
        ("localhost", None),
        ("localhost other.example", "other.example"),
        ("*.wild.example", None),
        ("a.wild.example", None),
        ("a.b.wild.example", "a.b.wild.example"),
        ("wild.example", "wild.example"),
        ("192.0.2.1", None),
        ("192.0.2.2", r"192\.0\.2\.2"),
        ("[2001:db8::1]", None),
    ],
)
def test_names(check, ca, names, uncovered):
    pair = ca.make("names", "localhost", "*.wild.example", "IP:192.0.2.1", "IP:2001:db8::1")
    code, text = check(pair.keys(), names=names)
    assert code == 0
    if uncovered:
        wrong((code, text), rf"the certificate \S+ does not cover the ServerName {uncovered}\n", "warning", 0)
    else:
        assert "warning" not in text


# ── chains and authorities ──


def test_a_chain_of_its_own(serve, ca, certificate, tmp_path):
    root = populate(tmp_path / "root", {"hello.txt": b"Hello, world\n"})
    for keys in (
        certificate.keys(CertificateChain=ca.cert),
        certificate.keys(Certificate=own(tmp_path, "both.pem", certificate.cert.read_text() + ca.cert.read_text())),
    ):
        text = section("HOST", {"ServerName": "localhost", "DocumentRoot": root}) + section("TLS", keys)
        server = serve(TLS, config={"sites/default": text})
        shown = openssl("s_client", "-connect", f"127.0.0.1:{server.port}", "-showcerts", data=b"")
        assert shown.count(b"BEGIN CERTIFICATE") == 2


def test_wrong_chains_and_authorities(check, ca, certificate, other, tmp_path):
    nonsense = own(tmp_path, "n", "nonsense\n")
    wrong(check(certificate.keys(CertificateChain=nonsense)), r"the chain \S+ holds no certificate in PEM")
    wrong(check(certificate.keys(OCSPFile=nonsense)), r"the file \S+ is not an OCSP response in DER")
    wrong(
        check(certificate.keys(OCSPFile=ca.staple(other))),
        r"the file \S+ is an OCSP response about another certificate",
    )
    asks = {"ClientCertificate": "Required"}
    wrong(check(certificate.keys(**asks)), '"ClientCA" is missing')
    wrong(check(certificate.keys(**asks, ClientCA=nonsense)), r"the file \S+ holds no certificate in PEM")
    wrong(check({**asks, "ClientCA": ca.cert}), 'needs its own "Certificate"')
    two = {"Certificate": [certificate.cert, certificate.cert], "CertificateKey": [certificate.key, certificate.key]}
    wrong(check(two), r"is the second with a key of this kind \(id-ecPublicKey\)")


def test_chains_in_a_wrong_order(check, ca, certificate, other, tmp_path):
    both = certificate.keys(Certificate=own(tmp_path, "both", ca.cert.read_text() + certificate.cert.read_text()))
    wrong(check(both), r"the private key \S+ belongs to number 2 of the certificates in \S+both, .* own comes first")
    for text in (certificate.cert, other.cert, ca.cert), (certificate.cert, ca.cert, certificate.cert):
        chain = own(tmp_path, "chain", "".join(one.read_text() for one in text))
        code, said = check(certificate.keys(Certificate=chain))
        assert code == 0
        number = 1 if text[1] == other.cert else 2
        sentence = f"chain, number {number} was not signed by number {number + 1}"
        assert re.search(rf"default:5:\d+: warning: host localhost: .*{sentence}", said), said
    for keys in certificate.keys(), certificate.keys(CertificateChain=ca.cert):
        assert "warning" not in check(keys)[1]


def test_an_authority_as_a_host(check, ca):
    ca.key.chmod(0o600)
    code, said = check(ca.keys(), names=None)
    wrong((code, said), rf"{ca.cert} is the certificate of an authority \(CA:TRUE\), which", "warning", 0)


def test_a_leaf_as_an_authority_of_clients(check, ca, certificate, tmp_path):
    both = own(tmp_path, "both", ca.cert.read_text() + certificate.cert.read_text())
    for path, number in (ca.cert, None), (certificate.cert, 1), (both, 2):
        code, said = check(certificate.keys(ClientCertificate="Required", ClientCA=path))
        assert code == 0
        doubt = rf"default:8:\d+: warning: host localhost: of the certificates in {path}, number {number} is not of an"
        assert bool(re.search(doubt, said)) == ("warning" in said) == bool(number), said


def test_authorities_that_no_client_is_asked_for(check, ca, certificate):
    """An operator that names them expects that other clients are rejected."""
    for mode in {}, {"ClientCertificate": "Off"}:
        wrong(check(certificate.keys(ClientCA=ca.cert, **mode)), r"\"ClientCA\" has no effect", "warning", 0)
    for mode in "Optional", "Required":
        assert "warning" not in check(certificate.keys(ClientCA=ca.cert, ClientCertificate=mode))[1]


@pytest.mark.parametrize("curve, fine", [("P-384", True), ("P-521", True), ("secp256k1", False), ("P-224", False)])
def test_keys_that_few_clients_know(check, tmp_path, curve, fine):
    """OpenSSL takes them all, and then most handshakes fail."""
    odd = tmp_path / "odd"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", f"ec_paramgen_curve:{curve}", "-nodes", "-keyout",
            f"{odd}.key", "-out", f"{odd}.pem", "-subj", "/CN=localhost", "-addext",
            "subjectAltName=DNS:localhost")  # fmt: skip
    odd.with_suffix(".key").chmod(0o600)
    code, said = check({"Certificate": f"{odd}.pem", "CertificateKey": f"{odd}.key"})
    assert code == 0
    doubt = (
        r"default:5:\d+: warning: host localhost: the certificate \S+odd.pem has a key of a kind that most clients"
    )
    assert bool(re.search(doubt, said)) != fine, said


def test_weak_keys_are_refused(check, ca):
    weak = ca.make("weak", "localhost", kind="weak")
    wrong(check(weak.keys()), r"the certificate \S+ cannot be used: ee key too small")


# ── the server's part ──


@pytest.mark.parametrize(
    "order, wrong_at",
    [("liana tls health redirect static", None), ("liana health tls redirect static", 4), ("redirect tls static", 3)],
)
def test_tls_comes_before_plugins_that_answer(certificate, tmp_path, order, wrong_at):
    """A redirect before it would answer plain HTTP at the port of TLS, and what a 421 is due to."""
    root = populate(tmp_path / "root", {"a.txt": b"a"})
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": root}) + section("TLS", certificate.keys())
    files = {"sites/default": text, "plugins.load": section("PLUGINS", {"Load": order.split()})}
    done = run("-t", "-c", write_config(tmp_path / "conf", root, TLS, files=files))
    assert done.returncode == bool(wrong_at), done.stderr
    first = order.split()[(wrong_at or 3) - 3]
    error = re.search(rf'plugins\.load:(\d+):\d+: error: the plugin "tls" must come before "{first}"\n', done.stderr)
    assert error and int(error[1]) == wrong_at if wrong_at else not error, done.stderr


def test_ticket_keys(check, certificate, tmp_path):
    keys = tmp_path / "tickets"

    def outcome(content, mode=0o600):
        own(tmp_path, "tickets", content, mode)
        return check(certificate.keys(), tls={"TicketKeys": keys})

    assert outcome(os.urandom(160))[0] == 0
    key = os.urandom(80)
    for content, mode, sentence in (
        (b"x" * 79, 0o600, "has 79 bytes, but each key has 80"),
        (os.urandom(720), 0o600, "has 720 bytes"),
        (key + key, 0o600, "has two keys of the same name"),
        (key, 0o644, "is open to others: its mode is 644"),
        (b"", 0o600, "is empty"),
    ):
        code, text = outcome(content, mode)
        assert code == 1
        assert re.search(rf"tls\.conf:2:\d+: error: the file of ticket keys {keys} {sentence}", text), text


@pytest.mark.parametrize(
    "value, sentence",
    [
        ("", "a time"),
        ("soon", "a time is needed, such as 365d"),
        ("1w", "a time is needed"),
        ("999999d", "a time is needed"),
        ("365d preloaded", "only includeSubDomains and preload may follow the time"),
    ],
)
def test_strict_transport_security(check, certificate, value, sentence):
    code, text = check(certificate.keys(StrictTransportSecurity=value))
    assert code == 1 and re.search(sentence if value else "StrictTransportSecurity", text), text


@pytest.mark.parametrize("listen, proxies, warned", [("", "", True), (" tls", "", False), ("", "127.0.0.1", False)])
def test_a_redirect_that_leads_nowhere(tmp_path, site_root, listen, proxies, warned):
    """Without a listener with tls it is for a proxy, which must say that the client has used TLS."""
    text = f"[SERVER]\n    Listen 127.0.0.1:0{listen}\n" + (f"    TrustedProxies {proxies}\n" if proxies else "")
    files = {"monkey.conf": text + "[TLS]\n    SelfSigned On\n"}
    folder = write_config(tmp_path / "conf", site_root, files=files, text="[TLS]\n    Redirect https\n")
    done = run("-c", folder, "-t")
    place = 'default:5:14: warning: "Redirect https" never ends: no Listen line has tls'
    assert done.returncode == 0 and (place in done.stderr) == warned, done.stderr


def test_defaults_of_the_server(check, certificate):
    """Their mistakes are reported once, at the line of the server, and only where they take effect."""
    code, text = check(certificate.keys(), tls={"Redirect": "https"}, names="*.example")
    assert code == 0 and re.search(r'plugins/tls/tls.conf:2:\d+: warning: "Redirect https" needs a ServerName', text)
    code, text = check(certificate.keys(Redirect="Off"), tls={"Redirect": "https"}, names="*.example")
    assert (code, "Redirect" in text) == (0, False), text
    code, text = check(certificate.keys(), tls={"Profile": "server"})
    assert code == 1 and '"Profile" wants one of intermediate, modern' in text, text
    code, text = check(certificate.keys(), tls={"StrictTransportSecurity": "Off preload"})
    assert code == 1 and "a time is needed, such as 365d" in text
    code, text = check(certificate.keys(Profile="moderne"))
    assert code == 1 and 'did you mean "modern"?' in text


def test_hosts_without_a_certificate(serve, ca, certificate, tmp_path):
    """If the default host has no certificate either, an unknown name is refused."""
    root = populate(tmp_path / "root", {"hello.txt": b"Hello, world\n"})
    server = serve(TLS, config={
        "sites/default": section("HOST", {"DocumentRoot": root}),
        "sites/own": section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
        + section("TLS", certificate.keys()),
    })  # fmt: skip
    with TlsClient(server.addresses[0], ca.context()) as client:
        client.assert_open()
    for name in ("nobody.example", None):
        with pytest.raises(ssl.SSLError, match="(?i)unrecognized.name"):
            TlsClient(server.addresses[0], ca.context(), name)


def test_certificates_without_a_listener_are_read_all_the_same(check, certificate, tmp_path):
    assert check(certificate.keys(), server={})[0] == 0
    wrong(check(certificate.keys(Certificate=tmp_path / "no"), server={}), "cannot be read")


def test_a_reload_logs_the_same(serve, ca, certificate, tmp_path):
    root = populate(tmp_path / "root", {"hello.txt": b"Hello, world\n"})
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
    server = serve(TLS, config={"sites/default": text + section("TLS", certificate.keys())})
    (server.conf / "sites" / "default").write_text(text)
    server.baseline += 3  # of the loop that waits for old generations, and what was refused
    server.send_signal(signal.SIGHUP)
    server.wait_log("no host has a certificate for this listener")
    with TlsClient(server.addresses[0], ca.context()) as client:
        client.assert_open()
