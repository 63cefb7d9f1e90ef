# SPDX-License-Identifier: Apache-2.0
"""Open pages follow what other requests change. `dudac test` runs this after checks.toml; DUDA_URL is the service's."""

import json
import os
import urllib.request

URL = os.environ["DUDA_URL"]
TIMEOUT_S = 30


class User:
    """A new user, with the cookie and the token of its session."""

    def __init__(self, name):
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor()
        self.opener, self.token = urllib.request.build_opener(*handlers), ""
        self.token = self.call("POST", "users", {"name": name, "password": "analytical"})["csrf_token"]

    def open(self, method, path, value=None):
        headers = {"Content-Type": "application/json", "X-CSRF-Token": self.token}
        data = json.dumps(value).encode() if value else None
        request = urllib.request.Request(f"{URL}/api/{path}", data, headers, method=method)
        return self.opener.open(request, timeout=TIMEOUT_S)

    def call(self, method, path, value=None):
        with self.open(method, path, value) as response:
            return json.load(response)


def read_event(stream):
    """Returns the data of the next event."""
    return next(json.loads(line.removeprefix(b"data: ")) for line in stream if line.startswith(b"data: "))


def test_open_pages_follow_changes():
    grace, mary = User("grace"), User("mary")
    with grace.open("GET", "events") as page, grace.open("GET", "events") as same, mary.open("GET", "events") as other:
        todo = grace.call("POST", "todos", {"text": "buy milk"})
        grace.call("DELETE", f"todos/{todo['id']}")
        last = mary.call("POST", "todos", {"text": "read"})
        for stream in (page, same):
            assert read_event(stream) == {"event": "added", "todo": todo}
            assert read_event(stream) == {"event": "removed", "todo": todo}
        assert read_event(other) == {"event": "added", "todo": last}  # nothing of others came before
