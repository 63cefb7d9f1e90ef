# SPDX-License-Identifier: Apache-2.0
"""A configuration without hosts, as when a deployment replaces `sites/` for a moment, with plugins that have sections
of the server: refused at the start, at -t and at a reload, and the running server continues."""

import os
import shutil

import pytest

from harness.server import run, write_config
from harness.services import reload

pytestmark = pytest.mark.single_protocol

SERVER = """
[SERVER]
    Listen      127.0.0.1:0
    Workers     1

[CHEETAH]
    Listen      {folder}/shell

[CONNECTIONS]
    MaxConnections  10

[RULES]
    Match       /x
    Action      deny

[REDIRECT]
    Match       /old
    To          /new

[STATUS]

[CACHE]

[COMPRESS]

[HEALTH]
"""
MISSING = "sites/default is missing"


def remove_default(conf):
    (conf / "sites" / "default").unlink()


def remove_default_beside_another(conf):
    (conf / "sites" / "default").rename(conf / "sites" / "a")


def empty_the_folder(conf):
    shutil.rmtree(conf / "sites")
    (conf / "sites").mkdir()


def remove_the_folder(conf):
    shutil.rmtree(conf / "sites")


def empty_the_file(conf):
    (conf / "sites" / "default").write_text("")


CHANGES = [remove_default, remove_default_beside_another, empty_the_folder, remove_the_folder, empty_the_file]


@pytest.fixture
def make(tmp_path, site_root):
    text = SERVER.format(folder=tmp_path)
    return lambda: write_config(tmp_path / "conf", site_root, files={"monkey.conf": text})


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_start_and_check(make, change):
    conf = make()
    assert run("-c", conf, "-t").returncode == 0
    change(conf)
    for arguments in (["-c", conf, "-t"], ["-c", conf]):
        done = run(*arguments)
        assert done.returncode == 1, done.stderr
        assert change is empty_the_file or MISSING in done.stderr
        assert "error" in done.stderr


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_reload(make, serve, tmp_path, change):
    server = serve(config={"monkey.conf": SERVER.format(folder=tmp_path)})
    with server.connect() as client:
        client.assert_open()
        change(server.conf)
        reload(server, accepted=False)
        client.assert_open()


@pytest.mark.skipif(os.geteuid() != 0, reason="runs a server as another user, which needs root")
def test_a_folder_that_cannot_be_read(make):
    conf = make()
    (conf / "sites").chmod(0)
    done = run("-c", conf, "-t", user=65534)
    assert done.returncode == 1 and "error" in done.stderr
