# SPDX-License-Identifier: Apache-2.0
"""Plugins in files of their own: loaded by name or path, and what is said of those that cannot be."""

import os
import re
import shutil

import pytest

from harness import build
from harness.protocol import Client
from harness.server import Server, run, write_config

pytestmark = build.needs_modules


def load(*names):
    return "[PLUGINS]\n" + "".join(f"    Load {name}\n" for name in ("liana", *names, "static"))


@pytest.fixture
def conf(tmp_path, site_root):
    def make(*names, host=""):
        folder = write_config(tmp_path / "conf", site_root, files={"plugins.load": load(*names)})
        with open(folder / "sites" / "default", "a") as file:
            file.write(host)
        return folder

    return make


def ask(server, target):
    with Client(server.addresses[0]) as client:
        return client.ask(target)


@pytest.mark.parametrize("place", ["absolute", "relative"])
def test_a_module_serves(conf, place):
    folder = conf(
        build.MODULES / "hello.so" if place == "absolute" else "./hello.so", host="[HELLO]\n    Greeting moin\n"
    )
    shutil.copy(build.MODULES / "hello.so", folder)
    server = Server("-c", folder)
    assert ask(server, "/hello").body == b"moin"
    assert ask(server, "/missing").status == 404
    server.stop()


def test_its_directives_are_checked(conf):
    result = run("-c", conf(build.MODULES / "hello.so", host="[HELLO]\n    Greting moin\n"), "-t")
    assert result.returncode == 1
    assert re.search(r"default:\d+:5: error: .*Greting.*Greeting", result.stderr)


@pytest.mark.parametrize(
    "name, sentence",
    [
        ("ghost", r'there is no plugin "ghost", neither in this build nor as \S+/ghost.so'),
        ("./ghost.so", r"the plugin \S+/ghost.so cannot be loaded: No such file or directory"),
        ("{modules}/older.so", r"older.so cannot be loaded: it was built for another server.*build it again"),
        ("{modules}/shorter.so", r"shorter.so cannot be loaded: it was built for another server.*build it again"),
        ("{modules}/nameless.so", r"nameless.so cannot be loaded: the symbol mk_plugin_nameless is missing"),
        ("./text.so", r"text.so cannot be loaded: "),
        ("./empty.so", r"empty.so cannot be loaded: "),
    ],
)
def test_what_cannot_be_loaded(conf, name, sentence):
    folder = conf(name.format(modules=build.MODULES))
    (folder / "text.so").write_text("this is no shared object\n")
    (folder / "empty.so").write_text("")
    result = run("-c", folder, "-t")
    assert result.returncode == 1
    assert re.search(r"plugins.load:3:\d+: error: .*" + sentence, result.stderr), result.stderr


@pytest.mark.parametrize("part", [0.02, 0.3, 0.5])
def test_a_module_that_was_copied_in_part(conf, part):
    """dlopen() would be killed by SIGBUS."""
    whole = (build.MODULES / "hello.so").read_bytes()
    folder = conf("./hello.so")
    (folder / "hello.so").write_bytes(whole[: int(len(whole) * part)])
    result = run("-c", folder, "-t")
    assert result.returncode == 1
    assert re.search(r"plugins.load:3:\d+: error: .*hello.so cannot be loaded: the file is incomplete", result.stderr)


def test_a_fifo_is_no_module(conf):
    """dlopen() would wait for a writer."""
    folder = conf("./pipe.so")
    os.mkfifo(folder / "pipe.so")
    result = run("-c", folder, "-t")
    assert result.returncode == 1
    assert re.search(r"plugins.load:3:\d+: error: .*pipe.so cannot be loaded: not a regular file", result.stderr)


def test_twice(conf):
    result = run("-c", conf(build.MODULES / "hello.so", build.MODULES / "hello.so"), "-t")
    assert result.returncode == 1
    assert 'the plugin "hello" is loaded already' in result.stderr


# ── modules that the server comes with ──


@pytest.fixture
def installed(tmp_path):
    """A copy of the program with these modules next to it, and their folder; a test may spoil them."""

    def install(*names):
        (tmp_path / "lib" / "monkey").mkdir(parents=True)
        return build.install(tmp_path, *names), tmp_path / "lib" / "monkey"

    return install


OVER_TLS = {"monkey.conf": "[SERVER]\n    Listen 127.0.0.1:0 tls\n"}


UNCARRIED = r'monkey\.conf:2:\d+: error: .*no loaded plugin "tls" .*it takes '


@pytest.mark.parametrize("start", [["-t"], []], ids=["-t", "start"])
@pytest.mark.parametrize(
    "files, found, sentence",
    [
        (OVER_TLS, [], UNCARRIED + r"the file \S+/lib/monkey/tls\.so\n"),
        (
            {**OVER_TLS, "plugins.load": load("headers")},
            ["headers.so"],
            UNCARRIED + r'"Load tls" in plugins\.load and the file \S+/lib/monkey/tls\.so\n',
        ),
        (
            {**OVER_TLS, "plugins.load": load("tls")},
            [],
            r'plugins\.load:3:\d+: error: .*"tls", .* nor as \S+/tls\.so',
        ),
    ],
)
def test_tls_is_not_there(installed, tmp_path, site_root, start, files, found, sentence):
    program, _ = installed(*found)
    conf = write_config(tmp_path / "conf", site_root, files=files)
    result = run("-c", conf, *start, program=program)
    assert result.returncode == 1
    assert re.search(sentence, result.stderr), result.stderr


@pytest.mark.parametrize(
    "files",
    [
        {"monkey.conf": "@INCLUDE extra/*.conf\n", "extra/one.conf": "[SERVER]\n    Listen 127.0.0.1:0 tls\n"},
        {"monkey.conf": '@SET how="proxy tls"\n[SERVER]\n    Listen 127.0.0.1:0 ${how}\n'},
        {"extra/two": "[TLS]\n    SelfSigned On\n", "plugins/tls/tls.conf": "@INCLUDE ../../extra/two\n"},
    ],
    ids=["included", "variable", "included-by-plugin"],
)
def test_modules_are_found_by_the_rules_of_the_configuration(installed, tmp_path, site_root, files):
    program, folder = installed()
    conf = write_config(tmp_path / "conf", site_root, files=files)
    (folder / "tls.so").write_text("")
    result = run("-c", conf, "-t", program=program)
    assert re.search(r"the plugin \S+/tls.so cannot be loaded: ", result.stderr), result.stderr


def test_an_option_of_a_listener_that_does_not_exist(conf):
    folder = conf()
    (folder / "monkey.conf").write_text("[SERVER]\n    Listen 127.0.0.1:0 prxy\n")
    result = run("-c", folder, "-t")
    assert result.returncode == 1
    assert re.search(r"monkey\.conf:2:\d+: error: there is no option but proxy, and no loaded plugin", result.stderr)
