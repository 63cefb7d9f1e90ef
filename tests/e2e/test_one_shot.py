# SPDX-License-Identifier: Apache-2.0
"""One-shot mode: the URLs and the folder on stdout, then a line for each request."""

import re
import signal
import socket
import ssl
import subprocess

import pytest

from harness import build
from harness.content import HELLO
from harness.protocol import Client
from harness.server import Server, await_true, run, write_config

COMMON = re.compile(r'127\.0\.0\.1 - - \[[^]]+\] "GET /a\.txt HTTP/1\.1" 200 %d' % len(HELLO))
FOLDER = re.compile(r"monkey serves (.*) at")
URL = re.compile(r"    (\S+)")

pytestmark = pytest.mark.single_protocol


class Output(Server):
    """A server whose stdout goes to a file."""

    def __init__(self, path, *args, **rest):
        self.path = path
        super().__init__(*args, wrapper=["/bin/sh", "-c", f'exec "$@" >>"{path}"', "sh"], **rest)

    def find(self, pattern):
        return await_true(
            lambda: [m for m in map(pattern.fullmatch, self.path.read_text().splitlines()) if m], 30, pattern.pattern
        )


@pytest.fixture
def start(tmp_path):
    """Starts a server for the folder `site`, which has a file."""
    servers = []
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.txt").write_bytes(HELLO)

    def begin(*args, **rest):
        servers.append(Output(tmp_path / "stdout", *args, cwd=tmp_path, **rest))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


def test_urls_and_accesses(start, tmp_path):
    server = start("-o", "site", "-l", "127.0.0.1:0")
    assert server.find(FOLDER)[0][1] == str(tmp_path / "site")
    assert [m[1] for m in server.find(URL)] == [f"http://127.0.0.1:{server.port}/"]
    assert server.connect().ask("/a.txt").body == HELLO
    assert len(server.find(COMMON)) == 1


def test_no_warning_about_fast_open(start):
    """The default uses TCP Fast Open where the system allows it; only a value that was set causes a warning."""
    server = start("-o", "site", "-l", "127.0.0.1:0")
    server.wait_log("serves with")
    assert "FastOpen" not in server.log


def test_all_addresses(start):
    server = start("-o", "site", "-p", "0", "-w", "2")
    urls = [m[1] for m in server.find(URL)]
    assert urls[0] == f"http://localhost:{server.port}/" and len(set(urls)) == len(urls)
    with Client(("127.0.0.1", server.port)) as client:
        assert client.ask("/a.txt").status == 200
    server.find(COMMON)


def test_unix_socket(start, tmp_path):
    server = start("-o", "site", "-l", f"unix:{tmp_path}/s")
    assert server.find(URL)[0][1] == f"unix:{tmp_path}/s"


@pytest.mark.skipif(not build.speaks("tls"), reason="NOT TESTED: this build has no TLS")
@pytest.mark.parametrize("more", [[], ["--supervise"]], ids=["alone", "supervised"])
def test_https(start, more):
    server = start("-o", "site", "-l", "127.0.0.1:0", "--https", *more)
    assert server.find(URL)[0][1] == f"https://127.0.0.1:{server.port}/"
    context = ssl._create_unverified_context()
    with socket.create_connection(("127.0.0.1", server.port), 60) as raw, context.wrap_socket(raw) as client:
        client.sendall(b"GET /a.txt HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200")
    server.find(COMMON)


def test_without_the_logger(tmp_path, start):
    """A program without its plugins serves all the same, and has no access log."""
    program = build.install(tmp_path / "copy")
    server = start("-o", "site", "-l", "127.0.0.1:0", program=program)
    assert server.connect().ask("/a.txt").body == HELLO
    assert server.find(URL)


def test_a_folder_without_an_index(start, tmp_path):
    """The log says once how to list it, the client gets the 404 alone."""
    (tmp_path / "site" / "folder").mkdir()
    server = start("-o", "site", "-l", "127.0.0.1:0")
    hint = "the folder has no index.html; `monkey DIR --list` lists such folders"
    with server.connect() as client:
        assert client.ask("/nothing/").status == 404 and client.ask("/a.txt/").status == 404
        assert hint not in server.log
        pages = [client.ask(path) for path in ("/folder/", "/folder/", "/")]
    assert [page.status for page in pages] == [404] * 3 and not any(b"--list" in page.body for page in pages)
    server.wait_log(f"404 for /folder/: {hint}")
    server.stop()
    assert server.log.count(hint) == 1


def test_no_hint_at_lists_of_a_configuration(tmp_path, site_root):
    server = Server("-c", write_config(tmp_path / "conf", site_root))
    assert server.connect().ask("/dir/").status in (200, 404)
    server.stop()
    assert "--list" not in server.log


def test_background_writes_no_accesses(tmp_path):
    (tmp_path / "a.txt").write_bytes(HELLO)
    path = tmp_path / "socket"
    done = subprocess.Popen(
        [build.binary(), "-o", tmp_path, "-l", f"unix:{path}", "-D"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=build.environment(),
    )
    text, _ = done.communicate(timeout=120)
    with Client(str(path)) as client, socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str(path))
        pid = int.from_bytes(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little")
        assert client.ask("/a.txt").status == 200
    subprocess.run(["kill", f"-{signal.SIGTERM.value}", str(pid)], check=True)
    await_true(lambda: not path.exists(), 60, "the end")
    assert f"unix:{path}" in text.decode() and "GET" not in text.decode()


def test_list(start, tmp_path):
    """Folders without an index are listed, with README.md; without the option they are not."""
    (tmp_path / "site" / "README.md").write_bytes(b"read me\n")
    (tmp_path / "site" / "sub").mkdir()
    (tmp_path / "site" / "sub" / "index.html").write_bytes(HELLO)
    if not (build.PLUGINS / "dirlisting.so").exists():
        pytest.skip(f"the preset {build.PRESET} does not build dirlisting")
    server = start("-o", "site", "--list", "-l", "127.0.0.1:0")
    with server.connect() as client:
        page = client.ask("/").body.decode()
        assert 'href="a.txt"' in page and 'href="sub/"' in page and "read me" in page
        assert client.ask("/sub/").body == HELLO and client.ask("/a.txt").body == HELLO
        assert client.ask("/", "Accept: application/json")["content-type"] == "application/json"
    plain = start("-o", "site", "-l", "127.0.0.1:0")
    assert plain.connect().ask("/").status in (403, 404)
    assert run("-t", "-o", "site", "--list", cwd=tmp_path).returncode == 0


def test_list_without_the_plugin(tmp_path):
    """It is an error, since nothing would be listed."""
    done = run("-o", tmp_path, "--list", program=build.install(tmp_path / "copy"))
    assert done.returncode == 1
    assert re.search("--list needs .*/dirlisting.so, which does not exist", done.stderr)
