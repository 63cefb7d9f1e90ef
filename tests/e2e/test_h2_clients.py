# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 clients that we did not write load the sample site: curl, nghttp, h2load, httpx of Python; Chromium, Firefox
and Go over TLS."""

import asyncio
import hashlib
import os
import re
import shutil
import subprocess

import httpx
import pytest

from harness import build
from harness.browser import open_browser
from harness.content import HELLO, LARGE
from harness.secure import serve_secure

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2"),
]
HTDOCS = build.TOP / "dist" / "htdocs"
FETCH = build.TOP / "tests" / "e2e" / "clients" / "fetch.go"
needs_tls = pytest.mark.skipif(not build.speaks("tls"), reason="this build has no TLS")


def needs(program):
    return pytest.mark.skipif(not shutil.which(program), reason=f"{program} is not installed")


def run(*args, **rest):
    done = subprocess.run([*map(str, args)], capture_output=True, timeout=600, **rest)
    assert done.returncode == 0, (done.stdout[-2000:] + done.stderr[-2000:]).decode("utf-8", "replace")
    return done.stdout


def sample_files():
    return [path.relative_to(HTDOCS).as_posix() for path in sorted(HTDOCS.rglob("*")) if path.is_file()]


def curl(*args):
    return run("curl", "-sS", "--max-time", "60", "--noproxy", "*", "--http2-prior-knowledge", *args)


@needs("curl")
def test_curl_loads_the_sample_site(tour, tmp_path):
    """Each file on its own connection: curl 7.88 loses its way on the second request after prior knowledge."""
    for name in sample_files():
        output = curl("-w", "%{http_version} %{http_code}", "-o", tmp_path / "file", f"{tour.url}/{name}")
        assert output == b"2 200" and (tmp_path / "file").read_bytes() == (HTDOCS / name).read_bytes()


@needs("curl")
def test_curl_uploads(site, tmp_path):
    (tmp_path / "upload").write_bytes(bytes(3_000_000))
    for method in (["-T", tmp_path / "upload"], ["--data-binary", f"@{tmp_path}/upload"]):
        code = curl("-o", "/dev/null", "-w", "%{http_code}", *method, f"{site.url}/hello.txt")
        assert int(code) in (405, 413)


@needs("curl")
def test_curl_by_upgrade(site):
    """It offers h2c and is content with HTTP/1.1."""
    output = run("curl", "-sS", "--noproxy", "*", "--http2", "-w", "%{http_version}", f"{site.url}/hello.txt")
    assert output == HELLO + b"1.1"


@pytest.fixture(params=["clear", pytest.param("tls", marks=needs_tls)])
def sample(request, serve, tmp_path):
    """Where the sample site is."""
    if request.param == "clear":
        return request.getfixturevalue("tour").url
    return f"https://127.0.0.1:{serve_secure(serve, tmp_path, HTDOCS).port}"


@needs("nghttp")
def test_nghttp_loads_the_sample_site(sample):
    """With -a it fetches what the page refers to, on streams with priorities."""
    output = run("nghttp", "-nas", f"{sample}/").decode()
    answers = re.findall(r"^\s*\d+\s+\+\S+\s+\*?\s*\+\S+\s+\S+\s+(\d{3})\s+\S+\s+(/\S*)$", output, re.M)
    assert {status for status, _ in answers} == {"200"}, output
    assert {"/", "/style.css", "/logo.svg"} <= {path for _, path in answers}, output


@needs("nghttp")
def test_nghttp_with_small_windows(site):
    """64 KB of the connection, 16 KB of each stream; padding, and trailers of its own."""
    assert run("nghttp", "-w14", "-W16", "--padding=100", f"{site.url}/large.bin") == LARGE


@needs("h2load")
@pytest.mark.concurrent
def test_h2load_loads_the_sample_site(sample, tmp_path):
    """Each of five connections asks for all files four times; not a byte is missing."""
    paths = ["/", *(f"/{name}" for name in sample_files())]
    (tmp_path / "urls").write_text("".join(f"{sample}{path}\n" for path in paths))
    count = 20 * len(paths)
    output = run("h2load", "-n", count, "-c", "5", "-m", "10", "-i", tmp_path / "urls").decode()
    assert f"{count} succeeded, 0 failed, 0 errored, 0 timeout" in output, output
    assert f"status codes: {count} 2xx, 0 3xx, 0 4xx, 0 5xx" in output, output
    sizes = [(HTDOCS / path[1:] if path[1:] else HTDOCS / "index.html").stat().st_size for path in paths]
    assert f"({20 * sum(sizes)}) data" in output, output


@needs("h2load")
@pytest.mark.concurrent
@pytest.mark.parametrize("target, count", [("/hello.txt", 5000), ("/large.bin", 100)])
def test_h2load(serve, target, count):
    server = serve({"Workers": 2, "MaxKeepAliveRequest": 0})
    output = run("h2load", "-n", count, "-c", "5", "-m", "20", f"{server.url}{target}").decode()
    assert f"{count} succeeded, 0 failed, 0 errored, 0 timeout" in output, output


@needs("h2load")
@pytest.mark.concurrent
def test_h2load_after_goaway(serve):
    """Connections end after so many requests; the client comes back, and nothing is lost that was promised."""
    server = serve({"Workers": 2, "MaxKeepAliveRequest": 100})
    output = run("h2load", "-n", "500", "-c", "5", "-m", "1", f"{server.url}/hello.txt").decode()
    assert "status codes: 500 2xx, 0 3xx, 0 4xx, 0 5xx" in output, output


@needs_tls
@needs("curl")
@pytest.mark.parametrize("how", [["--parallel", "--parallel-max", "30"], []], ids=["in parallel", "one by one"])
def test_curl_over_tls(serve, tmp_path, how):
    """All on one connection."""
    server, names = serve_secure(serve, tmp_path, HTDOCS), sample_files()
    url = f"https://127.0.0.1:{server.port}"
    outputs = [word for i, name in enumerate(names) for word in ("-o", tmp_path / str(i), f"{url}/{name}")]
    output = run("curl", "-sSk", "--noproxy", "*", "-w", "%{http_version} %{http_code}\n", *how, *outputs)
    assert output.decode().splitlines() == ["2 200"] * len(names)
    for i, name in enumerate(names):
        assert (tmp_path / str(i)).read_bytes() == (HTDOCS / name).read_bytes()


@pytest.mark.browser
@needs_tls
def test_chromium(serve, tmp_path, tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser"), ", HTTP/2 IS NOT SEEN BY ONE") as browser:
        server, page = serve_secure(serve, tmp_path, HTDOCS), browser.page()
        page.call("Security.setIgnoreCertificateErrors", ignore=True)
        page.navigate(f"https://127.0.0.1:{server.port}/")
        assert page.evaluate("document.title") == "monkey: it works"
        assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
        answers = [answer for answer in page.answers() if not answer["url"].startswith("data:")]
        assert {(answer["status"], answer["protocol"]) for answer in answers} == {(200, "h2")}


def test_httpx(sample):
    """The package h2 on one connection, all files at once and twice; the second time none is sent."""

    async def load():
        names = sample_files()
        async with httpx.AsyncClient(http1=False, http2=True, verify=False, trust_env=False, timeout=60) as client:
            answers = await asyncio.gather(*(client.get(f"{sample}/{name}") for name in names))
            for name, answer in zip(names, answers):
                assert (answer.status_code, answer.http_version) == (200, "HTTP/2")
                assert answer.content == (HTDOCS / name).read_bytes(), name
            tags = [{"If-None-Match": answer.headers["ETag"]} for answer in answers]
            again = await asyncio.gather(*(client.get(f"{sample}/{n}", headers=h) for n, h in zip(names, tags)))
            assert {(answer.status_code, answer.content) for answer in again} == {(304, b"")}
            refused = await client.post(f"{sample}/{names[0]}", content=bytes(10_000))  # within the window
            assert refused.status_code == 405

    asyncio.run(load())


@needs_tls
@needs("go")
@pytest.mark.slow
def test_go(serve, tmp_path):
    """net/http, with goroutines on one connection."""
    server = serve_secure(serve, tmp_path, HTDOCS)
    run("go", "build", "-o", tmp_path / "fetch", FETCH, env={**os.environ, "GOCACHE": str(tmp_path / "cache")})
    paths = [f"/{name}" for name in sample_files()]
    output = run(tmp_path / "fetch", server.ca.cert, f"https://127.0.0.1:{server.port}", *paths).decode()
    *found, refused = output.splitlines()
    files = {path: hashlib.sha256((HTDOCS / path[1:]).read_bytes()).hexdigest() for path in paths}
    assert sorted(found) == sorted(f"HTTP/2.0 200 {digest} {path}" for path, digest in files.items())
    assert refused in ("HTTP/2.0 405", "HTTP/2.0 413")


@needs_tls
@needs("firefox-esr")
@needs("certutil")
@pytest.mark.slow
def test_firefox(serve, tmp_path):
    """Firefox draws the page; the access log says by which protocol it asked for its parts."""
    log = f"[LOGGER]\n    AccessLog {tmp_path}/log\n    Format \"$protocol $status $target\"\n"
    server = serve_secure(serve, tmp_path, HTDOCS, text=log)
    profile = tmp_path / "profile"
    profile.mkdir()
    run("certutil", "-N", "--empty-password", "-d", f"sql:{profile}")
    run("certutil", "-A", "-n", "test", "-t", "C,,", "-i", server.ca.cert, "-d", f"sql:{profile}")
    picture = tmp_path / "page.png"
    run("firefox-esr", "--headless", "--no-remote", "--profile", profile, f"--screenshot={picture}",
        f"https://127.0.0.1:{server.port}/", env={**os.environ, "HOME": str(tmp_path)})  # fmt: skip
    server.stop()
    lines = set((tmp_path / "log").read_text().splitlines())
    assert {f"HTTP/2.0 200 {target}" for target in ("/", "/style.css", "/logo.svg")} <= lines, lines
    assert picture.stat().st_size > 10_000
