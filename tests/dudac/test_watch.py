# SPDX-License-Identifier: Apache-2.0
"""`dudac run --watch`: a change is built and swapped, and what does not compile or start is shown."""

import contextlib
import html
import http.client
import os
import re
import shutil
import signal
import subprocess
import threading
from urllib.parse import urlsplit

import pytest
from dudac.config import Options
from dudac.installation import find_installation
from dudac.screen import Screen
from dudac.session import Session
from dudac.watch import is_ignored

from harness.server import await_true, is_alive
from running import DUDAC, SECONDS, ask, make_folder, make_source

pytest.importorskip("watchdog", reason="NOT TESTED: no python3-watchdog here")

BROKEN = make_source().replace("return router", "return_ router")


def watch(start, folder, *arguments, **rest):
    program = start("run", folder, "--watch", "-p", 0, *arguments, **rest)
    return program, program.wait_url()


def test_a_change_is_swapped(tmp_path, start):
    folder = make_folder(tmp_path)
    program, url = watch(start, folder)
    server = program.server_pid()
    make_folder(tmp_path, text="two")
    assert program.wait_url(2) == url and ask(url) == (200, "two\n")
    assert program.server_pid() == server


@pytest.mark.parametrize("name", ["new.c", "text.h", "sub/text.h", "service.toml"])
def test_files_that_count(tmp_path, start, name):
    files = {"apple.c": '#if __has_include("text.h") || __has_include("sub/text.h")\n#endif\n' + make_source()}
    folder = make_folder(tmp_path, files=files)
    (folder / "sub").mkdir()
    program, url = watch(start, folder)
    make_folder(tmp_path, files={name: "" if name == "service.toml" else "extern int x;\n"})
    make_folder(tmp_path, text="two")
    program.wait_url(2)
    await_true(lambda: ask(url) == (200, "two\n"))


def test_a_file_that_is_replaced_by_rename(tmp_path, start):
    """As editors do it."""
    folder = make_folder(tmp_path)
    program, url = watch(start, folder)
    (folder / ".apple.c.new").write_text(make_source("two"))
    (folder / ".apple.c.new").rename(folder / "apple.c")
    program.wait_url(2)
    assert ask(url) == (200, "two\n")


def test_files_that_do_not_count(tmp_path, start):
    folder = make_folder(tmp_path, files={"apple.c": make_source(), "html/a": "", "data/a": "", "logs/a": ""})
    program, url = watch(start, folder)
    for name in ("html/a", "data/a", "logs/a", "readme", ".hidden", "apple.c~"):
        (folder / name).write_text("x")
    make_folder(tmp_path, text="two")
    program.wait_url(2)
    assert ask(url) == (200, "two\n")
    assert program.output.count("serving") == 2 and program.output.count("console  ") == 1


def test_a_build_folder_behind_a_link(tmp_path):
    """What is made in it is no change: a failure, which leaves a page there, would be built again and again."""
    folder, link = make_folder(tmp_path, files={"apple.c": "", "out/readme": ""}), tmp_path / "link"
    (folder / "build").symlink_to("out")
    link.symlink_to(folder)
    made = {folder / "build/a.o", folder / "out", folder / "out/a.o", link / "build", link / "out/b/c"}
    for build in (folder / "build", link / "build", folder / "out"):
        ignored = {path for path in made if is_ignored(str(path), link if path.is_relative_to(link) else folder, build)}
        assert made - ignored <= {link / "build"}
        assert not is_ignored(str(folder / "apple.c"), folder, build)


HEADER = {
    "apple.c": '#if __has_include("lib/text.h")\n#include "lib/text.h"\n#else\n#define WORD "none"\n#endif\n'
               + make_source().replace('"one"', "WORD"),
    "lib/text.h": '#define WORD "lib"\n',
}


def test_folders_that_are_moved(tmp_path, start):
    """Away, and back; a file in a folder that came from elsewhere is watched."""
    settings = 'sources = ["*.c", "*/*/*.c"]\n'
    files = {"apple.c": make_source(), "a/b/b.c": "int b;\n", "service.toml": settings}
    folder = make_folder(tmp_path, files=files)
    make_folder(tmp_path, "other", {"c/c.c": "int c;\n"})
    program, _ = watch(start, folder)
    (folder / "a").rename(tmp_path / "a")
    program.wait_line(r"^dudac: .* has no sources: no file matches \*/\*/\*.c")
    (tmp_path / "a").rename(folder / "a")
    program.wait_url(2)
    (tmp_path / "other").rename(folder / "other")
    program.wait_url(3)
    (folder / "other/c/c.c").write_text("int d;\n")
    program.wait_url(4)


def test_a_header_in_a_folder_that_is_new(tmp_path, start):
    """Below several that are new, too."""
    source = HEADER["apple.c"].replace("lib/text.h", "a/b/c/text.h")
    folder = make_folder(tmp_path, files={"apple.c": source})
    program, url = watch(start, folder)
    assert ask(url) == (200, "none\n")
    make_folder(tmp_path, files={"a/b/c/text.h": '#define WORD "new"\n', "apple.c": source + "\n"})
    program.wait_url(2)
    await_true(lambda: ask(url) == (200, "new\n"), SECONDS)
    served = program.output.count("serving")
    make_folder(tmp_path, files={"a/b/c/text.h": '#define WORD "newer"\n'})
    program.wait_url(served + 1)
    assert ask(url) == (200, "newer\n")


def test_a_source_that_gets_another_name(tmp_path, start):
    folder = make_folder(tmp_path, files={"apple.c": make_source(), "b.c": "int b;\n"})
    program, _ = watch(start, folder)
    (folder / "b.c").rename(folder / "c.c")
    program.wait_url(2)
    assert [line.split()[1] for line in program.lines if line.startswith("compile")] == ["apple.c", "b.c", "c.c"]


def test_an_older_file_in_its_place(tmp_path, start):
    folder = make_folder(tmp_path)
    (tmp_path / "old.c").write_text(make_source("old"))
    os.utime(tmp_path / "old.c", (1, 1))
    program, url = watch(start, folder)
    (tmp_path / "old.c").rename(folder / "apple.c")
    program.wait_url(2)
    assert ask(url) == (200, "old\n")


def test_settings_that_need_no_build(tmp_path, start):
    """They change where it is served, and so does a folder that is new."""
    folder = make_folder(tmp_path)
    program, url = watch(start, folder)
    (folder / "service.toml").write_text("root = true\n")
    assert program.wait_url(2) == url.removesuffix("apple/")
    (folder / "html").mkdir()
    (folder / "html/page").write_text("a page")
    program.wait_url(3)
    assert ask(program.wait_url(3), "page") == (200, "a page") and program.output.count("compile") == 1


def test_what_another_dudac_builds(tmp_path, start):
    """Two watch one folder; whichever builds, both serve the new version."""
    folder = make_folder(tmp_path)
    first, second = watch(start, folder), watch(start, folder)
    for number in range(2, 5):
        make_folder(tmp_path, text=str(number))
        for program, url in (first, second):
            program.wait_url(number)
            assert ask(url) == (200, f"{number}\n")


def test_changes_without_a_pause(tmp_path, start):
    """A program that writes into the folder all the time does not keep it from building."""
    folder = make_folder(tmp_path)
    program, url = watch(start, folder)
    stopping = threading.Event()

    def write():
        while not stopping.wait(0.005):
            (folder / "log.txt").write_text("x")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        make_folder(tmp_path, text="two")
        program.wait_url(2)
        assert ask(url) == (200, "two\n")
    finally:
        stopping.set()
        writer.join(30)


# dudac may remove and make files in the folder meanwhile, so that rm fails
REMOVE = "until rm -rf apple; do :; done"


@pytest.mark.parametrize("command", [REMOVE, "mv apple pear", f"{REMOVE}; mkdir -p apple && cp old.c apple/"])
@pytest.mark.parametrize("build_dir", [[], ["-B", "made"]], ids=["inside", "outside"])
def test_a_folder_that_is_gone(tmp_path, start, command, build_dir):
    make_folder(tmp_path)
    (tmp_path / "old.c").write_text(make_source())
    program = start("run", "apple", "--watch", "-p", 0, *build_dir, cwd=tmp_path)
    program.wait_url()
    server = program.server_pid()
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, timeout=SECONDS)
    assert program.process.wait(SECONDS) == 1
    program.reader.join(SECONDS)
    assert program.lines[-1] == f"dudac: the folder {tmp_path}/apple was deleted or replaced while it was watched"
    assert not is_alive(server) and not list(tmp_path.glob("*/run-*"))


def test_a_build_folder_that_is_gone(tmp_path, start):
    """As by `git clean`: it is made again with the next change."""
    folder = make_folder(tmp_path)
    program, url = watch(start, folder)
    shutil.rmtree(folder / "build")
    make_folder(tmp_path, files={"apple.c": BROKEN})
    program.wait_line("^dudac: apple.c does not compile")
    make_folder(tmp_path, text="two")
    program.wait_url(2)
    assert ask(url) == (200, "two\n")


def test_a_service_that_blocks_waits_for_a_change(tmp_path, monkeypatch):
    monkeypatch.setattr("dudac.server.START_SECONDS", 3)
    monkeypatch.setattr("dudac.server.STOP_SECONDS", 0.1)
    source = "#include <unistd.h>\n" + make_source().replace("return router", "pause();\n    return router")
    folder = make_folder(tmp_path, files={"apple.c": source})
    session = Session(folder, None, find_installation(str(DUDAC)), Options(0), Screen())
    with contextlib.closing(session):
        session.start_watched()
        status, page = ask(session.urls()[0])
        assert status == 503 and "the server has said nothing for 3 s" in page
        make_folder(tmp_path, text="two")
        monkeypatch.setattr("dudac.server.START_SECONDS", SECONDS)
        assert session.rebuild()
        session.try_serve()
        assert ask(session.urls()[0]) == (200, "two\n")
    assert not list((folder / "build").glob("run-*"))


def test_a_change_of_its_configuration_starts_it_again(tmp_path, start):
    source = "static int answers;\n" + make_source().replace('"%s\\n", "one"', '"%d", ++answers')
    folder = make_folder(tmp_path, files={"apple.c": source, "conf/x": "1"})
    program, url = watch(start, folder, "--workers", "1")
    assert [ask(url) for _ in range(2)] == [(200, "1"), (200, "2")]
    (folder / "conf/x").write_text("2")
    program.wait_url(2)
    assert ask(url) == (200, "1") and program.output.count("compile") == 1


def test_errors_of_the_compiler_are_shown_until_it_compiles(tmp_path, start):
    folder = make_folder(tmp_path)
    program, url = watch(start, folder)
    make_folder(tmp_path, files={"apple.c": BROKEN})
    program.wait_line("^dudac: apple.c does not compile")
    status, page = await_true(lambda: (found := ask(url))[0] == 503 and found)
    assert "<h1>apple.c:13: error: unknown type name ‘return_’</h1>" in page
    assert "return_ router-&gt;get(&quot;/&quot;" in page and 'http-equiv="refresh"' in page and "\x1b" not in page
    assert "apple.c:13:5: error: " in program.output
    make_folder(tmp_path, text="two")
    program.wait_url(2)
    assert ask(url) == (200, "two\n")


def test_names_of_others_get_no_page(tmp_path, start):
    """A page of another site may have its name lead here (DNS rebinding); it must not read sources."""
    folder = make_folder(tmp_path)
    program, url = watch(start, folder, "--name", "box.example")
    port = urlsplit(url).port
    own = ("localhost", f"localhost:{port}", "apple.localhost:80", "127.0.0.1", f"[::1]:{port}", "Box.Example")
    others = ("evil.example", f"evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.test", "xbox.example")
    assert [ask(url, headers={"Host": host}) for host in own] == [(200, "one\n")] * len(own)
    assert {ask(url, headers={"Host": host})[0] for host in others} == {421}
    make_folder(tmp_path, files={"apple.c": BROKEN})
    await_true(lambda: "return_" in ask(url)[1])
    assert [ask(url, headers={"Host": host})[0] for host in own] == [503] * len(own)
    assert not any("return_" in ask(url, headers={"Host": host})[1] for host in others)


def test_the_page_shows_the_last_error(tmp_path, start):
    folder = make_folder(tmp_path)
    program, url = watch(start, folder)
    make_folder(tmp_path, files={"apple.c": BROKEN})
    await_true(lambda: "return_" in ask(url)[1])
    make_folder(tmp_path, files={"apple.c": BROKEN.replace("return_", "another")})
    await_true(lambda: "another" in ask(url)[1])
    (folder / "apple.c").unlink()
    await_true(lambda: "has no sources" in ask(url)[1])
    make_folder(tmp_path)
    program.wait_url(2)
    assert ask(url) == (200, "one\n")


def test_the_same_text_again_clears_the_error(tmp_path, start):
    """There is nothing to link then."""
    folder = make_folder(tmp_path)
    program, url = watch(start, folder)
    make_folder(tmp_path, files={"other.c": "int a\n"})
    await_true(lambda: ask(url)[0] == 503)
    (folder / "other.c").unlink()
    program.wait_url(2)
    assert ask(url) == (200, "one\n")


def test_a_long_error_fits_into_the_page(tmp_path, start):
    folder = make_folder(tmp_path)
    program, url = watch(start, folder)
    long = '#error "' + '"&<é' * 4000 + "\nint x = y;\n" * 500
    make_folder(tmp_path, files={"apple.c": make_source() + long})
    status, page = await_true(lambda: (found := ask(url))[0] == 503 and found)
    assert "#error" in page and page.endswith("</html>\n")


def test_a_service_that_does_not_start_is_shown(tmp_path, start):
    program, url = watch(start, make_folder(tmp_path))
    make_folder(tmp_path, files={"apple.c": make_source().replace("return router", "return 7; return router")})
    program.wait_line(r"^dudac: .*duda_main\(\) has returned 7")
    status, page = await_true(lambda: (found := ask(url))[0] == 503 and found)
    assert "duda_main() has returned 7" in page
    make_folder(tmp_path, text="two")
    program.wait_url(2)
    assert ask(url) == (200, "two\n")


def test_the_first_build_may_fail(tmp_path, start):
    folder = make_folder(tmp_path, files={"apple.c": BROKEN})
    program = start("run", folder, "--watch", "-p", 0, "-v")
    port = program.wait_line(r"listening on 127.0.0.1:(\d+)")[1]
    program.wait_line("^dudac: apple.c does not compile")
    url = f"http://127.0.0.1:{port}/apple/"
    await_true(lambda: "return_" in ask(url)[1])
    make_folder(tmp_path, text="two")
    program.wait_url()
    assert ask(url) == (200, "two\n")


def ask_or_wait(url):
    """The next server listens in a moment."""
    with contextlib.suppress(ConnectionError):
        return ask(url)


MISSING_TABLE = """duda_load_package(sqlite, "sqlite");
    duda_sqlite_t *db = sqlite->open(&(struct duda_sqlite_conf){.path = "a.db"});
    if (sqlite->exec(db, NULL, "DELETE FROM fruits", NULL, 0) < 0)
        return 7;
    """
FAILED_STARTS = {
    "msg": ('msg->warn("no table %s", "fruits"); return 7; ', "warn  service apple: no table fruits"),
    "sqlite": (MISSING_TABLE, "service apple: sqlite->exec(): a.db: no such table: fruits (DELETE FROM fruits)"),
}


@pytest.mark.parametrize("name", FAILED_STARTS)
def test_a_failed_start_is_shown_with_what_the_service_has_said(tmp_path, start, name):
    code, line = FAILED_STARTS[name]
    said = line.partition("apple: ")[2]
    program, url = watch(start, make_folder(tmp_path, files={"apple.c": make_source(), "data/empty": ""}))
    source = make_source().replace("return router", code + "return router")
    source = "#include <duda/packages/sqlite/sqlite.h>\n" + source
    make_folder(tmp_path, files={"apple.c": source})
    status, page = await_true(lambda: (found := ask(url))[0] == 503 and found)
    page = html.unescape(page)
    assert f"<h1>duda_main() has returned 7: {said}" in page and line in page
    program.stop()
    assert [program.output.count(text) for text in (said, "duda_main() has returned 7")] == [1, 1]


# AddressSanitizer would report first.
NO_HANDLERS = {"ASAN_OPTIONS": "handle_sigill=0:detect_leaks=0"}


def test_after_a_crash_the_page_shows_where_it_was(tmp_path, start):
    program, url = watch(start, make_folder(tmp_path), env=NO_HANDLERS)
    code = 'msg->warn("before"); __builtin_trap(); response->end'
    make_folder(tmp_path, files={"apple.c": make_source().replace("response->end", code)})
    program.wait_url(2)
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(url)
    program.wait_line("^dudac: the server has ended: ")
    program.wait_line("^dudac: it starts again after the next change")
    status, page = await_true(lambda: ask_or_wait(url))
    assert status == 503 and "<h1>SIGILL in say(), apple.c:8</h1>" in page and "before" not in page
    assert re.search(r"#0 apple\.duda\+0x[0-9a-f]+ \(\w+, \S*apple\.c:\d+\)", page), page
    assert "request: GET /apple/" in page
    make_folder(tmp_path, text="two")
    assert program.wait_url(3) == url and ask(url) == (200, "two\n")
    assert [program.output.count(text) for text in ("has crashed: SIGILL", "(say, ", "before")] == [1, 1, 1]


def test_a_server_that_was_killed(tmp_path, start):
    """There is no reason in its log."""
    program, url = watch(start, make_folder(tmp_path))
    os.kill(program.server_pid(), signal.SIGKILL)
    program.wait_line("^dudac: it starts again after the next change")
    status, page = await_true(lambda: ask_or_wait(url))
    assert status == 503 and "<h1>the server has ended: SIGKILL (Killed)</h1>" in page and "listening" not in page


def test_a_report_of_a_sanitizer_is_shown(tmp_path, start):
    source = "#include <stdlib.h>\n" + make_source().replace(
        "response->end", 'int *volatile p = malloc(4); free(p); response->printf(dr, "%d", *p); response->end')
    program, url = watch(start, make_folder(tmp_path, files={"apple.c": source}), "--sanitize", "address",
                         env={"CC": None})
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(url)
    program.wait_line("^dudac: it starts again after the next change")
    status, page = await_true(lambda: ask_or_wait(url))
    assert status == 503 and "<h1>AddressSanitizer: heap-use-after-free in say(), apple.c:9</h1>" in page
    program.lines.clear()  # of the report, which is not one of the server


def test_a_crash_at_the_first_start_is_shown(tmp_path, start):
    source = make_source().replace("return router", "__builtin_trap(); return router")
    program = start("run", make_folder(tmp_path, files={"apple.c": source}), "--watch", "-p", 0, "-v",
                    env=NO_HANDLERS)
    program.wait_line("^dudac: it starts again after the next change")
    port = program.wait_line(r"listening on 127.0.0.1:(\d+)")[1]
    status, page = await_true(lambda: ask_or_wait(f"http://127.0.0.1:{port}/apple/"))
    assert status == 503 and re.search(r"has crashed: SIGILL(.|\n)*\(duda_main, \S*apple\.c:\d+\)", page), page
    make_folder(tmp_path, text="two")
    assert ask(program.wait_url()) == (200, "two\n")


class Client(threading.Thread):
    """Asks over one connection until `stopping` is set, and counts the answers by text."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.answers, self.mistakes, self.stopping = urlsplit(url), {}, [], False
        self.start()

    def run(self):
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=30)
        while not self.stopping:
            try:
                connection.request("GET", self.url.path)
                response = connection.getresponse()
                text = response.read().decode()
            except (OSError, http.client.HTTPException) as error:
                self.mistakes.append(repr(error))
                connection.close()
                continue
            if response.status != 200:
                self.mistakes.append((response.status, text))
            self.answers[text] = self.answers.get(text, 0) + 1
        connection.close()

    def end(self):
        self.stopping = True
        self.join(60)


@pytest.mark.slow
def test_swaps_under_load_lose_nothing(tmp_path, start):
    folder = make_folder(tmp_path, text="0")
    program, url = watch(start, folder)
    clients = [Client(url) for _ in range(6)]
    try:
        for number in range(1, 11):
            make_folder(tmp_path, text=str(number))
            program.wait_url(number + 1)
            await_true(lambda: all(f"{number}\n" in client.answers for client in clients), 30)
    finally:
        for client in clients:
            client.end()
    assert [client.mistakes for client in clients] == [[]] * len(clients)
    assert all(set(client.answers) == {f"{number}\n" for number in range(11)} for client in clients)


def test_swaps_under_load_leave_the_other_service_alone(tmp_path, start):
    """Two services of one folder: one is swapped, the other counts on, and each of its answers is another number."""
    counter = "static _Atomic int answers;\n" + make_source().replace('"%s\\n", "one"', '"%d", ++answers')
    files = {
        "Makefile.in": "NAME = apple\nOBJECTS = apple.o\n",
        "apple.c": make_source("0"),
        "sub/Makefile.in": "NAME = ../plum\nOBJECTS = plum.o\n",
        "sub/plum.c": counter,
    }
    folder = make_folder(tmp_path, "apple", files)
    program = start("run", folder, "--watch", "-p", 0)
    apple, plum = program.wait_line(r"^serving  (\S+ \S+)$")[1].split()
    clients = [Client(url) for url in (apple, plum, plum)]
    try:
        for number in range(1, 6):
            make_folder(tmp_path, "apple", {"apple.c": make_source(str(number))})
            program.wait_url(number + 1)
            await_true(lambda: f"{number}\n" in clients[0].answers, 30)
    finally:
        for client in clients:
            client.end()
    assert [client.mistakes for client in clients] == [[]] * len(clients)
    counted = sorted(int(text) for client in clients[1:] for text, n in client.answers.items() for _ in range(n))
    assert counted == list(range(1, len(counted) + 1))
