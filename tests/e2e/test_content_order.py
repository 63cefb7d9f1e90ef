# SPDX-License-Identifier: Apache-2.0
"""Sections of several plugins for the same paths: the check warns of those that no request gets to."""

import re

import pytest

from harness import build
from harness.scripts import HELLO, cgi_section, write_scripts
from harness.server import run, section, write_config

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]

NOWHERE = "127.0.0.1:1"
SOCKETS = 2  # to the starter: of the process, and of the worker
FRONT = {"TryFiles": "$path /index.php"}
FILES = {"index.php": b"<?php", "file.txt": b"a file"}
DEFAULT, REVERSED = ("proxy", "cgi", "fastcgi"), ("fastcgi", "cgi", "proxy")

# Plugins in their order, the section for all paths and what it has besides Match, and whether it takes all requests.
ROWS = [
    (REVERSED, "FASTCGI", FRONT, True),
    (REVERSED, "FASTCGI", {"TryFiles": "$path =404"}, True),
    (REVERSED, "FASTCGI", {"Split": "Off"}, True),
    (REVERSED, "FASTCGI", {}, False),  # only paths of scripts
    (REVERSED, "FASTCGI", {"TryFiles": "$path /index.php", "Match": "/cg"}, False),
    (REVERSED, "SCGI", {}, True),
    (DEFAULT, "FASTCGI", FRONT, False),
    (DEFAULT, "SCGI", {}, False),
    (DEFAULT, "PROXY", {}, True),
    (REVERSED, "PROXY", {}, False),
]


def plugins(order):
    lines = ["Load liana", *(f"Load {name}" for name in order), "Load static"]
    return {"plugins.load": "[PLUGINS]\n" + "".join(f"    {line}\n" for line in lines)}


def gateway(name, to, keys):
    return section(name, {"Match": "/", "To": to, **keys})


def warnings_of(result):
    assert result.returncode == 0, result.stderr
    return re.findall(r"(sites/default:\d+):\d+: warning: no request gets here: (.*)", result.stdout + result.stderr)


@pytest.mark.parametrize("order, name, keys, takes", ROWS)
def test_behind_a_section_for_all_paths(serve, tmp_path, order, name, keys, takes):
    """The warning appears if and only if the script is not run."""
    script = write_scripts(tmp_path / "scripts", {"hello": HELLO})
    text = gateway(name, f"http://{NOWHERE}" if name == "PROXY" else NOWHERE, keys) + cgi_section(script)
    server = serve(text=text, files=FILES, config=plugins(order))
    found = warnings_of(run("-t", "-c", server.conf))
    with server.connect() as client:
        status = client.ask("/cgi/hello").status
    server.baseline += SOCKETS if status == 200 else 0
    assert status in ((404, 502) if takes else (200,))
    assert len(found) == takes, found


def test_sentence(tmp_path, site_root):
    """It names both lines and what would be right; with that there is no warning."""
    script = write_scripts(tmp_path / "scripts", {"hello": HELLO})
    text = gateway("FASTCGI", NOWHERE, FRONT) + cgi_section(script)
    lines = section("HOST", {"ServerName": "localhost", "DocumentRoot": site_root}).count("\n")
    conf = write_config(tmp_path / "conf", site_root, text=text, files=plugins(REVERSED))
    (where, sentence), = warnings_of(run("-t", "-c", conf))
    assert where == f"sites/default:{lines + 6}"
    assert f"sites/default:{lines + 2} has a section [FASTCGI]" in sentence
    assert "the plugin fastcgi comes before cgi" in sentence
    line = re.search(r'write "(Match /cgi cgi)" in \[HANDLERS\]', sentence)[1]
    write_config(conf, site_root, text=f"{text}[HANDLERS]\n    {line}\n", files=plugins(REVERSED))
    assert not warnings_of(run("-t", "-c", conf))


@pytest.mark.parametrize("behind", ["FASTCGI", "SCGI"])
def test_scripts_for_all_paths(tmp_path, site_root, behind):
    scripts = write_scripts(tmp_path / "scripts", {"hello": HELLO})
    text = gateway(behind, NOWHERE, {"Match": "/app"}) + cgi_section(scripts, Match="/")
    conf = write_config(tmp_path / "conf", site_root, text=text)
    (_, sentence), = warnings_of(run("-t", "-c", conf))
    assert "a section [CGI] with all of these paths" in sentence


def test_proxy_with_files_first(tmp_path, site_root):
    """GET and HEAD get to scripts behind it."""
    scripts = write_scripts(tmp_path / "scripts", {"hello": HELLO})
    text = gateway("PROXY", "http://127.0.0.1:1", {}) + cgi_section(scripts)
    host = {"TryFiles": "$path"}
    conf = write_config(tmp_path / "conf", site_root, host=host, text=text)
    assert not warnings_of(run("-t", "-c", conf))


@pytest.mark.parametrize("match, warns", [(None, True), ("/", True), ("/a", True), ("/b", False)])
def test_sections_of_one_plugin(tmp_path, site_root, match, warns):
    """[SCGI] behind a [FASTCGI] that has all of its paths, whatever that does with them."""
    keys = {"Match": match} if match else {}
    text = section("SCGI", {"Match": "/a/x", "To": NOWHERE}) + section("FASTCGI", {"To": NOWHERE, **keys})
    found = warnings_of(run("-t", "-c", write_config(tmp_path / "conf", site_root, text=text)))
    assert len(found) == warns, found
    assert not warns or "sections [FASTCGI] come before [SCGI]" in found[0][1]
