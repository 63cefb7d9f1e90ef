# SPDX-License-Identifier: Apache-2.0
"""Scripts in the folders of users (UserDir): they run where UserScripts says so, as the user of the server."""

import pytest

from harness import build
from harness.scripts import cgi_section, write_scripts
from test_sources import wrap_users
from test_userdir import needs_root

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "cgi.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
    needs_root,
]
SCRIPT = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nran as '\nid -un\n"


@pytest.mark.parametrize("scripts", [None, "Off", "On"])
def test_scripts_of_users(serve, tmp_path, scripts):
    """The source is sent in no case."""
    write_scripts(tmp_path / "home/bob/public_html", {"a.cgi": SCRIPT, "a.txt": "a\n"})
    root = write_scripts(tmp_path / "root", {"b.cgi": SCRIPT})
    keys = {"Match": "~\\.cgi$", **({"UserScripts": scripts} if scripts else {})}
    server = serve({"Workers": 1}, root=root, text=cgi_section(None, **keys), host={"UserDir": "public_html"},
                   wrapper=wrap_users(tmp_path))  # fmt: skip
    server.baseline += 2  # sockets of the starter
    with server.connect() as client:
        assert client.ask("/b.cgi").body == b"ran as root\n"
        assert client.ask("/~bob/a.txt").body == b"a\n"
        got = client.ask("/~bob/a.cgi")
        assert (got.status, got.body) == (200, b"ran as root\n") if scripts == "On" else got.status == 404
        assert b"printf" not in got.body
        assert client.ask("/~alice/a.cgi").status == 404
