# SPDX-License-Identifier: Apache-2.0
"""Expressions that cost too much on a path that a client has chosen: what protects refuses, what adorns is left out."""

import pytest

from harness import build
from harness.content import populate
from harness.server import Server, write_config

pytestmark = pytest.mark.skipif(not (build.PLUGINS / "maintenance.so").exists(), reason="this preset has no plugins")

COSTLY = "~^/(a+)+$"
LONG = "/" + 3000 * "a" + "!"
CASES = {
    # sections of the host, status of a path that costs too much, of one that matches, of one that does not
    "handlers": (f"[HANDLERS]\n    Match {COSTLY} static\n", 500, 404, 200),
    "redirect": (f"[REDIRECT]\n    Match {COSTLY}\n    To /elsewhere\n", 500, 301, 200),
    "a later redirect": (
        f"[REDIRECT]\n    Match {COSTLY}\n    To /elsewhere\n[REDIRECT]\n    Match /\n    To //x/\n", 500, 301, 301,
    ),
    "fixed answer": (f"[RESPOND]\n    Match {COSTLY}\n    Status 410\n", 500, 410, 200),
    "exception": (f"[MAINTENANCE]\n    FlagFile {{folder}}/flag\n    Except {COSTLY}\n", 503, 404, 503),
    "maintenance": (f"[MAINTENANCE]\n    Match {COSTLY}\n    FlagFile {{folder}}/flag\n", 500, 503, 200),
    "limits": (f"[LIMITS]\n    Match {COSTLY}\n    MaxBodySize 1\n", 500, 404, 200),
    "error pages": (f"[ERROR_PAGES]\n    Match {COSTLY}\n    404 x\n", 404, 404, 200),
    "headers": (f"[HEADERS]\n    Match {COSTLY}\n    Set X-Seen yes\n    OnErrors On\n", 500, 404, 200),
    "cors": (f"[CORS]\n    Match {COSTLY}\n    Origins *\n[CORS]\n    Match /\n    Origins *\n", 404, 404, 200),
    "compress": (f"[COMPRESS]\n    Match {COSTLY}\n", 404, 404, 200),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_costly(tmp_path, case):
    text, costly, matching, other = CASES[case]
    root = populate(tmp_path / "root", {"b.txt": b"b\n"})
    (tmp_path / "flag").write_text("")
    text = text.replace("{folder}", str(tmp_path))
    host = f"[HOST]\n    DocumentRoot {root}\n{text}"
    write_config(tmp_path / "conf", root, files={"sites/default": host})
    server = Server("-c", tmp_path / "conf")
    origin = "Origin: https://example.org"
    with server.connect() as client:
        answers = [client.ask(path, origin) for path in (LONG, "/aaa", "/b.txt")]
    assert [answer.status for answer in answers] == [costly, matching, other]
    assert answers[0]["X-Seen"] is None and answers[0]["Access-Control-Allow-Origin"] is None
    line = 1 + host[: host.index(COSTLY)].count("\n")
    server.wait_log(rf"sites/default:{line}: the pattern .* took too much time on a path of 3002 bytes")
    server.stop()
