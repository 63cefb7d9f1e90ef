# SPDX-License-Identifier: Apache-2.0
"""Services that are not those of these tests: the examples of the documentation, and one of the original API."""

import re
import shutil

import pytest

from harness import build
from running import EXAMPLES, ask, make_folder, run_dudac

# As those of 2012: no prototypes, a definition of the same global in two files, functions by their names.
OLD = {
    "Makefile.in": "NAME = ../chat\nCC = gcc\nCFLAGS = -g -Wall\nLDFLAGS =\nDEFS =\nINCDIR = -I./\n"
                   "OBJECTS = main.o part.o\n",
    "part.h": "int answers;\n",
    "part.c": '#include "webservice.h"\n#include "part.h"\n\nint count() { return ++answers; }\n',
    "main.c": """#include "webservice.h"
#include "part.h"

DUDA_REGISTER("Tests", "Chat");

void cb_count(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%d", count());
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/count/", "cb_count");
    return 0;
}
""",
}


# With a package of the server that dudac finds.
PACKAGE = {
    "Makefile.in": "NAME = numbers\nCC = gcc\nCFLAGS = -Wall\nLDFLAGS =\nDEFS =\nINCDIR =\nOBJECTS = main.o\n",
    "main.c": """#include "webservice.h"
#include "packages/json/json.h"

DUDA_REGISTER("Tests", "Numbers");

void cb_number(duda_request_t *dr)
{
    json_t *root = json->create_number(7);

    response->http_status(dr, 200);
    response->printf(dr, "%s", json->print_gc(dr, root));
    json->delete(root);
    response->end(dr, NULL);
}

int duda_main()
{
    duda_load_package(json, "json");
    map->static_add("/number/", "cb_number");
    return 0;
}
""",
}


@pytest.mark.parametrize("folder", [
    pytest.param(path, marks=[pytest.mark.slow] * (number % 4 > 0), id=path.name)
    for number, path in enumerate(EXAMPLES)
])
def test_an_example(tmp_path, folder, servers):
    """Each compiles without a warning, and passes its checks. It is a copy: some write into their folders."""
    folder = shutil.copytree(folder, tmp_path / "examples" / folder.name)
    done = run_dudac("test", folder, "-B", tmp_path / "build", env=servers(folder.name))
    said = [line for line in done.stderr.splitlines() if not re.match(r"\d{4}-\d\d-\d\dT\S+Z ", line)]  # but its log
    assert (done.returncode, said) == (0, []), done.stdout
    assert "checks passed" in done.stdout


@pytest.mark.skipif(not (build.TOP / "include/duda/webservice.h").exists(), reason="NOT TESTED: no webservice.h here")
def test_a_service_of_the_original(tmp_path, start):
    folder = make_folder(tmp_path, "chat/src", OLD)
    url = start("-w", folder, "-p", "0").wait_url()
    assert url.endswith("/chat/") and [ask(url, "count/") for _ in range(2)] == [(200, "1"), (200, "2")]


# As the hello world of 2012: a complete makefile, whose recipes say -I$(INCDIR), and a header by that.
COMPLETE = {
    "src/Makefile.in": "CC      = gcc -g -Wall\nINCDIR  = ../include -I../../src/include/\nSOURCES = hello.c\n"
                       "OBJECTS = hello.o\n\nall: hello.duda\n\nhello.duda: $(OBJECTS)\n"
                       "\t$(CC) $(CFLAGS) $(LDFLAGS) $(DEFS) -shared -o $@ $^ -lc\n\n.c.o: $(SOURCES)\n"
                       "\t$(CC) $(CFLAGS) $(LDFLAGS) $(DEFS) -I$(INCDIR) -fPIC -c $<\n\nclean:\n\trm -rf *.o *~\n",
    "include/text.h": '#define TEXT "hello world!"\n',
    "src/hello.c": """#include "webservice.h"
#include "text.h"

DUDA_REGISTER("Tests", "Hello");

void cb_hello(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%s", TEXT);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/", "cb_hello");
    return 0;
}
""",
}


def test_a_complete_makefile(tmp_path, start):
    make_folder(tmp_path, "service", COMPLETE)
    url = start("-w", tmp_path / "service/src", "-p", "0").wait_url()
    assert url.endswith("/hello/") and ask(url, "") == (200, "hello world!")


def test_a_service_of_the_original_with_a_package(tmp_path, start):
    url = start("-w", make_folder(tmp_path, "numbers", PACKAGE), "-p", "0").wait_url()
    assert ask(url, "number/") == (200, "7")


def test_a_missing_package(tmp_path, start):
    """The message names the file; the service's pages show it, too."""
    source = PACKAGE["main.c"].replace('"json")', '"yaml")')
    running = start("-w", make_folder(tmp_path, "numbers", {**PACKAGE, "main.c": source}), "-p", "0")
    running.wait_line(r'the package "yaml" cannot be loaded: \S+/packages/yaml.dpkg: No such file or directory')
