# SPDX-License-Identifier: Apache-2.0
"""`dudac run` and the original spelling: what is served, and what ends with it."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import ssl
import time
import urllib.request

import pytest
from dudac.server import NotifySocket

from harness.server import await_true, free_port, is_alive, is_refused
from running import ask, make_folder, make_source, run_dudac

OLD = {"Makefile.in": "NAME = pear\nOBJECTS = main.o\n", "main.c": make_source(), "html/page.html": "a page",
       "dudac.conf": "[DUDA]\n    version master\n"}
CRASH = make_source().replace("response->end", "*(volatile int *)0 = 1; response->end")


def run_folders(folder):
    return [path.name for path in (folder / "build").glob("run-*")]


def test_run_serves_and_prints_the_url(tmp_path, start):
    port = free_port()
    program = start("run", make_folder(tmp_path), "-p", port)
    assert program.wait_url() == f"http://127.0.0.1:{port}/apple/"
    assert ask(f"http://127.0.0.1:{port}/apple/") == (200, "one\n")
    status, page = ask(f"http://127.0.0.1:{port}/")
    assert status == 200 and '<a href="/apple/">' in page


def test_run_shows_all_lines_of_a_service(tmp_path, start):
    """A server that is not for the author limits them."""
    lines = 'for (int i = 0; i < 300; i++)\n        msg->info("line %d %0200d", i, 0);\n    response->end'
    source = make_source().replace("response->end", lines)
    program = start("run", make_folder(tmp_path, files={"apple.c": source}), "-p", 0)
    assert ask(program.wait_url()) == (200, "one\n")
    program.wait_line("line 299 ")
    assert len(re.findall(r"\bline \d+ 0000", program.output)) == 300


def test_run_has_the_console(tmp_path, start):
    program = start("run", make_folder(tmp_path), "-p", 0)
    url = program.wait_url()
    assert program.wait_line(r"^console  (\S+)")[1] == f"{url}console/"
    assert ask(url) == (200, "one\n")
    status, page = ask(url, "console/", headers={"Accept": "text/html"})
    assert status == 200 and "<html" in page


def test_the_place_of_a_mistake_in_the_last_statement(tmp_path, start):
    end = "response->end(dr, NULL);"
    source = make_source().replace(end, f"{end}\n    {end}")
    program = start("run", make_folder(tmp_path, files={"apple.c": source}), "-p", 0)
    assert ask(program.wait_url()) == (200, "one\n")
    program.wait_line(r"response->end\(\): the response has ended already.*, in apple\.duda\S* \(say, \S*apple\.c:9\)")


@pytest.mark.parametrize("path, status", [("/other/", 200), ("Off", 404)])
def test_the_path_of_the_console(tmp_path, start, path, status):
    program = start("run", make_folder(tmp_path), "-p", 0, "--console", path)
    url = program.wait_url()
    assert ask(url, "other/")[0] == status and ask(url, "console/")[0] == 404
    if status == 200:
        program.wait_line("console  ")  # which follows the URL
    assert program.stop() == 130 and ("console  " in program.output) == (status == 200)


def test_a_path_that_a_console_cannot_have(tmp_path):
    done = run_dudac("run", make_folder(tmp_path), "-p", 0, "--console", "console")
    assert done.returncode == 2 and "Invalid value for --console: it is a path below the URL" in done.stderr


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_everything(tmp_path, start, number, status):
    folder = make_folder(tmp_path)
    program = start("run", folder, "-p", 0)
    program.wait_url()
    server = program.server_pid()
    assert run_folders(folder)
    assert program.stop(number) == status
    assert not is_alive(server) and not run_folders(folder)


def test_the_server_ends_with_a_killed_dudac(tmp_path, start):
    folder = make_folder(tmp_path)
    program = start("run", folder, "-p", 0)
    program.wait_url()
    server, left = program.server_pid(), run_folders(folder)
    program.stop(signal.SIGKILL)
    await_true(lambda: not is_alive(server), 20)
    start("run", folder, "-p", 0).wait_url()  # removes what was left
    assert len(run_folders(folder)) == 1 and run_folders(folder) != left


def test_an_open_connection_does_not_hold_up_the_end(tmp_path, start):
    port = free_port()
    program = start("run", make_folder(tmp_path), "-p", port)
    program.wait_url()
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(b"GET /apple/ HTTP/1.1\r\nHost: x\r\n")
        assert program.stop() == 130
    assert is_refused(("127.0.0.1", port))


def test_nothing_is_written_beside_the_sources(tmp_path, start):
    folder = make_folder(tmp_path)
    program = start("run", folder, "-p", 0)
    program.wait_url()
    assert sorted(os.listdir(folder)) == ["apple.c", "build"]


def test_it_listens_on_this_machine_only(tmp_path, start):
    port = free_port()
    program = start("run", make_folder(tmp_path), "-p", port)
    program.wait_url()
    assert f"0100007F:{port:04X}" in pathlib.Path(f"/proc/{program.server_pid()}/net/tcp").read_text()
    program.stop()
    program = start("run", make_folder(tmp_path), "-p", port, "-l", "0.0.0.0")
    program.wait_url()
    assert f"00000000:{port:04X}" in pathlib.Path(f"/proc/{program.server_pid()}/net/tcp").read_text()


@pytest.mark.parametrize("arguments", [["run", "DIR", "--https", "-p", 0], ["-w", "DIR", "-S", "-p", "0"]])
def test_https(tmp_path, start, arguments):
    folder = make_folder(tmp_path)
    url = start(*[folder if word == "DIR" else word for word in arguments]).wait_url()
    assert url.startswith("https://")
    with urllib.request.urlopen(url, context=ssl._create_unverified_context(), timeout=30) as answer:
        assert answer.read() == b"one\n"


def test_the_root_of_its_host(tmp_path, start):
    folder = make_folder(tmp_path, files={"a.c": make_source(), "service.toml": "root = true\n"})
    url = start("run", folder, "-p", 0).wait_url()
    assert url.endswith("/") and url.count("/") == 3 and ask(url) == (200, "one\n")


def test_the_folders_are_given_to_the_service(tmp_path, start):
    source = make_source().replace('"one"', 'self->confdir.data, self->datadir.data').replace("%s", "%s %s")
    folder = make_folder(tmp_path, files={"a.c": source, "conf/x": "", "data/x": ""})
    assert ask(start("run", folder, "-p", 0).wait_url()) == (200, f"{folder}/conf/ {folder}/data/\n")


def test_names_that_a_configuration_would_split(tmp_path, start):
    folder = make_folder(tmp_path / 'a "b" ${c} #\\', files={"a.c": make_source(), "conf/x": ""})
    build = tmp_path / 'x "y" ${z}'
    (tmp_path / "apple").symlink_to(folder)
    program = start("run", folder, "-p", 0, "-B", build)
    assert ask(program.wait_url()) == (200, "one\n")


def test_two_services_of_one_folder(tmp_path, start):
    files = {**OLD, "sub/Makefile.in": "NAME = ../plum\nOBJECTS = b.o\n", "sub/b.c": make_source("two")}
    program = start("-w", make_folder(tmp_path, files=files), "-p", 0)
    first, second = program.wait_line(r"^serving  (\S+ \S+)$")[1].split()
    assert first.endswith("/pear/") and second.endswith("/plum/")
    assert ask(first) == (200, "one\n") and ask(second) == (200, "two\n")


# ── the original spelling ──


@pytest.mark.parametrize("spelling", [["-w", "DIR", "-p", "PORT"], ["-p", "PORT", "-w", "DIR"], ["-wDIR", "-pPORT"]])
def test_the_original_spelling(tmp_path, start, spelling):
    folder, port = make_folder(tmp_path, files=OLD), free_port()
    words = [word.replace("DIR", str(folder)).replace("PORT", str(port)) for word in spelling]
    assert start(*words).wait_url() == f"http://127.0.0.1:{port}/pear/"
    assert ask(f"http://127.0.0.1:{port}/pear/") == (200, "one\n")


def test_options_of_the_original(tmp_path, start):
    """Those of the build of the server have no effect, and -M sets keys of its configuration."""
    folder, port = make_folder(tmp_path, files=OLD), free_port()
    keys = f"Workers=3, port={port},Listen=127.0.0.1"
    program = start("-f", "-T", "-V", "2", "-M", keys, "-w", folder)
    assert program.wait_url() == f"http://127.0.0.1:{port}/pear/"
    assert ask(f"http://127.0.0.1:{port}/pear/") == (200, "one\n")
    folder = pathlib.Path(f"/proc/{program.server_pid()}/task")

    def count_workers():
        return sum(re.fullmatch(r"monkey: w\d\n", path.read_text()) is not None for path in folder.glob("*/comm"))

    end = time.monotonic() + 60
    while count_workers() != 3:  # a thread that a worker starts has its name for a moment
        assert time.monotonic() < end, count_workers()
        time.sleep(0.01)


@pytest.mark.parametrize("option, shown", [("-u", True), ("-f", False)])
def test_what_a_service_prints(tmp_path, start, option, shown):
    source = make_source().replace("#include", "#include <stdio.h>\n#include", 1)
    source = source.replace("    return router", '    puts("printed");\n    fflush(stdout);\n    return router')
    files = {**OLD, "main.c": source}
    program = start(option, "-p", 0, "-w", make_folder(tmp_path, files=files))
    assert ask(program.wait_url()) == (200, "one\n")
    program.stop()
    assert ("printed" in program.lines) == shown


@pytest.mark.parametrize(
    "keys, error",
    [
        ("Port", "'Port' is no KEY=VALUE"),
        ("Port=0x", "Port is a number from 0 to 65535"),
        ("Workers=-1", "Workers is a number from 0 to 1024"),
        ("Resume=On", "Resume cannot be set here; Port, Listen and Workers can"),
    ],
)
def test_wrong_keys(tmp_path, keys, error):
    done = run_dudac("-M", keys, "-w", make_folder(tmp_path, files=OLD))
    assert done.returncode == 2 and f"'-M': {error}" in done.stderr


def test_fetching_the_sources_has_no_effect():
    for option in ("-s", "-g"):
        done = run_dudac(option)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == "dudac: the server and the framework are here already; nothing is fetched\n"


# ── what can go wrong ──


def test_a_port_in_use(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run_dudac("run", make_folder(tmp_path), "-p", port)
    assert done.returncode == 1
    assert done.stderr == f"dudac: port {port} is in use by another program; -p chooses another one\n"


def test_a_port_of_another_dudac(tmp_path, start):
    """Both servers could listen there, by SO_REUSEPORT."""
    folder, port = make_folder(tmp_path), free_port()
    start("run", folder, "-p", port).wait_url()
    done = run_dudac("run", folder, "-p", port)
    assert done.returncode == 1 and "is in use by another program" in done.stderr


def test_an_address_of_another_machine(tmp_path):
    done = run_dudac("run", make_folder(tmp_path), "-p", 2001, "-l", "192.0.2.1")
    assert done.returncode == 1 and "cannot listen on 192.0.2.1, port 2001: " in done.stderr


@pytest.mark.parametrize("address", ["nonsense.invalid", "1.2.3", "", "a b", "::g"])
def test_what_is_no_address(tmp_path, address):
    done = run_dudac("run", make_folder(tmp_path), "-p", 0, "-l", address)
    assert done.returncode == 1 and f"dudac: {address!r} is no address" in done.stderr, done.stderr


@pytest.mark.parametrize("source, sentence", [
    (make_source().replace("return router", "return 7; return router"), "duda_main() has returned 7"),
    ("int x;\n", "it is no service"),
    ("#include <duda/duda.h>\nint x;\n", "it has no duda_main()"),
])
def test_a_service_that_does_not_start(tmp_path, source, sentence):
    folder = make_folder(tmp_path, files={"apple.c": source, "checks.toml": '[[check]]\nget = "/"\n'})
    done = run_dudac("test", folder)
    assert done.returncode == 1 and sentence in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].startswith("dudac: ") and not run_folders(folder)


def test_notifications_of_other_processes_do_not_count():
    """Every local user can send to the socket."""
    notify = NotifySocket()
    with contextlib.closing(notify.socket), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        address = "\0" + notify.name[1:]
        sender.sendto(b"READY=1\n", address)
        assert not notify.is_ready(os.getpid() + 1)
        sender.sendto(b"STATUS=x\nREADY=1\n", address)
        assert notify.is_ready(os.getpid())
        sender.sendto(b"READY=10\n", address)
        assert not notify.is_ready(os.getpid())


def test_a_server_that_dies(tmp_path, start):
    folder = make_folder(tmp_path, files={"apple.c": CRASH})
    program = start("run", folder, "-p", 0)
    url = program.wait_url()
    with pytest.raises(OSError):
        ask(url)
    assert program.process.wait(60) == 1
    program.reader.join(10)
    line = program.wait_line(r"^dudac: the server has ended: (SIG.*|a sanitizer reports:)$")
    assert line[1] and not run_folders(folder)
    program.lines.clear()  # the report of the sanitizer is that of the crash


def test_a_server_that_dies_at_the_end(tmp_path, start):
    source = make_source() + "\nvoid duda_exit(void)\n{\n    __builtin_trap();\n}\n"
    program = start("run", make_folder(tmp_path, files={"apple.c": source}), "-p", 0)
    program.wait_url()
    assert program.stop() == 130
    program.wait_line("^dudac: the server has ended: ")
    program.lines.clear()  # the report of the sanitizer is that of the crash


def test_a_server_that_dies_in_duda_main(tmp_path):
    source = make_source().replace("return router", "__builtin_trap(); return router")
    done = run_dudac("run", make_folder(tmp_path, files={"apple.c": source}), "-p", 0)
    assert done.returncode == 1 and "dudac: the server has ended: " in done.stderr
