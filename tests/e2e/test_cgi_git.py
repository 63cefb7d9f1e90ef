# SPDX-License-Identifier: Apache-2.0
"""git-http-backend as a script: clones and pushes with git itself, over HTTP/1.1 and HTTP/2."""

import os
import pathlib
import shutil
import subprocess

import pytest

from harness import build
from harness.scripts import cgi_section, wait_no_scripts

BACKEND = pathlib.Path("/usr/lib/git-core/git-http-backend")
SOCKETS = 3  # as in test_cgi.py
USER = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
MEGABYTE = 1 << 20

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "cgi.so").exists(), reason="this preset has no plugins"),
    pytest.mark.skipif(not BACKEND.exists() or not shutil.which("git"), reason="git is not installed"),
    pytest.mark.single_protocol,
]


def git(*args, cwd=None):
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd or "/"), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(["git", *USER, *args], cwd=cwd, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def repositories(serve, tmp_path):
    """A server with an empty repository, to which anyone may push."""
    folder = tmp_path / "git"
    folder.mkdir()
    git("init", "--bare", folder / "project.git")
    git("-C", folder / "project.git", "config", "http.receivepack", "true")
    text = cgi_section(
        None,
        Match="/git",
        Script=BACKEND,
        Env=[f"GIT_PROJECT_ROOT {folder}", "GIT_HTTP_EXPORT_ALL 1", f"HOME {tmp_path}"],
    )
    server = serve({"Workers": 2, "MaxBodySize": "1G"}, text=text)
    server.baseline += SOCKETS
    return server


@pytest.mark.parametrize("size", [3 * MEGABYTE, pytest.param(200 * MEGABYTE, marks=pytest.mark.slow)])
@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
def test_push_and_clone(repositories, tmp_path, version, size):
    url = f"{repositories.url.rstrip('/')}/git/project.git"
    work, data = tmp_path / "work", os.urandom(size)
    with_version = ["-c", f"http.version={version}"]
    git("init", work)
    (work / "small.txt").write_bytes(b"small")
    git("add", ".", cwd=work)
    git("commit", "-qm", "one", cwd=work)
    (work / "large.bin").write_bytes(data)
    git("add", ".", cwd=work)
    git("commit", "-qm", "two", cwd=work)
    git(*with_version, "push", url, "HEAD:refs/heads/main", cwd=work)
    git(*with_version, "clone", "-q", url, tmp_path / "clone")
    assert (tmp_path / "clone" / "large.bin").read_bytes() == data
    git(*with_version, "clone", "-q", "--depth", "1", url, tmp_path / "shallow")
    assert git("rev-list", "--count", "HEAD", cwd=tmp_path / "shallow").strip() == "1"
    wait_no_scripts(repositories)
