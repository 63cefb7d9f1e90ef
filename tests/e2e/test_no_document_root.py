# SPDX-License-Identifier: Apache-2.0
"""Hosts without DocumentRoot: another section answers requests, and no path of the host is a file."""

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.content import HELLO
from harness.messages import request
from harness.server import run, section
from harness.services import reload

PROXY = pytest.param("PROXY", marks=pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="no plugins"))
pytestmark = pytest.mark.skipif(build.PRESET == "small", reason="builds for small devices have files only")


def host(text="", **keys):
    return section("HOST", {"ServerName": "localhost", **keys}) + text


def make(tmp_path, text, server=""):
    conf = tmp_path / "conf"
    (conf / "sites").mkdir(parents=True)
    (conf / "monkey.conf").write_text(section("SERVER", {"Listen": "127.0.0.1:0"}) + server)
    (conf / "sites/default").write_text(text)
    return conf


def sections(backend, folder):
    return {
        "PROXY": section("PROXY", {"Match": "/app", "To": backend.url}),
        "REDIRECT": section("REDIRECT", {"Match": "/app", "To": "/b"}),
        "ALIAS": section("ALIAS", {"Match": "/app", "To": folder}),
    }


@pytest.mark.parametrize("kind", [PROXY, "REDIRECT", "ALIAS"])
def test_another_section(serve, tmp_path, kind):
    """Other paths and methods are not found, as is the path of a file in the working directory."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/hello.txt").write_bytes(HELLO)
    with Backend(answer(HELLO, "Content-Type: text/plain")) as backend:
        text = host(sections(backend, tmp_path / "folder")[kind])
        server = serve(config={"sites/default": text}, cwd=tmp_path)
        with server.connect() as client:
            assert client.ask("/app/hello.txt").status == (301 if kind == "REDIRECT" else 200)
            for target in ("/", "/conf", "/folder/hello.txt", "/folder/", "/app.txt", "/..%2f"):
                assert client.ask(target).status == 404, target
            client.send(request("/folder", method="DELETE"))
            assert client.response().status in (404, 405)


def test_a_redirect_of_the_host(serve):
    server = serve(config={"sites/default": host(Redirect="https://example.org")})
    with server.connect() as client:
        assert client.ask("/a?b")["Location"] == "https://example.org/a?b"


def test_a_section_for_all_hosts(tmp_path):
    conf = make(tmp_path, host(), section("REDIRECT", {"Match": "/", "To": "https://example.org"}))
    assert run("-c", conf, "-t").returncode == 0


@pytest.mark.parametrize("text", ["", section("RULES", {"Match": "/", "Action": "deny"}), section("ERROR_PAGES", {})])
def test_nothing_answers(tmp_path, text):
    result = run("-c", make(tmp_path, host(text)), "-t")
    assert result.returncode == 1
    assert 'sites/default:1:1: error: [HOST] lacks "DocumentRoot", which must be set' in result.stderr


def test_pages_of_errors(serve, tmp_path):
    """Texts are sent; a page of a file has no folder to be in, which is an error only in the host's own section."""
    redirect = section("REDIRECT", {"Match": "/app", "To": "/b"})
    pages = section("ERROR_PAGES", {"404": '"lost"'})
    with serve(config={"sites/default": host(redirect + pages)}).connect() as client:
        assert client.ask("/other").body == b"lost"
    wrong = make(tmp_path, host(redirect + section("ERROR_PAGES", {"404": "/404.html"})))
    assert "below the document root: the host has none" in run("-c", wrong, "-t").stderr


def test_shared_pages_of_errors(serve):
    redirect = section("REDIRECT", {"Match": "/app", "To": "/b"})
    shared = section("SERVER", {"Listen": "127.0.0.1:0"}) + section("ERROR_PAGES", {"404": "/404.html"})
    server = serve(config={"monkey.conf": shared, "sites/default": host(redirect)})
    with server.connect() as client:
        assert client.ask("/other").status == 404
    assert "warning" not in server.log


def test_reloads_take_the_root_away_and_give_it_back(serve, tmp_path):
    redirect = section("REDIRECT", {"Match": "/app", "To": "/b"})
    server = serve(files={"a.txt": HELLO}, text=redirect)
    site = server.conf / "sites/default"
    with_root = site.read_text()
    for text, status in ((host(redirect), 404), (with_root, 200), (host(), 200), (host(redirect), 404)):
        site.write_text(text)
        reload(server, accepted=text != host())
        with server.connect() as client:
            assert client.ask("/a.txt").status == status
