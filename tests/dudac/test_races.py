# SPDX-License-Identifier: Apache-2.0
"""ThreadSanitizer: a race, and the checks of the examples and templates, which have none. Other tests run them with the
default sanitizers. `./dev test slow` builds the server first; dudac does so otherwise."""

import re
import shutil

import pytest
from dudac.new import list_templates

from running import EXAMPLES, make_folder, run_dudac

pytestmark = pytest.mark.slow

RACE = """#include <duda/duda.h>
#include <pthread.h>

DUDA_REGISTER("test", "test");

static volatile int calls;

static void *add(void *data)
{
    calls++;
    return data;
}

static void say(duda_request_t *dr)
{
    pthread_t thread;
    pthread_create(&thread, NULL, add, NULL);
    calls++;
    pthread_join(thread, NULL);
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/", say) ? 0 : -1;
}
"""


def test_a_race(tmp_path):
    """Of a thread that the handler makes: requests at once may all be served by one worker."""
    folder = make_folder(tmp_path, files={"apple.c": RACE, "checks.toml": '[[check]]\nget = "/"\n'})
    done = run_dudac("test", folder, "--sanitize", "thread")
    assert done.returncode == 1 and "ThreadSanitizer: data race" in done.stderr
    assert re.search(r"^ +(say apple.c:18|add apple.c:10)$", done.stderr, re.M), done.stderr


def run_test(folder, env=None):
    done = run_dudac("test", folder, "--sanitize", "thread", env=env)
    assert done.returncode == 0 and "checks passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_an_example(tmp_path, folder, servers):
    run_test(shutil.copytree(folder, tmp_path / folder.name), servers(folder.name))


@pytest.mark.parametrize("template", list_templates())
def test_a_template(tmp_path, template):
    assert run_dudac("new", tmp_path / "apple", "-t", template).returncode == 0
    run_test(tmp_path / "apple")
