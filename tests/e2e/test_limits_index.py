# SPDX-License-Identifier: Apache-2.0
"""[LIMITS] for the path of an index, or of what TryFiles leads to, hold for the path that has led there."""

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.fastcgi import Application
from harness.fastcgi import answer as answer_fastcgi
from harness.messages import chunked, lines
from harness.server import section

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / f"{name}.so").exists() for name in ("proxy", "fastcgi")),
        reason="this preset has no plugins proxy and fastcgi",
    ),
]
FILES = {"dir/index.php": b"<?php\n", "dir/index.html": b"dir\n"}


def limits(match, **keys):
    return section("LIMITS", {"Match": match, **keys})


SECTIONS = {
    "proxy": ("PROXY", {"Match": "*.php"}, {"Indexfile": "index.php"}, "/dir/"),
    "fastcgi": ("FASTCGI", {"Match": "/dir"}, {}, "/dir/"),
    "fastcgi tries": ("FASTCGI", {"Match": "/", "TryFiles": "$path /dir/index.php"}, {}, "/none"),
    "fastcgi and PATH_INFO": ("FASTCGI", {"Match": "/dir"}, {}, "/dir/index.php/info"),
}
PATHS = dict.fromkeys(path for *_, path in SECTIONS.values())
ROWS = {  # sections, and the status of POST with a body of 100 bytes
    "nothing": ("", 200),
    "the index": (limits("=/dir/index.php", MaxBodySize="10B"), 413),
    "the path": ("".join(limits(f"={path}", MaxBodySize="10B") for path in PATHS), 413),
    "of a pattern": (limits("*.php", MaxBodySize="10B"), 413),
    "another": (limits("=/dir/x.php", MaxBodySize="10B"), 200),
    "more for the index": (limits("=/dir/index.php", MaxBodySize="1K") + limits("/", MaxBodySize="10B"), 413),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("how", SECTIONS)
def test_bodies(serve, how, name):
    kind, keys, host, target = SECTIONS[how]
    text, status = ROWS[name]
    with Backend(answer(b"ran", "Content-Type: text/plain")) as app, Application(answer_fastcgi(b"ran")) as php:
        to = app.url if kind == "PROXY" else php.to
        server = serve(files=FILES, host=host, text=section(kind, {**keys, "To": to}) + text)
        with server.connect() as client:
            assert client.ask(target, method="POST", body=b"b" * 100).status == status
        with server.connect() as client:  # without a length that is known before
            client.send_all_you_can(
                lines(f"POST {target} HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked") + chunked(b"b" * 100)
            )
            assert client.response("POST").status == status


@build.needs_probe
def test_the_log_has_the_path_of_the_client(probe):
    text = section("REWRITE", {"Match": "=/old", "To": "/probe/never"}) + limits("/probe", HandlerTimeout="100ms")
    server = probe(text=text)
    for path, shown in (("/old", "/old, by /probe/never"), ("/probe/never", "/probe/never")):
        with server.connect() as client:
            assert client.ask(path).status == 503
        server.wait_log(rf"no answer within HandlerTimeout \(localhost{shown}\)")
