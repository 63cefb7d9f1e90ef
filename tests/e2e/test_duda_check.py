# SPDX-License-Identifier: Apache-2.0
"""A service under `monkey --test`: its file is loaded, so that errors are found, but duda_main() does not run."""

import subprocess

import pytest

from harness import build
from harness.server import Server, run, section, write_config

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "duda.so").exists(), reason=f"the preset {build.PRESET} has no duda"),
]

SERVICE = """
#include <duda/duda.h>
#include <fcntl.h>
#include <unistd.h>

DUDA_REGISTER("tests", "mark");

static unsigned counted;

static void count(duda_request_t *dr)
{
    response->http_status(dr, (int)(201 + counted++));
    response->end(dr, NULL);
}

int duda_main(void)
{
    close(creat("MARK", 0600));
    return router->get("/", count) ? 0 : -1;
}
"""


@pytest.fixture
def conf(tmp_path, site_root):
    """One service that two hosts run, and leaves a file when its duda_main() has run."""
    source = tmp_path / "mark.c"
    source.write_text(SERVICE.replace("MARK", str(tmp_path / "mark")))
    command = ["cc", "-shared", "-fPIC", f"-I{build.TOP / 'include'}", source, "-o", tmp_path / "mark.duda"]
    subprocess.run(list(map(str, command)), check=True)
    service = section("WEB_SERVICE", {"Name": "mark", "File": tmp_path / "mark.duda"})
    hosts = {
        f"sites/{file}": section("HOST", {"ServerName": name, "DocumentRoot": site_root}) + service
        for file, name in (("default", "localhost"), ("other", "other"))
    }
    load = {"plugins.load": section("PLUGINS", {"Load": ["liana", "duda", "static"]})}
    return write_config(tmp_path / "conf", site_root, files={**hosts, **load})


def test_a_check_runs_no_service(conf, tmp_path):
    for option in ("-t", "--show-config"):
        result = run("-c", conf, option)
        assert result.returncode == 0, result.stderr
        assert not (tmp_path / "mark").exists()
    server = Server("-c", conf)
    assert (tmp_path / "mark").exists()
    server.stop()


def test_a_check_loads_the_service(conf, tmp_path):
    (tmp_path / "mark.duda").write_text("no shared object" * 100)
    result = run("-c", conf, "-t")
    assert "invalid ELF header" in result.stderr


def test_services_of_one_file_have_their_own_variables(conf, tmp_path):
    server = Server("-c", conf)
    with server.connect() as client:
        assert client.ask("/mark/").status == 201
        assert client.ask("/mark/", host="other").status == 201
        (tmp_path / "mark.duda").write_bytes(b"overwritten" * 100)  # what runs does not change
        assert client.ask("/mark/").status == 202
    server.stop()
