# SPDX-License-Identifier: Apache-2.0
"""git-http-backend as a script: clones and pushes with git itself, over HTTP/1.1, and over HTTP/2 with TLS."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess

import pytest

from harness import build
from harness.certificates import Authority
from harness.scripts import cgi_section, wait_no_scripts
from harness.server import section

BACKEND = pathlib.Path("/usr/lib/git-core/git-http-backend")
SOCKETS = 3  # as in test_cgi.py
USER = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
MEGABYTE = 1 << 20

needs_tls = pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} lacks tls")

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "cgi.so").exists(), reason="this preset has no plugins"),
    pytest.mark.skipif(not BACKEND.exists() or not shutil.which("git"), reason="git is not installed"),
    pytest.mark.single_protocol,
]


def git(*args, cwd=None, **more):
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd or "/"), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", *USER, *args]
    done = subprocess.run(command, cwd=cwd, env={**env, **more}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Project:
    """A repository of a server, over a version of HTTP."""

    def __init__(self, server, scheme, *settings):
        self.server, self.url = server, f"{scheme}://localhost:{server.port}/git/project.git"
        self.settings = [word for setting in settings for word in ("-c", setting)]

    def run(self, *args, cwd=None, **more):
        return git(*self.settings, *args, cwd=cwd, **more)


@pytest.fixture(params=["HTTP/1.1", pytest.param("HTTP/2", marks=needs_tls)])
def project(request, serve, tmp_path):
    """An empty repository, to which anyone may push."""
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
    settings = {"Workers": 2, "MaxBodySize": "1G"}
    if request.param == "HTTP/1.1":
        found = Project(serve(settings, text=text), "http", "http.version=HTTP/1.1")
    else:
        found = serve_over_tls(serve, settings, text, tmp_path)
    found.server.baseline += SOCKETS
    return found


def serve_over_tls(serve, settings, text, folder):
    """
    git negotiates HTTP/2 by ALPN, which takes TLS. Before 2.44 it waits for ever if curl asks it for more behind the
    end of a body that does not fit into its buffer, as curl does over HTTP/2 at times: so the buffer has room for all.
    """
    ca = Authority(folder / "authority")
    pair = ca.make("localhost", "localhost", "IP:127.0.0.1")
    text += section("TLS", pair.keys())
    server = serve({**settings, "Listen": "127.0.0.1:0 tls"}, text=text)
    settings = "http.version=HTTP/2", "http.postBuffer=256M", f"http.sslCAInfo={ca.cert}"
    return Project(server, "https", *settings)


def test_protocol(project, tmp_path):
    trace = tmp_path / "trace"
    project.run("ls-remote", project.url, GIT_TRACE_CURL=str(trace))
    wanted = "HTTP/2 200" if project.url.startswith("https") else "HTTP/1.1 200"
    assert wanted in trace.read_text()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", [3 * MEGABYTE, pytest.param(200 * MEGABYTE, marks=pytest.mark.slow)])
def test_push_and_clone(project, tmp_path, size):
    work, data = tmp_path / "work", os.urandom(size)
    git("init", work)
    (work / "small.txt").write_bytes(b"small")
    git("add", ".", cwd=work)
    git("commit", "-qm", "one", cwd=work)
    (work / "large.bin").write_bytes(data)
    git("add", ".", cwd=work)
    git("commit", "-qm", "two", cwd=work)
    project.run("push", project.url, "HEAD:refs/heads/main", cwd=work)
    project.run("clone", "-q", project.url, tmp_path / "clone")
    assert (tmp_path / "clone" / "large.bin").read_bytes() == data
    project.run("clone", "-q", "--depth", "1", project.url, tmp_path / "shallow")
    assert git("rev-list", "--count", "HEAD", cwd=tmp_path / "shallow").strip() == "1"
    wait_no_scripts(project.server)


def test_two_clients_at_once(project, tmp_path):
    """Each pushes to its own branch, in many small objects."""
    works = [tmp_path / f"work{n}" for n in range(2)]
    for work in works:
        git("init", work)
        for n in range(100):
            (work / f"{n}.txt").write_text(f"{work} {n}\n" * 50)
        git("add", ".", cwd=work)
        git("commit", "-qm", "one", cwd=work)

    def push(work):
        project.run("push", project.url, f"HEAD:refs/heads/{work.name}", cwd=work)

    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        list(executor.map(push, works))
    heads = project.run("ls-remote", "--heads", project.url)
    assert [row.split("/")[-1] for row in heads.splitlines()] == ["work0", "work1"]
    wait_no_scripts(project.server)
