# SPDX-License-Identifier: Apache-2.0
"""The command line: options, exit codes, and one sentence for each mistake."""

import re
import socket
import subprocess

import pytest

from harness import build
from harness.content import HELLO
from harness.protocol import Client
from harness.server import Server, await_true, run, write_config


@pytest.fixture
def start():
    servers = []

    def begin(*args, **rest):
        servers.append(Server(*args, **rest))
        return servers[-1]

    yield begin
    for server in servers:
        if not server.finished:
            server.settle()
            server.stop()


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_version(option):
    result = run(option)
    assert result.returncode == 0
    assert re.fullmatch(r"[Mm]onkey(?: HTTP server)? (version )?\d+\.\d+\.\d+\n", result.stdout)


@pytest.mark.parametrize("option", ["-b", "--build"])
def test_build_information(option):
    result = run(option)
    assert result.returncode == 0
    assert "liana" in result.stdout and "static" in result.stdout


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(option):
    result = run(option)
    assert result.returncode == 0 and result.stderr == ""
    for name in (
        "--config",
        "--one-shot",
        "--port",
        "--listen",
        "--workers",
        "--daemon",
        "--test",
        "--version",
        "--build",
        "--help",
        "--show-config",
        "--reference",
        "-c",
        "-o",
        "-p",
        "-l",
        "-w",
        "-D",
        "-t",
        "-v",
        "-b",
        "-h",
    ):
        assert re.search(rf"(?<![\w-]){name}\b", result.stdout), name


def test_man_page_knows_every_option():
    text = (build.TOP / "dist" / "monkey.1").read_text().replace("\\-", "-")
    for name in re.findall(r"--[a-z-]+", run("-h").stdout):
        assert name in text, name


WRONG = {
    "unknown short": ["-z"],
    "unknown long": ["--frobnicate"],
    "misspelt long": ["--conifg", "x"],
    "stray argument": ["-t", "htdocs"],
    "two directories": ["a", "b"],
    "a directory and a configuration": ["-c", "a", "b"],
    "value missing": ["-p"],
    "value missing, long": ["--port"],
    "port is a word": ["-o", ".", "-p", "http"],
    "port too large": ["-o", ".", "-p", "65536"],
    "port negative": ["-o", ".", "-p", "-1"],
    "port empty": ["-o", ".", "-p", ""],
    "workers is a word": ["-o", ".", "-w", "many"],
    "workers negative": ["-o", ".", "-w", "-2"],
    "address is none": ["-o", ".", "-l", "not an address"],
    "value for a switch": ["--daemon=yes"],
}


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_wrong_option(case):
    result = run(*WRONG[case])
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    rows = result.stderr.strip().splitlines()
    assert len(rows) <= 2 and rows[0].strip(), result.stderr


def test_wrong_option_names_the_word():
    for word in ("--frobnicate", "htdocs", "65536"):
        args = ["-o", ".", "-p", word] if word.isdigit() else ["-t", word]
        assert word in run(*args).stderr


RELOAD = '"monkey shell reload", or SIGHUP, loads the configuration again'
SIGNALS = '"monkey shell reload" loads the configuration again, "monkey shell drain" stops the server'
TYPED = {
    ("run",): 'there is no directory "run"; "monkey -c DIR" serves what the configuration in DIR says',
    ("start",): 'there is no directory "start"; "monkey -D -c DIR" starts it in the background, and systemd starts it '
    "as a service",
    ("reload",): f'there is no directory "reload"; {RELOAD}',
    ("-c", "r", "reload"): f'there is no directory "reload"; {RELOAD}',
    ("stop",): 'there is no directory "stop"; "monkey shell drain", or SIGTERM, stops the server',
    ("configtest",): 'there is no directory "configtest"; "monkey -t -c DIR" checks the configuration in DIR',
    ("version",): 'there is no directory "version"; did you mean --version?',
    ("-s", "reload"): f"there is no option -s; {SIGNALS}",
    ("-k", "graceful"): f"there is no option -k; {SIGNALS}",
    ("--http", "r"): "there is no option --http; HTTP is spoken without an option, HTTPS with --https",
    ("-V",): 'there is no option -V; "monkey -v" prints the version',
    ("--tls", "r"): "there is no option --tls; HTTPS is spoken with --https",
    ("-t", "-q"): 'there is no option -q; "monkey -t" prints what is wrong, and one line if nothing is',
    ("reverse-proxy", "--to", ":9000"): 'there is no option --to; "monkey proxy URL" passes requests on to URL',
    ("--conf", "r"): "there is no option --conf; did you mean --config?",
    ("--conf=r",): "there is no option --conf=r; did you mean --config?",
    ("-t", "-c", "r/monkey.conf"): '--config wants the directory of monkey.conf, and "r/monkey.conf" is a file; write '
    "-c r/",
    ("-c", "monkey.conf"): '--config wants the directory of monkey.conf, and "monkey.conf" is a file; write -c .',
}


@pytest.mark.skipif(build.PRESET == "small", reason="the small build does not know other servers")
@pytest.mark.parametrize("typed", TYPED, ids=" ".join)
def test_what_other_programs_are_called_with(tmp_path, typed):
    (tmp_path / "r").mkdir()
    for folder in (tmp_path, tmp_path / "r"):
        (folder / "monkey.conf").write_text("[SERVER]\n")
        (folder / "sites").mkdir()
    result = run(*typed, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"monkey: {TYPED[typed]}\n"


@pytest.mark.parametrize("option", [[], ["-t"], ["--show-config"], ["--supervise"]], ids=str)
def test_no_configuration(tmp_path, option):
    """Neither ./conf nor an installed one: the message names both ways to start."""
    program = build.install(tmp_path / "copy")
    result = run(*option, program=program, cwd=tmp_path)
    assert result.returncode == 1 and result.stdout == ""
    for words in ("./conf/monkey.conf", "/monkey/monkey.conf", "monkey DIR ", "monkey -c DIR "):
        assert words in result.stderr


def test_one_shot(start, tmp_path):
    """No configuration is needed, from any working directory."""
    (tmp_path / "a.txt").write_bytes(HELLO)
    (tmp_path / "index.html").write_bytes(b"<p>index\n")
    server = start("-o", tmp_path, "-l", "127.0.0.1:0", cwd="/")
    client = server.connect()
    assert client.ask("/a.txt").body == HELLO
    assert client.ask("/").body == b"<p>index\n"


@pytest.mark.parametrize(
    "options",
    [
        ["-o", ".", "-p", "0"],
        [".", "-p", "0"],
        ["-p", "0", "."],
        ["--one-shot", ".", "--port", "0"],
        ["--one-shot=.", "--port=0", "--workers=1"],
        ["-o.", "-p0", "-w1"],
    ],
    ids=" ".join,
)
def test_one_shot_forms(start, tmp_path, options):
    (tmp_path / "a.txt").write_bytes(HELLO)
    server = start(*options, cwd=tmp_path)
    server.names = [f"127.0.0.1:{server.port}"]
    assert server.connect().ask("/a.txt").body == HELLO


def test_one_shot_of_nothing(tmp_path):
    result = run("-o", tmp_path / "nowhere", "-p", "0")
    assert result.returncode in (1, 2, 3)
    assert str(tmp_path / "nowhere") in result.stderr


def test_one_shot_of_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    result = run("-o", tmp_path / "file", "-p", "0")
    assert result.returncode in (1, 2, 3) and "file" in result.stderr


def test_port_replaces_listen(start, tmp_path, site_root):
    conf = write_config(tmp_path / "conf", site_root, {"Listen": "127.0.0.1:1"})
    server = start("-c", conf, "-p", "0")
    assert server.port not in (0, 1)
    server.names = [f"127.0.0.1:{server.port}"]
    server.connect().assert_open()


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0", "unix"])
def test_listen_replaces_listen(start, tmp_path, site_root, address):
    conf = write_config(tmp_path / "conf", site_root, {"Listen": "127.0.0.1:1"})
    server = start("-c", conf, "-l", f"unix:{tmp_path}/socket" if address == "unix" else address)
    assert len(server.names) == 1
    server.connect().assert_open()


def test_workers(start, tmp_path, site_root):
    conf = write_config(tmp_path / "conf", site_root)
    one = len(start("-c", conf, "-w", "1").threads())
    three = len(start("-c", conf, "-w", "3").threads())
    assert three - one == 2


def test_port_that_is_taken_by_another(tmp_path, site_root):
    """A stranger's socket without SO_REUSEPORT: could not start, 3, and the address in the sentence."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = run("-o", site_root, "-l", f"127.0.0.1:{port}")
    assert result.returncode == 3, result.stderr
    assert str(port) in result.stderr


def test_two_servers_on_one_port(start, tmp_path, site_root):
    """SO_REUSEPORT must not let a second server start unnoticed."""
    first = start("-o", site_root, "-l", "127.0.0.1:0")
    result = subprocess.Popen(
        [build.binary(), "-o", site_root, "-l", f"127.0.0.1:{first.port}"],
        stderr=subprocess.PIPE,
        env=build.environment(),
    )
    try:
        assert result.wait(60) == 3
        assert str(first.port) in result.stderr.read().decode()
    finally:
        result.kill()
        result.wait()
        result.stderr.close()
    first.connect().assert_open()


def test_configuration_of_the_command_line_wins(start, tmp_path, site_root):
    conf = write_config(tmp_path / "conf", site_root, {"Workers": 2})
    assert "Workers" in run("-c", conf, "-w", "1", "--show-config").stdout
    result = run("-c", conf, "-w", "100000", "-t")
    assert result.returncode in (1, 2)


def test_closed_standard_streams(tmp_path, site_root):
    """Started without fd 0, 1 and 2: no socket may become the stdout of a process."""
    conf = write_config(tmp_path / "conf", site_root, {"Listen": f"unix:{tmp_path}/s", "ErrorLog": tmp_path / "log"})
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" 0<&- 1>&- 2>&-', build.binary(), conf], env=build.environment()
    )
    try:
        await_true(lambda: (tmp_path / "s").exists() and "listening" in (tmp_path / "log").read_text(), 30)
        with Client(f"{tmp_path}/s") as client:
            client.assert_open()
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name, meant", [("redirct", "REDIRECT"), ("[Hots]", "HOST"), ("xyzzy", None)])
def test_an_unknown_section_of_the_manual(name, meant):
    done = run("--reference", name)
    assert done.returncode == 2 and done.stdout == "", done.stderr
    wanted = f"; did you mean [{meant}]? It has SERVER " if meant else "; it has SERVER "
    assert done.stderr.startswith(f"monkey: the manual has no section [{name}]{wanted}"), done.stderr
