# SPDX-License-Identifier: Apache-2.0
"""What the log says of a crash in a web service: where it was, for which request, and why, where that is known."""

import re
import signal
import subprocess

import pytest

from harness import build
from harness.handler_service import ask, handler, service
from harness.messages import request
from harness.services import build_service, function_of, needs_duda, reload

pytestmark = [needs_duda, pytest.mark.skipif(build.PRESET == "tsan", reason="ThreadSanitizer has handlers of its own")]
glibc_only = pytest.mark.skipif(build.SANITIZED, reason="AddressSanitizer reports it itself")

# AddressSanitizer would report first.
NO_HANDLERS = {"ASAN_OPTIONS": "handle_abort=0:handle_segv=0:handle_sigbus=0:detect_leaks=0"}
UNCHECKED = '__attribute__((no_sanitize("undefined", "address"))) '

# Functions that a trace names: static ones, of which gcc inlines the second one.
READ = f"""
static {UNCHECKED}__attribute__((noinline)) int read_it(const int *p)
{{
    return *(const volatile int *)p;
}}
"""
WORD = f"""
static {UNCHECKED}inline __attribute__((always_inline)) int read_word(const int *p)
{{
    return *(const volatile int *)p;
}}
"""


def crash(serve_services, code, number=signal.SIGSEGV, main="", path="/x/handle", fields=(), prepare=None, keys=None):
    """Returns the log of a server whose service x has crashed."""
    server = serve_services({"x": service(code, main)}, {"Workers": 1}, env=NO_HANDLERS, keys={"x": keys or {}})
    server.stopping = True
    assert ask(server, "/x/") == (200, "fine")
    if prepare:
        prepare(server)
    with server.connect() as client:
        client.send(request(path, *fields))
        assert server.wait() == -number, server.log
    return server.log


def frames(log):
    return re.findall(r"error     #\d+ x\.duda\+0x[0-9a-f]+ \((.*)\)$", log, re.M)


def test_static_functions_have_names_and_lines(serve_services):
    code = READ + UNCHECKED + handler("response->http_status(dr, 200 + read_it((int *)16));").lstrip()
    log = crash(serve_services, code)
    names = frames(log)
    text = service(code).split("\n")
    for name, (function, line) in zip(names, [("read_it", "*(const volatile"), ("handle", "read_it((int *)16)")]):
        number = 1 + next(i for i, row in enumerate(text) if line in row)
        assert re.fullmatch(rf"{function}, \S*x\.c:{number}", name), names
    assert re.search(r"error     request: GET /x/handle$", log, re.M), log


def test_a_function_that_was_inlined_has_a_frame(serve_services):
    log = crash(serve_services, WORD + UNCHECKED + handler("response->http_status(dr, read_word((int *)16));").lstrip())
    assert [name.split(",")[0] for name in frames(log)][:2] == ["read_word", "handle"], log
    assert re.search(r"#0 x.*\n.*#1 x.*\n.*#2 duda\.so", log), log


def test_the_request_is_named(serve_services):
    """Its path without control characters, and the identifier that other logs have."""
    main = 'router->get("/sub/:name", handle);'
    log = crash(serve_services, handler("(void)dr; abort();"), signal.SIGABRT, main, "/x/sub/a%09b?secret=1",
                ["X-Request-Id: id-7"])
    assert re.search(r"error     request: GET /x/sub/a\?b, X-Request-Id id-7$", log, re.M), log
    assert "secret" not in log


def test_the_request_of_a_dthread_is_named(serve_services):
    code = "static void run(duda_request_t *dr, void *data)\n{\n    (void)dr;\n    (void)data;\n    abort();\n}\n"
    log = crash(serve_services, code + handler("dthread->handle(dr, run, NULL);"), signal.SIGABRT)
    assert re.search("in worker 0, in the dthread " + function_of("x", "run"), log), log
    assert re.search(r"error     request: GET /x/handle$", log, re.M), log


def test_a_crash_without_a_request(serve_services):
    code = "static void tick(void *data)\n{\n    (void)data;\n    abort();\n}\n"
    log = crash(serve_services, code + handler("event->timer(1, tick, NULL); answer(dr);"), signal.SIGABRT)
    assert frames(log)[0].startswith("tick, ") and "error     request:" not in log


PACKAGES = "#include <duda/packages/json/json.h>\n#include <duda/packages/sha1/sha1.h>\n"
LOADED = 'duda_load_package(sha1, "sha1");'


def test_a_package_that_was_not_loaded(serve_services):
    code = PACKAGES + UNCHECKED + handler("answer(json->create_object() ? dr : NULL);").lstrip()
    log = crash(serve_services, code, main=LOADED)
    assert 'error     the package "json" was not loaded: duda_main() must call duda_load_package()' in log, log
    assert '"sha1"' not in log


def test_packages_have_no_part_in_other_crashes(serve_services):
    log = crash(serve_services, PACKAGES + handler("answer(json ? dr : NULL); abort();"), signal.SIGABRT, LOADED)
    assert "was not loaded" not in log


def test_an_assertion(serve_services):
    code = "#undef NDEBUG\n#include <assert.h>\n" + handler("assert(!dr);")
    log = crash(serve_services, code, signal.SIGABRT)
    assert re.search(r"has crashed: SIGABRT in worker 0: .*x\.c:\d+: handle: Assertion `!dr' failed\.$", log, re.M), log


def test_a_pointer_that_printf_cannot_read(serve_services):
    """The crash is in the C library; the service's function is on the stack."""
    log = crash(serve_services, handler('response->printf(dr, "%s", (char *)16); response->end(dr, NULL);'))
    assert re.search(r"error     #\d+ duda\.so\+", log) and frames(log)[0].startswith("handle, "), log


LATER = {  # how a function is called for a request, later than its handler
    "task": "static void work(void *p) { (void)p; }\n"
    "static const struct duda_task_kind kind = {.fn = work, .done = read_later};\n"
    + handler("if (!task->start(dr, &kind, NULL))\nresponse->error(dr, 500);"),
    "ticket": "static void pass(duda_request_t *dr, void *p) { read_later(dr, 0, p); }\n"
    + handler("struct duda_ticket t; response->ticket(dr, &t); response->deliver(&t, pass, NULL);"),
}


@pytest.mark.parametrize("way", LATER)
def test_the_request_of_a_later_call_is_named(serve_services, way):
    function = f"{UNCHECKED}static void read_later(duda_request_t *dr, int result, void *p)\n"
    body = "{\n(void)p;\nresponse->http_status(dr, result + 200 + read_it((int *)16));\n}\n"
    log = crash(serve_services, READ + function + body + LATER[way])
    assert re.search(r"error     request: GET /x/handle$", log, re.M), log


@glibc_only
def test_rows_that_a_callback_frees(serve_services, tmp_path):
    """They are the package's, which frees them behind the callback."""
    code = "#include <duda/packages/sqlite/sqlite.h>\nstatic duda_sqlite_t *db;\n"
    code += "static void show(duda_request_t *dr, struct duda_sqlite_result *result, void *p)\n"
    code += "{\n(void)p;\nvoid (*volatile drop)(void *) = free;\ndrop(result->rows);\nanswer(dr);\n}\n"
    code += handler('if (sqlite->query_then(dr, db, "SELECT 1", NULL, 0, show, NULL)) answer(dr);')
    main = 'duda_load_package(sqlite, "sqlite");'
    main += 'db = sqlite->open(&(struct duda_sqlite_conf){.path = "a.db"});'
    log = crash(serve_services, code, signal.SIGABRT, main, keys={"DataDir": tmp_path})
    assert "error     the rows of a callback are freed behind it: it must not free them, unless it sets" in log, log
    assert re.search(r"error     request: GET /x/handle$", log, re.M), log


@glibc_only
def test_memory_that_is_freed_twice(serve_services):
    code = handler("void (*volatile drop)(void *) = free; void *p = malloc(99); drop(p); drop(p); answer(dr);")
    log = crash(serve_services, code, signal.SIGABRT)
    assert re.search(r"SIGABRT in worker 0: free\(\): double free detected", log), log
    assert frames(log)[0].startswith("handle, ") and "gc->add()" not in log, log


@glibc_only
def test_memory_that_gc_frees_again(serve_services):
    code = handler("char *volatile p = malloc(99); gc->add(dr, p); free(p); answer(dr);")
    log = crash(serve_services, code, signal.SIGABRT)
    assert "error     it was freed at the end of a request, because of gc->add() or gc->add_destroy()" in log, log
    assert re.search(r"error     request: GET /x/handle$", log, re.M), log


def test_files_in_the_place_of_objects(serve_services, tmp_path):
    """Objects were opened by descriptors, whose paths lead to what has their numbers now: files without bytes."""
    (tmp_path / "empty").touch()
    main = f'for (int i = 0; i < 64; i++) open("{tmp_path}/empty", O_RDONLY | O_CLOEXEC);'
    log = crash(serve_services, "#include <fcntl.h>\n" + handler("(void)dr; abort();"), signal.SIGABRT, main)
    assert frames(log)[0].startswith("handle, "), log


STRIP = {"without lines": ["-g"], "without symbols": ["-s"]}


@pytest.mark.parametrize("how", STRIP)
def test_a_file_without_names(serve_services, how, tmp_path):
    code = READ + UNCHECKED + handler("response->http_status(dr, 200 + read_it((int *)16));").lstrip()

    def change(server):
        file = next(tmp_path.rglob("x.duda"))
        copy = file.with_name("copy")
        subprocess.run(["strip", *STRIP[how], "-o", copy, file], check=True)
        copy.rename(file)
        reload(server)

    log = crash(serve_services, code, prepare=change)
    names = frames(log)
    assert names[:2] == ["read_it", "handle"] if how == "without lines" else not names, log
    assert re.search(r"error     #0 x\.duda\+0x[0-9a-f]+", log), log
    assert ("its functions have no names: compile it with -g" in log) == (not names), log


@pytest.mark.parametrize("how", ["replaced", "overwritten", "touched", "removed"])
def test_a_file_that_has_changed(serve_services, how, tmp_path):
    """An edit between the start of a service and its crash: the names are those of what runs."""
    code = READ + UNCHECKED + handler("response->http_status(dr, 200 + read_it((int *)16));").lstrip()

    def change(server):
        file = next(tmp_path.rglob("x.duda"))
        if how == "replaced":
            build_service(file.parent, "x", service("int other;\n" + code))
        elif how == "overwritten":
            file.write_bytes(b"no service" * 1000)
        elif how == "touched":
            file.touch()
            reload(server)
        else:
            file.unlink()

    log = crash(serve_services, code, prepare=change)
    assert [name.split(",")[0] for name in frames(log)[:2]] == ["read_it", "handle"], log
