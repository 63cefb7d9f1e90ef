# SPDX-License-Identifier: Apache-2.0
"""A client that we did not write: curl."""

import shutil
import subprocess

import pytest

from harness.content import HELLO, LARGE, OLD_DATE
from harness.server import HTTP1_ONLY

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed"),
]


def curl(*args, check=0, **rest):
    result = subprocess.run(
        ["curl", "-sS", "--max-time", "60", "--noproxy", "*", *map(str, args)],
        capture_output=True,
        timeout=120,
        **rest,
    )
    assert result.returncode == check, result.stderr.decode()
    return result.stdout


def code(*args):
    return int(curl("-o", "/dev/null", "-w", "%{http_code}", *args))


def test_download(site, tmp_path):
    curl("-o", tmp_path / "large", f"{site.url}/large.bin")
    assert (tmp_path / "large").read_bytes() == LARGE


def test_resume(site, tmp_path):
    (tmp_path / "part").write_bytes(LARGE[:1_234_567])
    curl("-C", "-", "-o", tmp_path / "part", f"{site.url}/large.bin")
    assert (tmp_path / "part").read_bytes() == LARGE


def test_resume_of_a_complete_file(site, tmp_path):
    (tmp_path / "part").write_bytes(LARGE)
    curl("-C", "-", "-o", tmp_path / "part", f"{site.url}/large.bin")
    assert (tmp_path / "part").read_bytes() == LARGE


def test_range(site):
    assert curl("-r", "0-4", f"{site.url}/hello.txt") == HELLO[:5]
    assert curl("-r", "-6", f"{site.url}/hello.txt") == HELLO[-6:]


def test_time_condition(site, tmp_path):
    assert code("-z", "Sun, 13 Sep 2020 12:26:40 GMT", f"{site.url}/hello.txt") == 304
    assert code("-z", "Sun, 13 Sep 2020 12:26:39 GMT", f"{site.url}/hello.txt") == 200


def test_etag_save_and_compare(site, tmp_path):
    curl("--etag-save", tmp_path / "tag", "-o", "/dev/null", f"{site.url}/hello.txt")
    assert code("--etag-compare", tmp_path / "tag", f"{site.url}/hello.txt") == 304


def test_head(site):
    head = curl("-I", f"{site.url}/hello.txt").decode()
    assert head.startswith("HTTP/1.1 200 ") and "Content-Length: 13" in head and OLD_DATE in head


def test_http_1_0(site):
    assert curl("--http1.0", f"{site.url}/hello.txt") == HELLO
    assert curl("-0", "-H", "Connection: keep-alive", f"{site.url}/hello.txt", f"{site.url}/hello.txt") == HELLO * 2


def test_upload_with_expect(site, tmp_path):
    """curl waits a second for 100 Continue; a final answer must come at once and be understood."""
    (tmp_path / "upload").write_bytes(bytes(3_000_000))
    for method in (["-T", tmp_path / "upload"], ["--data-binary", f"@{tmp_path}/upload"]):
        assert code(*method, "-H", "Expect: 100-continue", f"{site.url}/hello.txt") in (405, 413)


def test_upload_without_expect(site, tmp_path):
    (tmp_path / "upload").write_bytes(bytes(3_000_000))
    assert code("--data-binary", f"@{tmp_path}/upload", "-H", "Expect:", f"{site.url}/hello.txt") in (405, 413)


def test_chunked_upload(site, tmp_path):
    (tmp_path / "upload").write_bytes(bytes(300_000))
    assert code("-T", tmp_path / "upload", "-H", "Transfer-Encoding: chunked", f"{site.url}/hello.txt") in (405, 413)


def test_redirect_is_followed(site):
    assert b"<title>dir" in curl("-L", f"{site.url}/dir?q")


def test_connection_is_reused(site):
    """Eleven transfers, one connection."""
    text = curl(
        "-w",
        "%{num_connects}\n",
        "-o",
        "/dev/null",
        *[f"{site.url}/hello.txt", "-o", "/dev/null"] * 10,
        f"{site.url}/nowhere",
    )
    assert [int(row) for row in text.split()] == [1] + [0] * 10


def test_connection_is_reused_after_errors_and_bodies(site):
    text = curl(
        "-d",
        "a=b",
        "-w",
        "%{http_code} %{num_connects}\n",
        "-o",
        "/dev/null",
        f"{site.url}/hello.txt",
        "-o",
        "/dev/null",
        f"{site.url}/dir/",
    )
    assert text.split(b"\n")[:2] == [b"405 1", b"405 0"]


def test_unix_socket(serve, tmp_path):
    serve({"Listen": f"unix:{tmp_path}/socket"})
    assert curl("--unix-socket", tmp_path / "socket", "http://localhost/hello.txt") == HELLO


def test_ipv6(serve):
    server = serve({"Listen": "[::1]:0"})
    assert curl("-g", f"http://[::1]:{server.port}/hello.txt") == HELLO


def test_path_as_is(site):
    assert code("--path-as-is", f"{site.url}/../../../etc/passwd") == 404
    assert curl("--path-as-is", f"{site.url}/dir/../hello.txt") == HELLO


def test_http2_prior_knowledge(site):
    assert curl("--http2-prior-knowledge", f"{site.url}/hello.txt") == HELLO


def test_http2_prior_knowledge_fails_cleanly(serve):
    """A client that insists on HTTP/2 where there is none reports an error and does not hang."""
    site = serve(config=HTTP1_ONLY)
    result = subprocess.run(
        ["curl", "-sS", "--max-time", "60", "--noproxy", "*", "--http2-prior-knowledge", f"{site.url}/hello.txt"],
        capture_output=True,
    )
    assert result.returncode not in (0, 28)


def test_http2_upgrade_falls_back(site):
    assert curl("--http2", f"{site.url}/hello.txt") == HELLO
