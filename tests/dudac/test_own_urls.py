# SPDX-License-Identifier: Apache-2.0
"""Services that choose their URL, by conf->service_name() and conf->service_root()."""

import shutil

import pytest

from running import ask, make_folder, make_source, run_dudac

CHOICES = {
    "name": ('conf->service_name("shop")', "/shop/"),
    "root": ("conf->service_root()", "/"),
    "both": ('conf->service_name("shop") + conf->service_root()', "/"),
}


def make_choice(call):
    return make_source().replace("    return router", f"    if ({call} < 0)\n        return -1;\n    return router")


@pytest.mark.parametrize("choice", CHOICES)
def test_run_prints_the_url(tmp_path, start, choice):
    call, path = CHOICES[choice]
    program = start("run", make_folder(tmp_path, files={"apple.c": make_choice(call)}), "-p", 0)
    url = program.wait_url()
    assert url.endswith(path) and url.count("/") == path.count("/") + 2
    assert ask(url) == (200, "one\n")
    assert program.wait_line(r"^console  (\S+)")[1] == f"{url}console/"


@pytest.mark.skipif(not shutil.which("addr2line"), reason="NOT TESTED: no addr2line here")
@pytest.mark.parametrize("choice", CHOICES)
def test_routes(tmp_path, choice):
    call, path = CHOICES[choice]
    done = run_dudac("routes", make_folder(tmp_path, files={"apple.c": make_choice(call)}))
    assert (done.returncode, done.stderr, done.stdout.split()[:2]) == (0, "", ["GET", path])


def test_checks_ask_there(tmp_path):
    checks = '[[check]]\nget = "/"\nbody = "one\\n"\n'
    folder = make_folder(tmp_path, files={"apple.c": make_choice(CHOICES["name"][0]), "checks.toml": checks})
    done = run_dudac("test", folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_url_lasts_over_reloads_and_goes_with_its_line(tmp_path, start):
    folder = make_folder(tmp_path, files={"apple.c": make_choice(CHOICES["name"][0])})
    program = start("run", folder, "-p", 0, "--watch")
    url = program.wait_url()
    assert url.endswith("/shop/")
    (folder / "apple.c").write_text(make_choice(CHOICES["name"][0]).replace("one", "two"))
    assert program.wait_url(2) == url and ask(url) == (200, "two\n")
    (folder / "apple.c").write_text(make_source().replace("one", "three"))
    assert program.wait_url(3) == url.replace("/shop/", "/apple/")
