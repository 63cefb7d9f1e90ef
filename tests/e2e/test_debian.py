# SPDX-License-Identifier: Apache-2.0
"""The Debian packages of debian/: they are built from the files of the checkout, and what they contain serves."""

import os
import shutil
import subprocess

import pytest

from harness import build
from harness.content import make_once
from harness.server import Server, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2400),  # a whole build, while other tests run
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET != "asan", reason="one run is enough: the packages have their own build"),
    pytest.mark.skipif(not shutil.which("dh") or not shutil.which("git"), reason="NOT TESTED: no debhelper here"),
]

NAMES = ["libmonkey2", "monkey", "monkey-dev", "monkey-tools"]


def execute(*command, cwd=None, env=None):
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=2000)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def folder(run_folder):
    """The packages, and below `root` what they install."""
    return make_once(run_folder / "debian", make_packages)


def make_packages(made):
    source = made / "monkey"
    for name in execute("git", "ls-files", "-z", cwd=build.TOP).rstrip("\0").split("\0"):
        if (build.TOP / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(build.TOP / name, source / name)
    options = f"{os.environ.get('DEB_BUILD_OPTIONS', '')} parallel=2 noautodbgsym".strip()
    execute("dpkg-buildpackage", "-b", "-us", "-uc", cwd=source, env={**os.environ, "DEB_BUILD_OPTIONS": options})
    for package in made.glob("*.deb"):
        execute("dpkg-deb", "-x", package, made / "root")


def read_field(folder, name, field):
    return execute("dpkg-deb", "-f", next(folder.glob(f"{name}_*.deb")), field)


def test_each_package_is_made(folder):
    assert sorted(path.name.split("_")[0] for path in folder.glob("*.deb")) == NAMES
    needed = read_field(folder, "monkey", "Depends")
    for library in ("libc6", "libssl3", "zlib1g", "libpcre2-8-0"):  # the last is opened when it is needed
        assert library in needed
    assert "libmonkey2 (= " in read_field(folder, "monkey-dev", "Depends")


def test_the_server_serves_the_example_site(folder, tmp_path):
    program = folder / "root/usr/bin/monkey"
    assert run("-t", "-p", "0", program=program, cwd=tmp_path).returncode == 0
    server = Server("-l", "127.0.0.1:0", program=program, cwd=tmp_path)
    try:
        with server.connect() as client:
            assert client.ask("/").body == (folder / "root/usr/share/monkey/htdocs/index.html").read_bytes()
    finally:
        server.stop()


def test_the_configuration_belongs_to_the_administrator(folder, tmp_path):
    package = next(folder.glob("monkey_*.deb"))
    execute("dpkg-deb", "-e", package, tmp_path / "control")
    files = (tmp_path / "control/conffiles").read_text().split()
    for name in ("monkey/monkey.conf", "monkey/sites/default", "logrotate.d/monkey"):
        assert f"/etc/{name}" in files
    assert "/etc/monkey/plugins.load" not in files  # a section loads its plugin
    scripts = [path.read_text() for path in (tmp_path / "control").iterdir() if path.name != "md5sums"]
    assert not any("plugins.load" in text for text in scripts)  # an upgrade leaves one that is there
    assert "deb-systemd-invoke" in (tmp_path / "control/postinst").read_text()
    assert (folder / "root/lib/systemd/system/monkey.service").exists()


@pytest.mark.skipif(not shutil.which("logrotate"), reason="NOT TESTED: no logrotate here")
def test_logs_are_rotated(folder, tmp_path):
    """The rules as they are, for logs that lie elsewhere and without the signal."""
    rules = (folder / "root/etc/logrotate.d/monkey").read_text()
    assert "/var/log/monkey/*.log {" in rules and "--signal=USR1" in rules
    (tmp_path / "a.log").write_text("line\n")
    before, _, rest = rules.partition("postrotate")
    after = rest.partition("endscript")[2]
    (tmp_path / "rules").write_text((before + after).replace("/var/log/monkey", str(tmp_path)))
    tmp_path.chmod(0o755)
    execute("logrotate", "-f", "-s", tmp_path / "state", tmp_path / "rules")
    assert (tmp_path / "a.log.1").read_text() == "line\n"


@pytest.mark.skipif(not shutil.which("lintian"), reason="NOT TESTED: no lintian here")
def test_the_rules_of_debian(folder):
    """Neither an error nor a warning, but for those that the files of overrides explain."""
    elsewhere = "initial-upload-closes-no-bugs"  # that is for the archive of Debian
    found = execute("lintian", "--fail-on", "error", "--suppress-tags", elsewhere, next(folder.glob("*.changes")))
    assert [line for line in found.splitlines() if line.startswith("W:")] == []
