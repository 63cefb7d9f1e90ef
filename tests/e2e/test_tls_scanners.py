# SPDX-License-Identifier: Apache-2.0
"""What scanners of TLS find: testssl.sh, and sslyze, which knows the profiles of Mozilla. What they complain about
stands in a table here with its reason, and what stands there must be found: an exception that is not needed any more
fails too.
"""

import datetime
import json
import re
import shutil
import subprocess
import sys

import pytest

from harness import build, tools
from harness.content import populate
from harness.server import section

SSLYZE = "sslyze==6.3.1"  # for Python 3.11
PROFILES = ("intermediate", "modern")

NO_CHECK = "no finding, but a check that testssl.sh cannot make here; "
BOTH = {
    "cert_revocation": "The test's authority has no list of revocations and no responder; what it says is stapled.",
    "engine_problem": NO_CHECK + "the OpenSSL of Debian has no GOST. The ciphers are looked at without it.",
}
EXCEPTIONS = {
    "intermediate": {
        **BOTH,
        "cipher_order": "Mozilla's profile leaves the choice to the client: all that we take are strong, and it knows "
        "which of them its processor is good at.",
    },
    "modern": BOTH,
}
CHANCE = {  # whether testssl.sh can make these checks differs from run to run
    "sessionresumption_ticket": "It saves a session of TLS 1.3, and leaves before its ticket can have come; with TLS "
    "1.2 the ticket is part of the handshake, but it uses that only where it has met no ticket of 1.3 before.",
    "sessionresumption_ID": "The same. test_tls.py resumes sessions of both.",
}
CORE = ["-p", "-s", "-f", "-P", "-S", "-h", "-U", "--fast"]
RC4 = {"RC4": NO_CHECK + "the OpenSSL of Debian has none either. `-s` asks for those ciphers without it."}
NOT_COMPLIANT = {"intermediate": {}, "modern": {}}  # by sslyze's names

# Without these the scan has looked at something else, or at nothing.
SEEN = {
    *("SSLv2", "SSLv3", "TLS1_3", "cipherlist_NULL", "cipherlist_LOW", "PFS", "protocol_negotiated", "heartbleed"),
    *("ROBOT", "secure_renego", "secure_client_renego", "CRIME_TLS", "BREACH", "DROWN", "LUCKY13", "HSTS_time"),
    *("cert_trust", "cert_chain_of_trust", "cert_expirationStatus", "OCSP_stapling", "ticketbleed"),
}

BRIEF = {"heartbleed", "CCS", "ticketbleed", "secure_renego", "secure_client_renego"}

HEADERS = """
[HEADERS]
    Set X-Frame-Options DENY
    Set X-Content-Type-Options nosniff
    Set Content-Security-Policy "default-src 'self'"
    Set Referrer-Policy no-referrer
"""

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no tls"),
]


# ── the server ──


@pytest.fixture(scope="module")
def pairs(ca):
    """For 81 days, which satisfies scanners that want a short life, and scanners that warn of its end."""
    now = datetime.datetime.now(datetime.timezone.utc)
    start, end = (f"{now + datetime.timedelta(days):%Y%m%d%H%M%SZ}" for days in (-1, 80))
    return [ca.make(kind, "localhost", kind=kind, start=start, end=end) for kind in ("ec", "rsa")]


@pytest.fixture
def scanned(serve, ca, pairs, tmp_path):
    """Starts a server of a profile, with certificates of both kinds."""

    def start(profile):
        root = populate(tmp_path / "root", {"index.html": b"<!DOCTYPE html><title>a page</title>\n"})
        keys = {
            "Certificate": [pair.cert for pair in pairs],
            "CertificateKey": [pair.key for pair in pairs],
            "OCSPFile": [ca.staple(pair) for pair in pairs],
            "Profile": profile,
            "StrictTransportSecurity": "365d",
        }
        host = section("HOST", {"ServerName": "localhost", "DocumentRoot": root}) + section("TLS", keys) + HEADERS
        return serve({"Listen": "127.0.0.1:0 tls"}, config={"sites/default": host})

    return start


def assert_found(found, exceptions):
    """`found` by name; nothing more and nothing less than what the table knows."""
    more = {name: found[name] for name in found.keys() - exceptions.keys()}
    assert not more, more
    assert not exceptions.keys() - found.keys(), "these exceptions are not needed any more"


# ── testssl.sh ──


def run_testssl(server, ca, folder, *options, seconds=240):
    """What it has found, by name: a list of (severity, text), of both certificates where it looks at each."""
    program = shutil.which("testssl") or shutil.which("testssl.sh")
    if not program:
        pytest.skip("TESTSSL.SH IS MISSING (DEBIAN PACKAGE testssl.sh), IT DOES NOT RUN")
    report = folder / "testssl.json"
    command = [program, "--quiet", "--color", "0", "--warnings", "off", "--nodns", "none", "--ip", "127.0.0.1"]
    command += ["--add-ca", ca.cert, "--openssl", shutil.which("openssl"), "--jsonfile", report, *options]
    done = subprocess.run(
        [*command, f"localhost:{server.port}"], stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds
    )
    assert report.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    found = {}
    for row in json.loads(report.read_text()):
        found.setdefault(re.sub(r" <cert#\d+>$", "", row["id"]), []).append((row["severity"], row["finding"]))
    assert "scanTime" in found, done.stdout[-3000:]  # the last one
    return found


def is_severe(name, severity):
    return severity in ("MEDIUM", "HIGH", "CRITICAL", "FATAL") or (severity == "WARN" and name not in CHANCE)


def check_part(found, exceptions, seen):
    severe = {name: rows for name, rows in found.items() if any(is_severe(name, row[0]) for row in rows)}
    assert_found(severe, exceptions)
    missing = {name for name in seen if not all(row[0] == "OK" for row in found.get(name, [("absent", "")]))}
    assert not missing, {name: found.get(name) for name in missing}


def check_findings(found, exceptions):
    check_part(found, exceptions, SEEN)
    if build.speaks("h2"):
        assert found["ALPN_HTTP2"] == [("OK", "h2")]
    assert found["cert_numbers"] == [("INFO", "2")]


@pytest.mark.slow
def test_testssl_brief(scanned, ca, tmp_path):
    """The attacks that take seconds; test_mozilla looks at protocols and ciphers."""
    found = run_testssl(scanned("intermediate"), ca, tmp_path, "-H", "-I", "-T", "-R")
    check_part(found, {"engine_problem": BOTH["engine_problem"]}, BRIEF)


@pytest.mark.slow
def test_testssl(scanned, ca, tmp_path):
    """Protocols, ciphers, certificates, headers, and every attack that it knows."""
    found = run_testssl(scanned("intermediate"), ca, tmp_path, *CORE)
    check_findings(found, {**EXCEPTIONS["intermediate"], **RC4})


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("profile", PROFILES)
def test_testssl_whole(scanned, ca, tmp_path, profile):
    """And every cipher with every protocol, known faults of implementations, and what clients would get."""
    found = run_testssl(scanned(profile), ca, tmp_path, "--full", seconds=800)
    check_findings(found, EXCEPTIONS[profile])
    assert any(name.startswith("clientsimulation-") for name in found)


# ── sslyze ──

CHECK = """
import json, pathlib, sys
import sslyze
from sslyze.mozilla_tls_profile import tls_config_checker as mozilla

port, profile, ca = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
scanner = sslyze.Scanner()
scanner.queue_scans([sslyze.ServerScanRequest(
    sslyze.ServerNetworkLocation("localhost", port, ip_address="127.0.0.1"),
    scan_commands=mozilla.SCAN_COMMANDS_NEEDED_BY_MOZILLA_CHECKER,
    scan_commands_extra_arguments=sslyze.ScanCommandsExtraArguments(
        certificate_info=sslyze.CertificateInfoExtraArgument(ca)),
)])
[result] = scanner.get_results()
wanted = mozilla.MozillaTlsConfiguration.get(mozilla.TlsConfigurationEnum(profile))
issues = {}
try:
    mozilla.check_server_against_tls_configuration(result, wanted)
except mozilla.ServerNotCompliantWithTlsConfiguration as e:
    issues = e.issues
json.dump(issues, sys.stdout)
"""


@pytest.fixture(scope="module")
def sslyze():
    """The Python that has it."""
    folder = tools.TOOLS / SSLYZE
    with tools.alone("sslyze"):
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            tools.fetch(
                "sslyze",
                [sys.executable, "-m", "venv", folder],
                [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", SSLYZE],
            )
            (folder / "ready").touch()
    return folder / "bin" / "python"


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
def test_mozilla(sslyze, scanned, ca, profile):
    command = [sslyze, "-c", CHECK, str(scanned(profile).port), profile, ca.cert]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert_found(json.loads(done.stdout), NOT_COMPLIANT[profile])
