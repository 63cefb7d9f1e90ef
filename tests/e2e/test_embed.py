# SPDX-License-Identifier: Apache-2.0
"""Programs that embed the server: the examples, and programs of tests/embed, compiled against what is installed."""

import re
import shutil
import signal
import subprocess
import types
import urllib.request

import pytest

from harness import build, embed
from harness.client import Client as PlainClient
from harness.content import populate
from harness.embed import EXAMPLES, PROGRAMS, Program
from harness.protocol import Client
from harness.websocket import BINARY, WebSocket
from test_counter_budget import make_shim

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET == "small", reason="the small build has no library for programs"),
]

PACKAGES = {"glib": "glib-2.0", "libuv": "libuv", "libevent": "libevent", "chat": "monkey-kit"}
ROUNDS = {"threads": 250, "caller": 250, "several": 100, "forked": 50, "cut": 100}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return embed.install(tmp_path_factory.mktemp("prefix"))


@pytest.fixture(scope="module")
def compiled(prefix, tmp_path_factory):
    """Compiles a source once, and returns the path of the program."""
    programs = {}

    def compile_once(source, *packages, static=False):
        if (source, static) not in programs:
            folder = tmp_path_factory.mktemp(source.stem)
            programs[source, static] = embed.compile_program(prefix, folder, source, *packages, static=static)
        return programs[source, static]

    return compile_once


# ── examples ──


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_hello(compiled, tmp_path, static):
    root = populate(tmp_path / "root", {"a.txt": b"embedded\n"})
    with Program(compiled(EXAMPLES / "hello.c", static=static), root) as program:
        assert program.ask().body == b"Hello, you!\n"
        assert program.ask("/hello/%C3%A4").body == "Hello, ä!\n".encode()
        assert program.ask("/a.txt").body == b"embedded\n"
        assert program.ask("/b.txt").status == 404
        assert program.ask(method="DELETE").status == 405


def test_hello_without_a_folder(compiled):
    with Program(compiled(EXAMPLES / "hello.c")) as program:
        assert program.ask().body == b"Hello, you!\n"
        assert program.ask("/a.txt").status == 404


def test_hello_in_cpp(compiled):
    with Program(compiled(EXAMPLES / "hello.cpp")) as program:
        assert program.ask().body == b"Hello, you!\n"
        assert program.ask("/hello/nobody").status == 500
        assert program.ask().body == b"Hello, you!\n"


CPP17 = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
CPP_COMPILERS = {"g++": [], "clang++-14": ["-nostdlib++"]}  # there is no library of C++ in clang-14
needs_compiler = pytest.mark.parametrize("compiler", [
    pytest.param(name, marks=[
        pytest.mark.skipif(not shutil.which(name), reason=f"NOT TESTED: no {name} here"),
        *[pytest.mark.slow] * (name != "g++"),
    ])
    for name in CPP_COMPILERS
])


@needs_compiler
def test_each_header_in_cpp17(prefix, tmp_path, compiler):
    """Each one alone, so that it includes what it needs."""
    for name in build.PUBLIC_HEADERS:
        source = tmp_path / "header.cpp"
        source.write_text(f"#include <monkey/{name}>\n#include <monkey/{name}>\n")
        command = [compiler, *CPP17, f"-I{prefix}/include", "-fsyntax-only", source]
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert run.returncode == 0, run.stderr


@needs_compiler
def test_a_program_in_cpp17(prefix, tmp_path, compiler):
    program, library = tmp_path / "small", next(prefix.rglob("libmonkey.so")).parent
    command = [compiler, *CPP17, *embed.FLAGS, *CPP_COMPILERS[compiler], PROGRAMS / "small.cpp", "-o", program]
    command += [*embed.pkg_config(prefix, "--cflags", "--libs", "monkey"), "-pthread", f"-Wl,-rpath,{library}"]
    if compiler.startswith("clang") != (build.PRESET == "clang"):
        if build.SANITIZED:
            pytest.skip("the library has the sanitizer of another compiler")
    subprocess.run(list(map(str, command)), check=True)
    with Program(program) as running:
        assert running.ask().body == b"Hello, you!\n"
        assert running.ask("/count").body == b"1\n"
        answer = running.ask("/count")
        assert (answer.body, answer["Set-Cookie"]) == (b"2\n", "seen=yes; Path=/; HttpOnly")


@pytest.mark.parametrize("name", ["glib", "libuv", "libevent"])
def test_in_a_foreign_loop(compiled, name):
    """Requests one after the other, and on several connections that are open at the same time."""
    with Program(compiled(EXAMPLES / f"{name}.c", PACKAGES[name])) as program:
        for i in range(1, 6):
            assert program.ask().body == b"%d\n" % i
        clients = [Client(program.address) for _ in range(5)]
        for i, client in enumerate(clients * 3, 6):
            assert client.ask("/count").body == b"%d\n" % i
        for client in clients:
            client.close()


def exchange_messages(program):
    server = types.SimpleNamespace(way=types.SimpleNamespace(h2=False), open=lambda: PlainClient(program.address))
    clients = [WebSocket(server, program.path) for _ in range(4)]
    for i, client in enumerate(clients):
        client.send_message(b"message %d" % i)
        for other in clients:
            assert other.message() == (BINARY, b"message %d" % i)
    for client in clients:
        client.drop()


def test_websockets(compiled):
    with Program(compiled(EXAMPLES / "chat.c", PACKAGES["chat"])) as program:
        exchange_messages(program)


def test_every_example_is_asked():
    asked = {"hello.c", "hello.cpp", "chat.c", "glib.c", "libuv.c", "libevent.c"}
    assert {path.name for path in EXAMPLES.iterdir() if path.suffix in (".c", ".cpp")} == asked


@pytest.mark.parametrize("source, library", [
    ("monkey.c", None),
    ("microhttpd.c", "microhttpd"),
    ("civetweb.c", "civetweb"),
    ("httplib.cpp", "cpp-httplib"),
])
def test_programs_that_are_compared(tmp_path, compiled, source, library):
    """Those of the table in the guide answer alike."""
    path, program = PROGRAMS / "peers" / source, tmp_path / "program"
    if not library:
        program = compiled(path)
    else:
        compiler = "c++" if path.suffix == ".cpp" else "cc"
        if subprocess.run([compiler, path, "-o", program, f"-l{library}", "-pthread"], capture_output=True).returncode:
            pytest.skip(f"Debian's package of {library} is not installed")
    with Program(program) as running:
        for name in ("you", "others"):  # by another client than ours, which wants the headers of RFC 9110
            url = f"http://127.0.0.1:{running.address[1]}/hello/{name}"
            with urllib.request.urlopen(url, timeout=60) as response:
                assert response.read() == f"Hello, {name}!\n".encode()


# ── names ──


def read_names(library):
    """What a library defines for those that are linked with it."""
    dynamic = [] if library.suffix == ".a" else ["-D"]
    command = ["nm", "-g", "--defined-only", "--format=posix", *dynamic, library]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    words = [line.split() for line in lines if not line.endswith(":")]
    return {word[0] for word in words if len(word) > 2}


def test_names_of_installed_libraries(prefix):
    """A program may use any other name for its own functions, also where it is linked statically."""
    libraries = [path for kind in ("*.a", "*.so*") for path in prefix.rglob(kind) if not path.is_symlink()]
    found = {path.name: read_names(path) for path in libraries}
    assert {"libmonkey.a", "libmonkey-kit.a", "libmonkey.so.2.0.0", "tls.so"} <= set(found)
    assert all(found.values())
    foreign = {(name, each) for name, names in found.items() for each in names if not each.startswith("mk_")}
    versions, sanitizers = {"LIBMONKEY_2.0"}, ("__asan_", "__odr_asan", "__ubsan_")
    assert not {(file, name) for file, name in foreign if name not in versions and not name.startswith(sanitizers)}


# ── starts and stops ──


@pytest.mark.concurrent
@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ROUNDS)
def test_starts_and_stops(compiled, tmp_path, kind, times):
    """
    The program compares what belongs to it before, meanwhile and after: signals, locale, environment, working
    directory, limits, users, processors ...; descriptors, threads and the heap before and after.
    """
    root = populate(tmp_path / "root", {"a.txt": b"embedded\n"})
    program = compiled(PROGRAMS / "storm.c")
    run = subprocess.run(
        [program, str(ROUNDS[kind] * times), kind, root],
        capture_output=True,
        timeout=500,
        text=True,
        env={**build.environment(), "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"},
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.slow
@pytest.mark.skipif(build.SANITIZED, reason="sanitizers and valgrind exclude each other")
@pytest.mark.parametrize("kind", ["threads", "caller", "several", "cut"])
def test_under_valgrind(compiled, tmp_path, kind):
    """Errors of memory that sanitizers do not see, and leaks: with libmonkey.so as it is installed."""
    root = populate(tmp_path / "root", {"a.txt": b"embedded\n"})
    command = ["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", compiled(PROGRAMS / "storm.c")]
    environment = {**build.environment(), **make_shim(tmp_path)}
    run = subprocess.run([*command, "10", kind, root], capture_output=True, timeout=250, text=True, env=environment)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def compile_static(prefix, folder, name, *packages):
    """Without any shared library; nothing is exported."""
    flags = embed.pkg_config(prefix, "--static", "--cflags", "--libs", *packages, "monkey")
    program = folder / name
    command = [*embed.COMPILERS[".c"], *embed.FLAGS, EXAMPLES / f"{name}.c", "-o", program, *flags, "-static"]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    exported = subprocess.run(["nm", "-D", program], capture_output=True, text=True).stdout
    assert exported == ""
    return program


@pytest.mark.skipif(build.SANITIZED, reason="sanitizers cannot be linked statically")
def test_a_static_program_with_a_plugin(prefix, tmp_path):
    with Program(compile_static(prefix, tmp_path, "chat", PACKAGES["chat"])) as program:
        exchange_messages(program)


@pytest.mark.skipif(build.SANITIZED, reason="sanitizers cannot be linked statically")
def test_a_static_program(prefix, tmp_path):
    compile_static(prefix, tmp_path, "hello")
    root = populate(tmp_path / "root", {"a.txt": b"embedded\n"})
    with Program(tmp_path / "hello", root) as program:
        assert program.ask().body == b"Hello, you!\n"
        assert program.ask("/a.txt").body == b"embedded\n"


# ── mistakes of the program ──

MISTAKES = {
    "start_twice": "mk_server_start(): the server runs already",
    "load_while_it_runs": "mk_server_load(): the server runs; mk_server_reload() loads anew",
    "text_while_it_runs": "the server runs: its configuration and its handlers are set before the start",
    "folder_while_it_runs": "the server runs: its configuration and its handlers are set before the start",
    "handle_while_it_runs": "the server runs: its configuration and its handlers are set before the start",
    "handle_nothing": "mk_server_handle(): methods, pattern or function are NULL",
    "add_nothing": "mk_server_add_plugin(): there is no plugin, or it has no name",
    "text_of_nothing": "mk_server_text(): the text is NULL",
    "folder_of_nothing": "mk_server_folder(): the folder is NULL",
    "turn_with_threads": "the server has its own threads; call mk_server_in_caller() before the start",
    "turn_without_start": "the server does not run",
    "stop_in_a_handler": "a handler or hook must not start, reload or stop its server",
    "stop_in_a_turn": "a handler or hook must not start, reload or stop its server",
    "turn_in_a_turn": "a handler or hook must not start, reload or stop its server",
    "turn_in_another_thread": "the server runs in the thread that has started it: only that may call it",
    "stop_beside_a_start": "another thread is within a call for the server: call it from one thread only",
    "load_in_a_hook": "a handler or hook must not start, reload or stop its server",
    "free_while_it_runs": "it was stopped first",
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(compiled, case):
    """An assertion where the library has them; else a sentence, and the server serves on."""
    program = compiled(PROGRAMS / "misuse.c")
    run = subprocess.run([program, case], capture_output=True, timeout=60, text=True, env=build.environment())
    if build.OPTIMISED:
        assert run.returncode == 0, run
        number, sentence = run.stdout.strip().split(" ", 1)
        assert int(number) < 0 and MISTAKES[case] in sentence
    else:
        assert run.returncode == -signal.SIGABRT, run
        assert "the program must not make this call now" in run.stderr


# ── the library of an interpreter ──


@pytest.mark.parametrize("path", ["absolute", "relative"])
@pytest.mark.parametrize("mode", ["local", "namespace"])
def test_hidden_symbols(prefix, tmp_path, monkeypatch, mode, path):
    """Plugins find the library that was opened with RTLD_LOCAL, and HTTP/2 works in it."""
    if mode == "namespace" and build.PRESET != "release":
        pytest.skip("NOT TESTED: sanitizers do not know other namespaces of the linker")
    program = tmp_path / "hidden"
    command = [embed.COMPILERS[".c"][0], "-Wall", "-Werror", *embed.FLAGS, PROGRAMS / "hidden.c", "-o", program]
    subprocess.run(command, check=True)
    library = next(prefix.rglob("libmonkey.so"))
    monkeypatch.chdir(library.parent)
    with Program(program, library if path == "absolute" else f"./{library.name}", mode) as running:
        assert running.ask().status == 200
        curl = ["curl", "-s", "--http2-prior-knowledge", "-o", "/dev/null", "-w", "%{http_version}"]
        url = f"http://127.0.0.1:{running.address[1]}/status"
        assert subprocess.run([*curl, url], capture_output=True, text=True).stdout == "2"


# ── the process ──


def run_process(compiled, *words):
    run = subprocess.run([compiled(PROGRAMS / "process.c"), *map(str, words)], env=build.environment(),
                         capture_output=True, text=True, timeout=240)  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_closed_descriptors(compiled):
    """No socket of the server gets a number that the program, or a library of it, writes to."""
    lines = run_process(compiled, "descriptors").splitlines()
    assert lines[:3] == [f"runs {fd} /dev/null" for fd in range(3)]
    assert lines[3:5] == [f"freed {fd} closed" for fd in range(2)]
    assert lines[5].startswith("freed 2 ") and "null" not in lines[5]  # which the program has opened meanwhile


@pytest.mark.parametrize("text", [
    "", "[HOST]|[HOST]|    ServerName a|[HOST]|    ServerName b|", "[STATUS]|    Enabled On|",
    "[HOST]|[PROXY]|    Match /|    To http://127.0.0.1:1|",
], ids=["plain", "hosts", "status", "proxy"])  # fmt: skip
def test_starts_take_no_memory(compiled, text):
    rounds = 1000 if build.PRESET == "release" else 100
    assert run_process(compiled, "growth", rounds, text) == "grown by 0\n"


WITHOUT_EFFECT = {
    "User nobody": "which user it runs as", "Group nogroup": "which group it runs as",
    "Supervisor On": "a service manager", "Supervisor Off": "a service manager", "CoreDumps On": "PR_SET_DUMPABLE",
    "PidFile /tmp/pid": "can write one", "ErrorLog /tmp/log": "mk_log_to", "LogLevel debug": "mk_log_to",
}  # fmt: skip


@pytest.mark.parametrize("row, instead", WITHOUT_EFFECT.items())
def test_keys_of_a_process(compiled, row, instead):
    """They warn, with their place and what to do: a program that has the server in it decides itself."""
    lines = run_process(compiled, "problems", f"    {row}|").splitlines()
    text = f"warning: {row.split()[0]} has no effect in a program that has the server in it: "
    (line,) = [line for line in lines if text in line]
    assert re.match(r"text 4:\d+ ", line) and instead in line


def test_other_keys_are_not_warned_of(compiled):
    assert run_process(compiled, "problems", "    Timeout 5s|    KeepAlive Off|") == ""


@pytest.mark.parametrize("folder, reason", [("/missing", "No such file"), ("/etc/passwd", "Not a directory")])
def test_a_folder_that_cannot_be_served(compiled, folder, reason):
    """The message names the call, not an option that the program has not."""
    text = run_process(compiled, "folder", folder)
    assert "mk_server_folder()" in text and folder in text and reason.lower() in text.lower()
    assert "option" not in text and "one-shot" not in text
