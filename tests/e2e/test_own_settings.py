# SPDX-License-Identifier: Apache-2.0
"""Settings of a host that win over those of the server; the others stay as they are."""

import pytest

from harness.content import populate
from harness.messages import request
from harness.server import run, section, write_config
from test_config import problems

FILES = {
    "index.html": b"index",
    "home.html": b"home",
    ".dot": b"dot",
    "a.txt": b"abc",
}
SERVER = {"Indexfile": "index.html", "SymLink": "Inside", "DotFiles": "On", "Resume": "On"}


@pytest.fixture
def site(tmp_path, serve):
    """One server, one document root, and hosts that want it differently."""
    root = populate(tmp_path / "files", FILES)
    (root / "link").symlink_to("a.txt")
    (root / "out").symlink_to("/etc/passwd")

    def make(settings, **hosts):
        files = {
            f"sites/{name}": section("HOST", {"ServerName": name, "DocumentRoot": root, **keys})
            for name, keys in hosts.items()
        }
        return serve(settings, root=root, config=files).connect()

    return make


def ask(client, host, target, *fields):
    client.send(request(target, *fields, host=host))
    return client.response()


def seen(client, host):
    """What tells the settings: the index, the two links, the dotfile, the range."""
    statuses = [ask(client, host, name).status for name in ("/link", "/out", "/.dot")]
    return [ask(client, host, "/").body.decode(), *statuses, ask(client, host, "/a.txt", "Range: bytes=1-").status]


def test_each_key(site):
    client = site(
        SERVER,
        index={"Indexfile": "home.html index.html"},
        nolinks={"SymLink": "Off"},
        links={"SymLink": "On"},
        nodots={"DotFiles": "Off"},
        noranges={"Resume": "off"},
        same={"SymLink": "Server", "DotFiles": "Server", "Resume": "Server"},
    )
    expected = ["index", 200, 404, 200, 206]
    assert seen(client, "localhost") == seen(client, "same") == expected
    assert seen(client, "index") == ["home", 200, 404, 200, 206]
    assert seen(client, "nolinks") == ["index", 404, 404, 200, 206]
    assert seen(client, "links") == ["index", 200, 200, 200, 206]
    assert seen(client, "nodots") == ["index", 200, 404, 404, 206]
    assert seen(client, "noranges") == ["index", 200, 404, 200, 200]


def test_the_other_way_round(site):
    client = site({"Resume": "Off"}, own={"SymLink": "Inside", "DotFiles": "On", "Resume": "On"})
    assert seen(client, "localhost") == ["index", 404, 404, 404, 200]
    assert seen(client, "own") == ["index", 200, 404, 200, 206]


@pytest.mark.parametrize("key, value", [("SymLink", "Maybe"), ("DotFiles", "Inside"), ("Resume", "Yes")])
def test_mistakes(tmp_path, site_root, key, value):
    result = run("-c", write_config(tmp_path / "conf", site_root, host={key: value}), "-t")
    (problem,) = problems(result)
    assert result.returncode == 1 and problem[:2] == ("default", 4)
    assert "one of Server, Off, " in problem[3]
