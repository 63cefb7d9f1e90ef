# SPDX-License-Identifier: Apache-2.0
"""Rules and logins for the script that is the index of a folder hold for the folder, too, and in the same way."""

import re

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.content import populate
from harness.server import section
from test_auth import ADA, FREE, basic, users  # noqa: F401

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / f"{name}.so").exists() for name in ("proxy", "auth", "mandril")),
        reason="this preset has no plugins proxy, auth and mandril",
    ),
]
INDEX = "Match =/dir/index.php\n"
BASIC = INDEX + "Realm index\nUsers {users}\n"
FORWARD = INDEX + "Type Forward\nTo {auth}\nCopyHeaders Remote-User\nUserHeader Remote-User\n"
WRONG = basic("ada", "wrong")
LOCAL, REMOTE = "Network 127.0.0.0/8\n", "Network 192.0.2.0/24\n"
LIMITS = {"plugins/auth/auth.conf": section("AUTH_LIMITS", FREE)}
# Sections, the fields of a request, and the status of both paths.
ROWS = {
    "nothing": ("", [], 200),
    "no login": (f"[AUTH]\n{BASIC}", [], 401),
    "a wrong login": (f"[AUTH]\n{BASIC}", [WRONG], 401),
    "a login": (f"[AUTH]\n{BASIC}", [ADA], 200),
    "another user": (f"[AUTH]\n{BASIC}Require user bob\n", [ADA], 403),
    "two sections": (f"[AUTH]\n{BASIC}[AUTH]\nMatch /\nRealm all\nUsers {{users}}\n", [ADA], 200),
    "the folder is open": (f"[AUTH]\n{BASIC}[AUTH]\nMatch /\nType Off\n", [], 401),
    "one section for both": ("[AUTH]\nMatch /dir\nUsers {users}\nRealm dir\n", [], 401),
    "one section, and a login": ("[AUTH]\nMatch /dir\nUsers {users}\nRealm dir\n", [ADA], 200),
    "only the folder": ("[AUTH]\nMatch =/dir/index.php\nType Off\n", [], 200),
    "forward, no session": (f"[AUTH]\n{FORWARD}", [], 302),
    "forward": (f"[AUTH]\n{FORWARD}", ["Cookie: session=ada"], 200),
    "forward, a forged user": (f"[AUTH]\n{FORWARD}", ["Cookie: session=ada", "Remote-User: root"], 200),
    "off, a forged user": (f"[AUTH]\n{INDEX}Type Off\nCopyHeaders Remote-User\n", ["Remote-User: root"], 200),
    "forward to nothing": (f"[AUTH]\n{INDEX}Type Forward\nTo http://127.0.0.1:1\n", [], 503),
    "deny": (f"[RULES]\n{INDEX}Action deny\n", [], 403),
    "deny with a status": (f"[RULES]\n{INDEX}Action deny 404\n", [], 404),
    "deny another address": (f"[RULES]\n{INDEX}{REMOTE}Action deny\n", [], 200),
    "deny a method": (f"[RULES]\n{INDEX}When method GET\nAction deny\n", [], 403),
    "any, neither": (f"[RULES]\n{INDEX}Action deny\n[AUTH]\n{BASIC}Satisfy any\n", [], 401),
    "any, a login": (f"[RULES]\n{INDEX}Action deny\n[AUTH]\n{BASIC}Satisfy any\n", [ADA], 200),
    "any, an address": (f"[RULES]\n{INDEX}{LOCAL}Action allow\n[AUTH]\n{BASIC}Satisfy any\n", [], 200),
    "all, an address": (f"[RULES]\n{INDEX}{LOCAL}Action allow\n[AUTH]\n{BASIC}", [], 401),
    "allowed for the folder alone": (
        f"[RULES]\nMatch =/dir/\nAction allow\n[RULES]\n{INDEX}Action deny\n[AUTH]\n{BASIC}Satisfy any\n", [], 401),
}  # fmt: skip


def verify(peer):
    found = re.search(r"session=(\w+)", peer.request()["Cookie"] or "")
    if found:
        peer.respond(b"", f"Remote-User: {found[1]}")
    else:
        peer.respond(b"", "Location: https://login.example/", status=302)


@pytest.fixture
def start(serve, tmp_path, users):  # noqa: F811
    made = []

    def make(text, settings=None):
        made.extend([Backend(answer(b"ran", "Content-Type: text/plain")), Backend(verify)])
        app, auth = (one.__enter__() for one in made)
        root = populate(tmp_path / "root", {"dir/index.php": b"<?php secret ?>\n"})
        text = f"[PROXY]\nMatch *.php\nTo {app.url}\n" + text.replace("{users}", str(users)).replace("{auth}", auth.url)
        text = re.sub(r"^(?=\w)", "    ", text, flags=re.M)
        server = serve(settings, root=root, host={"Indexfile": "index.php"}, text=text, config=LIMITS)
        server.app, server.auth = app, auth
        return server

    yield make
    for one in made:
        one.__exit__(None, None, None)


def describe(got, requests):
    """What a client sees, and which user the script gets."""
    fields = ("WWW-Authenticate", "Location")
    return got.status, [got[name] for name in fields], [request["Remote-User"] for request in requests]


@pytest.mark.parametrize("name", ROWS)
def test_a_folder_is_as_its_script(start, name):
    text, fields, status = ROWS[name]
    server = start(text)
    with server.connect() as client:
        seen = []
        for target in ("/dir/index.php", "/dir/"):
            before = len(server.app.requests)
            got = client.ask(target, *fields)
            assert b"secret" not in got.body
            seen.append(describe(got, server.app.requests[before:]))
    assert seen[0][0] == status
    assert seen[0] == seen[1]


def test_one_section_is_asked_once(start):
    """What has let the folder pass is not asked about its script again."""
    server = start("[AUTH]\nMatch /dir\nType Forward\nTo {auth}\n")
    with server.connect() as client:
        assert client.ask("/dir/", "Cookie: session=ada").status == 200
    assert len(server.auth.requests) == 1


def test_one_limit_counts_once(start):
    server = start("[CLIENT_LIMITS]\nMatch /dir\nRate 2/h\n")
    with server.connect() as client:
        assert [client.ask("/dir/").status for _ in range(3)] == [200, 200, 429]


def test_limit_of_a_script(start):
    server = start("[CLIENT_LIMITS]\n" + INDEX + "Rate 2/h\n")
    with server.connect() as client:
        assert [client.ask("/dir/").status for _ in range(3)] == [200, 200, 429]
