# SPDX-License-Identifier: Apache-2.0
"""h2spec asks what RFC 9113 and RFC 7541 ask of a server, strict cases included: over plain TCP and over TLS."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from harness import build, tools
from harness.content import populate
from harness.secure import serve_secure

MODULE = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible"
CASES = 146
NOT_XML = re.compile(rb"[^\x20-\xff\t\r\n]|&#x(?:[0-8BCEFbcef]|1[0-9a-fA-F]);")

pytestmark = [
    pytest.mark.slow,  # whose packages have go, by which h2spec is made
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2"),
]


def find_h2spec():
    """Its path: where it is, or where it can be installed."""
    program = tools.TOOLS / "h2spec"
    if found := shutil.which("h2spec"):
        return found
    with tools.alone("h2spec"):
        if not program.exists():
            go = shutil.which("go") or pytest.skip("GO IS MISSING, H2SPEC DOES NOT RUN")
            tools.fetch("h2spec", [go, "install", MODULE], env={"GOBIN": str(tools.TOOLS), "GOFLAGS": "-modcacherw"})
    return program


@pytest.fixture(scope="module")
def h2spec():
    return find_h2spec()


def read_report(path):
    """How many passed, and the names of the others. Bytes of a server may stand in it that no XML has."""
    root = ElementTree.fromstring(NOT_XML.sub(b"?", path.read_bytes()).decode("utf-8", "replace"))
    cases = list(root.iter("testcase"))
    bad = [case for case in cases if any(case.find(what) is not None for what in ("failure", "error", "skipped"))]
    return len(cases) - len(bad), [f"{case.get('package')}: {case.get('classname')}" for case in bad]


def run_h2spec(h2spec, server, report, *options):
    command = [h2spec, "--strict", "-h", "127.0.0.1", "-p", str(server.port), "-P", "/page.txt", "-o", "1"]
    done = subprocess.run(
        [*command, "-j", report, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=240,
    )
    assert report.exists(), done.stdout[-3000:]
    passed, bad = read_report(report)
    assert not bad, "\n".join(bad) + "\n" + done.stdout.decode("utf-8", "replace").rpartition("Failures:")[2]
    assert passed == CASES and done.returncode == 0


FILES = {"page.txt": b"a page of some size\n" * 200}


def test_h2spec_plain(h2spec, serve, tmp_path):
    run_h2spec(h2spec, serve(files=FILES), tmp_path / "report.xml")


@pytest.mark.skipif(not build.speaks("tls"), reason="this build has no TLS")
def test_h2spec_tls(h2spec, serve, tmp_path):
    server = serve_secure(serve, tmp_path, populate(tmp_path / "root", FILES))
    run_h2spec(h2spec, server, tmp_path / "report.xml", "--tls", "--insecure")
