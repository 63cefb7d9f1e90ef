# SPDX-License-Identifier: Apache-2.0
"""Validators and preconditions (RFC 9110 §13): the fields one by one, then their precedence."""

import os
import shutil
import time

import pytest

from harness.content import HELLO, OLD, OLD_DATE
from harness.messages import LAST, request

BEFORE, AFTER = "Sun, 13 Sep 2020 12:26:39 GMT", "Sun, 13 Sep 2020 12:26:41 GMT"
ANCIENT, FUTURE = "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
RFC850, ASCTIME = "Sunday, 13-Sep-20 12:26:40 GMT", "Sun Sep 13 12:26:40 2020"

# The fields, with TAG for the current tag, and the status
CASES = [
    (["If-None-Match: TAG"], 304),
    (["If-None-Match: W/TAG"], 304),
    (["If-None-Match: *"], 304),
    (['If-None-Match: "other"'], 200),
    (['If-None-Match: "a", TAG'], 304),
    (['If-None-Match: "a",TAG , "b"'], 304),
    (['If-None-Match: "a", W/TAG'], 304),
    (['If-None-Match: "a, b", "c"'], 200),
    (["If-None-Match: nonsense"], 200),
    (["If-None-Match:"], 200),
    (['If-None-Match: "a"', "If-None-Match: TAG"], 304),
    (['If-None-Match: "TAG'], 200),
    (["If-Match: TAG"], 200),
    (["If-Match: *"], 200),
    (['If-Match: "other"'], 412),
    (['If-Match: "a", TAG'], 200),
    (["If-Match: W/TAG"], 412),
    (['If-Match: "a", "b"'], 412),
    ([f"If-Modified-Since: {OLD_DATE}"], 304),
    ([f"If-Modified-Since: {BEFORE}"], 200),
    ([f"If-Modified-Since: {AFTER}"], 304),
    ([f"If-Modified-Since: {ANCIENT}"], 200),
    ([f"If-Modified-Since: {RFC850}"], 304),
    ([f"If-Modified-Since: {ASCTIME}"], 304),
    (["If-Modified-Since: nonsense"], 200),
    (["If-Modified-Since: Sun, 32 Sep 2020 12:26:40 GMT"], 200),
    (["If-Modified-Since:"], 200),
    (["If-Modified-Since: 1600000000"], 200),
    ([f"If-Unmodified-Since: {OLD_DATE}"], 200),
    ([f"If-Unmodified-Since: {BEFORE}"], 412),
    ([f"If-Unmodified-Since: {AFTER}"], 200),
    ([f"If-Unmodified-Since: {RFC850}"], 200),
    ([f"If-Unmodified-Since: {ASCTIME}"], 200),
    (["If-Unmodified-Since: nonsense"], 200),
    # precedence, RFC 9110 §13.2.2
    (['If-None-Match: "other"', f"If-Modified-Since: {OLD_DATE}"], 200),
    (["If-None-Match: TAG", f"If-Modified-Since: {BEFORE}"], 304),
    (["If-Match: TAG", f"If-Unmodified-Since: {BEFORE}"], 200),
    (['If-Match: "other"', f"If-Unmodified-Since: {AFTER}"], 412),
    (["If-Match: TAG", "If-None-Match: TAG"], 304),
    (['If-Match: "other"', "If-None-Match: TAG"], 412),
    ([f"If-Unmodified-Since: {OLD_DATE}", f"If-Modified-Since: {OLD_DATE}"], 304),
    ([f"If-Unmodified-Since: {BEFORE}", "If-None-Match: TAG"], 412),
    # a range comes last
    (["Range: bytes=0-4", "If-None-Match: TAG"], 304),
    (["Range: bytes=0-4", "If-Match: TAG"], 206),
    (["Range: bytes=0-4", 'If-Match: "other"'], 412),
    (["Range: bytes=0-4", 'If-None-Match: "other"'], 206),
    (["Range: bytes=0-4", "If-None-Match: TAG", 'If-Range: "other"'], 304),
    (["Range: bytes=999-", "If-None-Match: TAG"], 304),
    (["Range: bytes=0-4", f"If-Modified-Since: {OLD_DATE}"], 304),
]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("fields, status", CASES, ids=lambda v: "; ".join(v) if isinstance(v, list) else str(v))
def test_precondition(connect, method, fields, status):
    client = connect()
    tag = client.ask()["ETag"]
    answer = client.ask("/hello.txt", *(field.replace("TAG", tag) for field in fields), method=method)
    assert answer.status == (200 if method == "HEAD" and status == 206 else status)
    if status == 304:
        assert answer["ETag"] == tag and answer["Content-Type"] is None
    client.assert_open()


def test_validators(connect):
    answer = connect().ask()
    assert answer["Last-Modified"] == OLD_DATE
    assert answer["ETag"].startswith('"')


def test_future_condition_date_is_ignored_or_met(connect):
    """A date later than now is invalid for If-Modified-Since (RFC 9110 §13.1.3); both answers are in use."""
    assert connect().ask("/hello.txt", f"If-Modified-Since: {FUTURE}").status in (200, 304)


def test_preconditions_only_where_there_is_something(connect):
    """RFC 9110 §13.2.1: without the preconditions the answer is not a success, so they do not count."""
    client = connect()
    assert client.ask("/nowhere", "If-Match: *").status in (404, 412)
    assert client.ask("/nowhere", "If-None-Match: *").status == 404
    assert client.ask("/dir", "If-None-Match: *").status == 301
    assert client.ask("/hello.txt", "If-None-Match: *", method="POST").status == 405


def test_304_is_small(connect):
    """No body, no representation fields beside the validators, no false length."""
    answer = connect().ask("/hello.txt", f"If-Modified-Since: {OLD_DATE}")
    assert answer.status == 304
    assert answer.length in (None, len(HELLO))
    assert not {"Content-Type", "Content-Range", "Transfer-Encoding", "Content-Encoding"} & {
        n for n, _ in answer.fields
    }


def test_304_pipelined(site):
    data = request("/hello.txt", "If-None-Match: *") * 10
    assert site.statuses(data + LAST) == [304] * 10 + [200]


# ── the tag ──


def test_same_file_same_tag(serve, tmp_path):
    """Two machines with the same files give the same tags: size and time, not the inode."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "a.txt").write_bytes(b"same")
        os.utime(folder / "a.txt", ns=(OLD * 10**9, OLD * 10**9 + 123_456_789))
    tags = [serve(root=folder).connect().ask("/a.txt")["ETag"] for folder in (first, second)]
    assert tags[0] == tags[1]


@pytest.mark.parametrize("change", ["size", "second", "nanosecond"])
def test_every_change_shows_in_the_tag(serve, change):
    server = serve(files={"a.txt": b"one"})
    path, client = server.root / "a.txt", server.connect()
    tag = client.ask("/a.txt")["ETag"]
    if change == "size":
        path.write_bytes(b"three")
    moved = {"size": 0, "second": 10**9, "nanosecond": 1}[change]
    os.utime(path, ns=(OLD * 10**9, OLD * 10**9 + moved))
    other = client.ask("/a.txt")["ETag"]
    assert other != tag and not other.startswith("W/")
    assert client.ask("/a.txt", f"If-None-Match: {tag}").status == 200


def test_young_file_has_a_weak_tag(serve):
    """While the file may still change within its own time stamp, byte equality cannot be promised."""
    server = serve(files={"a.txt": b"old"})
    path, client = server.root / "a.txt", server.connect()
    path.write_bytes(b"new")
    tag = client.ask("/a.txt")["ETag"]
    assert tag.startswith('W/"')
    assert client.ask("/a.txt", f"If-None-Match: {tag}").status == 304
    assert client.ask("/a.txt", f"If-Match: {tag}").status == 412
    os.utime(path, (time.time() - 10, time.time() - 10))
    assert client.ask("/a.txt")["ETag"].startswith('"')


def test_file_from_the_future(serve):
    """Last-Modified is never later than Date (RFC 9110 §8.8.2.1); the client checks that."""
    server = serve(files={"a.txt": b"x"})
    os.utime(server.root / "a.txt", (time.time() + 86_400, time.time() + 86_400))
    answer = server.connect().ask("/a.txt")
    assert answer.status == 200


def test_file_from_before_1970(serve):
    server = serve(files={"a.txt": b"x"})
    os.utime(server.root / "a.txt", (-(10**9), -(10**9)))
    client = server.connect()
    answer = client.ask("/a.txt")
    assert answer.status == 200
    assert client.ask("/a.txt", f"If-None-Match: {answer['ETag']}").status == 304


def test_replaced_by_an_older_file(serve):
    """A backup put back: If-Modified-Since cannot see it, the tag can."""
    server = serve(files={"a.txt": b"new", "b.txt": b"old"})
    os.utime(server.root / "b.txt", (OLD - 1000, OLD - 1000))
    client = server.connect()
    tag = client.ask("/a.txt")["ETag"]
    shutil.move(server.root / "b.txt", server.root / "a.txt")
    answer = client.ask("/a.txt", f"If-None-Match: {tag}", f"If-Modified-Since: {OLD_DATE}")
    assert (answer.status, answer.body) == (200, b"old")
