# SPDX-License-Identifier: Apache-2.0
"""`dudac routes`."""

import re
import shutil

import pytest
from dudac.folder import read_folder
from dudac.routes import Route, list_rows, read_outermost

from running import make_folder, make_source, run_dudac

ROUTES = """#include <duda/duda.h>

static void show(duda_request_t *dr)
{
    response->end(dr, NULL);
}

void store(duda_request_t *dr);
void store(duda_request_t *dr)
{
    response->printf(dr, "stored");
    response->end(dr, NULL);
}

int duda_main(void)
{
    router->get("/", show);
    router->get("/a b/é/:id", show);
    router->add("POST, PUT", "/files/" "*path", store);
    router->any("/any", store);
    return 0;
}
"""


@pytest.mark.skipif(not shutil.which("addr2line"), reason="NOT TESTED: no addr2line here")
def test_methods_patterns_and_functions(tmp_path):
    """Of static functions, too."""
    done = run_dudac("routes", make_folder(tmp_path, files={"apple.c": ROUTES}))
    assert (done.returncode, done.stderr) == (0, "")
    assert [re.sub(r":\d+$", "", line) for line in done.stdout.splitlines()] == [
        "GET        /apple/             show   apple.c",
        "GET        /apple/a b/é/:id    show   apple.c",
        "POST, PUT  /apple/files/*path  store  apple.c",
        "ANY        /apple/any          store  apple.c",
    ]


INLINED = """#include <duda/duda.h>

static inline __attribute__((always_inline)) void check(duda_request_t *dr)
{
    if (!dr)
        __builtin_trap();
}

static void show(duda_request_t *dr)
{
    check(dr);
    response->end(dr, NULL);
}

int duda_main(void)
{
    router->get("/", show);
    return 0;
}
"""


@pytest.mark.skipif(not shutil.which("addr2line"), reason="NOT TESTED: no addr2line here")
def test_a_handler_that_begins_with_an_inlined_call(tmp_path):
    done = run_dudac("routes", make_folder(tmp_path, files={"apple.c": INLINED}))
    assert done.stdout.split() == ["GET", "/apple/", "show", done.stdout.split()[3]]
    assert re.fullmatch(r"apple\.c:\d+", done.stdout.split()[3])


def test_the_outermost_function():
    text = "0x01\ncheck\n/a/apple.c:5\nshow\n/a/apple.c:11\n0x02\nstore\n??:?\n"
    assert read_outermost(text) == [("show", "/a/apple.c:11"), ("store", "??:?")]


def test_a_root_service(tmp_path):
    files = {"apple.c": ROUTES, "service.toml": "root = true\n"}
    done = run_dudac("routes", make_folder(tmp_path, files=files))
    assert [line.split()[1] for line in done.stdout.splitlines() if "any" in line] == ["/any"]


def test_no_routes(tmp_path):
    source = "#include <duda/duda.h>\n\nint duda_main(void)\n{\n    return 0;\n}\n"
    done = run_dudac("routes", make_folder(tmp_path, files={"apple.c": source}))
    assert (done.returncode, done.stdout) == (0, "no routes\n"), done.stderr


def test_what_does_not_compile(tmp_path):
    done = run_dudac("routes", make_folder(tmp_path, files={"apple.c": "int x = y;\n"}))
    assert done.returncode == 1 and done.stderr.endswith("dudac: apple.c does not compile\n") and not done.stdout


def test_without_addr2line_addresses_are_shown(tmp_path, monkeypatch):
    services = read_folder(make_folder(tmp_path, files={"apple.c": make_source()}))
    monkeypatch.setenv("PATH", str(tmp_path))
    rows = list_rows(services, [Route("apple", "GET", "/x", "1149"), Route("pear", "GET", "/y", "1")])
    assert rows == [("GET", "/apple/x", "0x1149", "")]
