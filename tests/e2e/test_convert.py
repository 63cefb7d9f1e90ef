# SPDX-License-Identifier: Apache-2.0
"""`monkey convert`: configurations of nginx, Caddy and Apache in data/convert become the ones next to them, which the server
accepts; what cannot be converted, or parsed, is a sentence with file and line."""

import os
import pathlib
import random
import re
import subprocess
import sys

import pytest

from harness import build
from harness.certificates import Authority
from harness.recipes import needs_plugins
from harness.server import free_port, run

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "monkey-convert").exists(), reason="this preset has no monkey-convert"),
]
DATA = build.TOP / "tests/e2e/data/convert"
RENEW = "MONKEY_RENEW_CONVERTED"
FILES = sorted(path for path in DATA.iterdir() if path.suffix in (".nginx", ".caddy", ".apache"))
FOLDERS = re.compile(r"(?<![\w/}.])/(srv|etc|var|run)(?=/)")
PLUGINS = ("alias", "auth", "cgi", "compress", "dirlisting", "fastcgi", "headers", "logger", "mandril", "proxy", "redirect",
           "respond", "status", "tls", "upstream")
sys.path.insert(0, str(build.TOP / "tools/convert"))


def convert(path, *options):
    return run("convert", path, *options)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


class Place:
    """Makes what a configuration names below a folder of the test, at free ports."""

    def __init__(self, folder, authority):
        self.folder, self.authority, self.ports = folder, authority, {}

    def port(self, found):
        return self.ports.setdefault(found, free_port())

    def translate(self, text):
        text = FOLDERS.sub(rf"{self.folder}/\1", text)
        text = re.sub(r"(Listene?r? +)(80|443|8080)\b", lambda m: f"{m[1]}127.0.0.1:{self.port(m[2])}", text)
        return re.sub(r"^    (?:User|Group) .*\n", "", text, flags=re.M)

    def make(self, text):
        """Makes the files that the keys of a translated configuration need."""
        for key, value in re.findall(r"^    (\w+) +\"?([^\"\n]+)", text, re.M):
            path = pathlib.Path(value.split()[-1])
            if key in ("Root", "DocumentRoot", "To") and path.is_absolute():
                path.mkdir(parents=True, exist_ok=True)
            elif key in ("AccessLog", "ErrorLog") and path.is_absolute():
                path.parent.mkdir(parents=True, exist_ok=True)
            elif key in ("Users", "Login"):
                path = self.folder / path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("bob:$2a$04$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n")
                path.chmod(0o600)
            elif key == "Certificate":
                made = self.authority.make("example.org", "example.org", "www.example.org")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(made.cert.read_bytes())
                key_path = pathlib.Path(re.search(r"CertificateKey +(\S+)", text)[1])
                key_path.write_bytes(made.key.read_bytes())
                key_path.chmod(0o600)
        roots = re.findall(r"^    Root +(/\S+)$", text, re.M)
        for page in re.findall(r"^    404 +(/\S+)", text, re.M):
            for root in roots:
                (pathlib.Path(root) / page[1:]).write_text("missing\n")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_is_the_configuration_next_to_it(path):
    done = convert(path)
    expected = path.with_name(path.name + ".conf")
    if os.environ.get(RENEW):
        expected.write_text(done.stdout)
    assert done.stdout == expected.read_text()
    skipped = re.search(r"^# Not converted:\n((?:# \S.*\n)+)", done.stdout, re.M)
    assert done.returncode == (1 if skipped else 0), done.stderr
    assert bool(re.fullmatch(r"monkey: \d+ of \d+ lines (?:is|are) not converted\n", done.stderr)) == bool(skipped)


@needs_plugins(*(name for name in PLUGINS if name != "alias"))
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_server_accepts_it(path, open_folder, authority):
    place = Place(open_folder, authority)
    text = place.translate(path.with_name(path.name + ".conf").read_text())
    place.make(text)
    (open_folder / "web.conf").write_text(text)
    checked = run("-t", open_folder / "web.conf")
    assert checked.returncode == 0, checked.stderr
    assert " error: " not in checked.stderr
