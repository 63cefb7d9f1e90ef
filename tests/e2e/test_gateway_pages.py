# SPDX-License-Identifier: Apache-2.0
"""The configurations of files on the pages of the plugins that pass requests on."""

import re

import pytest

from harness import build
from harness.server import run

PLUGINS = build.TOP / "plugins"
BLOCK = re.compile(r"```conf\n# file: (\S+)\n(.*?)```", re.S)
pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "upstream.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]


def blocks(page):
    found = dict(BLOCK.findall((PLUGINS / page).read_text()))
    assert set(found) == {"monkey.conf", "sites/default"}
    return found


def check(folder, texts):
    for name, text in texts.items():
        path = folder / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("/srv/www", str(folder)))
    server = folder / "conf/monkey.conf"
    server.write_text("[SERVER]\n    Listen 127.0.0.1:0\n" + server.read_text())
    checked = run("-t", "-c", folder / "conf")
    return checked.returncode, checked.stdout + checked.stderr


@pytest.mark.parametrize("page", ["proxy/proxy.md", "fastcgi/fastcgi.md"])
def test_limit_for_a_backend(tmp_path, page):
    """The section names the group that has the limit: without the group there is nothing of the name."""
    texts = blocks(page)
    code, text = check(tmp_path / "with", texts)
    assert code == 0 and not re.search(r"sites/default:.*(warning|error)", text), text
    assert re.search(r"^    MaxConnections +\d+ ", texts["monkey.conf"], re.M)
    code, text = check(tmp_path / "without", {**texts, "monkey.conf": ""})
    assert re.search(r"sites/default:\d+:\d+: (warning|error)", text), text
