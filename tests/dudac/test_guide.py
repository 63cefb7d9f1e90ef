# SPDX-License-Identifier: Apache-2.0
"""What docs/guide/dudac.md shows: the commands of the quick start, and the files. The tutorial docs/guide/chat.md."""

import re
import shlex
import ssl
import types
from urllib.parse import urlsplit

from dudac.checks import read_checks
from dudac.folder import read_folder

import pytest
from harness import build
from harness.certificates import TlsClient
from harness.client import Client
from harness.duda_websocket import WebSocket
from harness.ways import WAYS
from running import ask, make_folder, run_dudac

PAGE = (build.TOP / "docs/guide/dudac.md").read_text()
MANUAL = (build.TOP / "dist/dudac.1").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.S | re.M)


def blocks(language, part):
    return [text for kind, text in BLOCKS if kind == language and part in text]


def test_the_quick_start(tmp_path, start):
    [text] = blocks("sh", "dudac new")
    for line in text.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "dudac"
        if arguments[0] == "run":
            url = start(*arguments, "-p", 0, cwd=tmp_path).wait_url()
            assert ask(url)[0] == 200
        else:
            done = run_dudac(*arguments, cwd=tmp_path)
            assert done.returncode == 0, done.stderr


def test_the_settings(tmp_path):
    [text] = blocks("toml", "ldflags")
    folder = make_folder(tmp_path, "x", {"a.c": "", "lib/b.c": "", "service.toml": text})
    assert read_folder(folder)[0].name == "hello"


def test_the_checks(tmp_path):
    text = "".join(blocks("toml", "[[check]]"))
    (tmp_path / "checks.toml").write_text(text)
    steps = [step for check in read_checks(tmp_path / "checks.toml") for step in check.steps]
    assert [len(step) for step in steps] == [1, 1, 1, 1, 11, 1, 1, 1]
    assert {step[0].method for step in steps} == {"GET", "POST"}


def test_the_manual_names_all_commands():
    names = re.findall(r"^  (\w+)  ", run_dudac("--help").stdout.partition("Commands:")[2], re.M)
    assert len(names) == 5 and all(re.search(rf'^\.B.*"?{name}\b', MANUAL, re.M) for name in names)
    assert all(f"dudac {name}" in PAGE for name in names)


# ── the tutorial ──

TUTORIAL = build.TOP / "docs/guide/chat.md"


def steps():
    """The blocks of each numbered part, in their order: (language, text)."""
    parts = re.split(r"^## ", TUTORIAL.read_text(), flags=re.M)[1:]
    return [re.findall(r"^```(\w+)\n(.*?)^```", part, re.S | re.M) for part in parts]


def write_files(folder, blocks):
    """Writes the files of a part."""
    names = {"c": "wschat.c", "html": "html/index.html", "toml": "checks.toml"}
    for language, text in blocks:
        if language in names:
            path = folder / names[language]
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)


def run_commands(blocks, folder):
    """Runs the commands of a part, except `dudac run`, whose arguments are returned."""
    runs = []
    for line in (line for language, text in blocks if language == "sh" for line in text.splitlines()):
        program, *arguments = shlex.split(line, comments=True)
        assert program == "dudac"
        if arguments[0] == "run":
            runs.append(arguments)
            continue
        done = run_dudac(*arguments, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    return runs


def open_sockets(url, n, path="handshake/"):
    parts = urlsplit(url)
    address, tls = ("127.0.0.1", parts.port), parts.scheme == "https"
    context = ssl._create_unverified_context() if tls else None
    server = types.SimpleNamespace(open=lambda: TlsClient(address, context) if tls else Client(address))
    return [WebSocket(server, WAYS["h1-tls" if tls else "h1"], parts.path + path) for _ in range(n)]


def assert_talk(sockets):
    for sender in sockets:
        sender.send("hello")
        assert all(socket is sender or socket.text() == "hello" for socket in sockets)


def test_the_tutorial(tmp_path, start):
    pytest.importorskip("watchdog", reason="NOT TESTED: no python3-watchdog here")
    service, echo, chat, encrypted, rest = steps()
    assert run_commands(service, tmp_path) == []
    write_files(tmp_path / "wschat", echo)
    [arguments] = run_commands(echo, tmp_path)
    program = start(*arguments, "-p", 0, cwd=tmp_path)
    url = program.wait_url()
    assert url.endswith("/wschat/") and "<title>Talk</title>" in ask(url)[1]
    [one] = open_sockets(url, 1)
    assert one.echo("hello") == "hello"
    one.reset()
    write_files(tmp_path / "wschat", chat)
    assert program.wait_url(2) == url
    assert_talk(open_sockets(url, 3))
    assert program.stop() == 130
    [arguments] = run_commands(encrypted, tmp_path)
    assert_talk(open_sockets(start(*arguments, "-p", 0, cwd=tmp_path).wait_url(), 3))
    assert run_commands(rest, tmp_path) == []
    url = start("run", "party", "-p", 0, cwd=tmp_path).wait_url()
    one, other = open_sockets(url, 2, "rooms/one"), open_sockets(url, 2, "rooms/other")
    assert_talk(one)
    assert_talk(other)  # each gets its first message in its room
    example = next((build.TOP / "docs/examples/services").glob("*-wschat/wschat.c"))
    assert (tmp_path / "wschat/wschat.c").read_text() == example.read_text()
