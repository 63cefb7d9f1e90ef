# SPDX-License-Identifier: Apache-2.0
"""Validators and preconditions (RFC 9110 §13): the fields one by one, then their precedence."""

import os
import re
import shutil
import signal
import time

import pytest

from harness.content import HELLO, OLD, OLD_DATE
from harness.messages import LAST, request
from harness.server import await_true

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
    """No body, no representation fields besides the validators, no false length."""
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


def make_releases(folder):
    """Two folders with a file of equal size and time, as archives with reproducible times make them."""
    releases = folder / "first", folder / "second"
    for release, text in zip(releases, (b"one 1", b"two 2")):
        release.mkdir()
        (release / "a.txt").write_bytes(text)
        os.utime(release / "a.txt", ns=(OLD * 10**9, OLD * 10**9 + 123_456_789))
    return releases


def test_two_releases_have_two_tags(serve, tmp_path):
    """Else a client keeps the old file (304), or joins parts of both (If-Range)."""
    first, second = make_releases(tmp_path)
    current = tmp_path / "current"
    current.symlink_to(first.name)
    server = serve({"Workers": 2}, root=current)
    before = server.connect().ask("/a.txt")
    assert re.fullmatch('"5-[0-9a-f]{1,16}"', before["ETag"])
    (tmp_path / "new").symlink_to(second.name)
    os.rename(tmp_path / "new", current)
    client = server.connect()
    await_true(lambda: client.ask("/a.txt").body == b"two 2")
    after = client.ask("/a.txt", f"If-None-Match: {before['ETag']}", "If-Modified-Since: " + before["Last-Modified"])
    assert (after.status, after.body) == (200, b"two 2") and after["ETag"] != before["ETag"]
    part = client.ask("/a.txt", "Range: bytes=2-", f"If-Range: {before['ETag']}")
    assert (part.status, part.body) == (200, b"two 2")
    part = client.ask("/a.txt", "Range: bytes=2-", f"If-Range: {after['ETag']}")
    assert (part.status, part.body) == (206, b"o 2")
    assert {server.connect().ask("/a.txt")["ETag"] for _ in range(8)} == {after["ETag"]}  # of both workers
    server.baseline += 2  # of the thread that reloads
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    assert server.connect().ask("/a.txt")["ETag"] == after["ETag"]


@pytest.mark.parametrize("by", ["the server", "the host"])
def test_portable_tags(serve, tmp_path, by):
    """Machines behind a balancer that have copies of a file send the same tag, which is weak."""
    keys = {"settings": {"ETag": "Portable"}} if by == "the server" else {"host": {"ETag": "Portable"}}
    tags = set()
    for folder in make_releases(tmp_path):
        client = serve(root=folder, **keys).connect()
        tags.add(client.ask("/a.txt")["ETag"])
        assert client.ask("/a.txt", f"If-None-Match: {list(tags)[0]}").status == 304
        assert client.ask("/a.txt", "Range: bytes=2-", f"If-Range: {list(tags)[0]}").status == 200
        assert client.ask("/a.txt", "Range: bytes=2-").status == 206
    number = OLD * 10**9 + 123_456_789
    assert tags == {f'W/"5-{number:x}"'}


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


YEAR = 365 * 86_400


@pytest.fixture
def start_dated(serve):
    """A server with files of a time: small ones, which are kept, a variant and an index."""

    def make(seconds, host=None, **rest):
        files = {"a.txt": b"x" * 100, "b.txt": b"b", "b.txt.gz": b"gz", "sub/index.html": b"x", "other/c.txt": b"c"}
        server = serve(files=files, host={"Precompressed": "gzip", **(host or {})}, **rest)
        for name in files:
            os.utime(server.root / name, (seconds, seconds))
        return server

    return make


DATED = ("/a.txt", "/b.txt", "/sub/", "/other/c.txt")


@pytest.mark.parametrize("seconds, date", [
    (-(10**9), None), (-1, None), (0, None), (1, None), (12 * 3600, None), (YEAR - 1, None),
    (YEAR, "Fri, 01 Jan 1971 00:00:00 GMT"), (315_532_800, "Tue, 01 Jan 1980 00:00:00 GMT"),
])  # fmt: skip
def test_file_of_1970(start_dated, seconds, date):
    """In stores and images that are made reproducible all versions of a file have such a time: it is no validator."""
    client = start_dated(seconds).connect()
    for path in DATED:
        for _ in range(3):  # from the disk, and from the cache
            for fields in ((), ("Accept-Encoding: gzip",)):
                answer = client.ask(path, *fields)
                assert (answer.status, answer["Last-Modified"]) == (200, date), path
                assert client.ask(path, *fields, f"If-None-Match: {answer['ETag']}").status == 304
        said = [date or ANCIENT, "Thu, 01 Jan 1970 00:00:01 GMT", FUTURE]
        wanted = [304 if date else 200, 200, 304 if date else 200]
        assert [client.ask(path, f"If-Modified-Since: {each}").status for each in said] == wanted
        assert client.ask(path, f"If-Unmodified-Since: {ANCIENT}").status == (412 if date else 200)
    answer = client.ask("/a.txt", "Range: bytes=0-9", f"If-Range: {date or 'Thu, 01 Jan 1970 00:00:01 GMT'}")
    assert answer.status == (206 if date else 200)


def test_file_of_1970_with_portable_tags(start_dated):
    """Such a tag is the size alone: none is sent."""
    client = start_dated(1, host={"ETag": "Portable"}).connect()
    for path in DATED:
        answer = client.ask(path)
        assert (answer.status, answer["Last-Modified"], answer["ETag"]) == (200, None, None)
        assert client.ask(path, 'If-None-Match: W/"64-3b9aca00"').status == 200
        assert client.ask(path, "If-None-Match: *").status == 304


@pytest.mark.parametrize("seconds", [0, 1])
def test_replaced_file_of_1970(start_dated, seconds):
    server = start_dated(seconds)
    client = server.connect()
    tag = client.ask("/a.txt")["ETag"]
    new = server.root / "new.txt"
    new.write_bytes(b"y" * 100)
    os.utime(new, (seconds, seconds))
    os.rename(new, server.root / "a.txt")
    await_true(lambda: client.ask("/a.txt").body == b"y" * 100, 30, "the new file")
    for field in ("If-Modified-Since: Thu, 01 Jan 1970 00:00:01 GMT", f"If-None-Match: {tag}"):
        assert client.ask("/a.txt", field).body == b"y" * 100


def test_replaced_by_an_older_file(serve):
    """A backup put back: If-Modified-Since cannot see it, the tag can."""
    server = serve(files={"a.txt": b"new", "b.txt": b"old"})
    os.utime(server.root / "b.txt", (OLD - 1000, OLD - 1000))
    client = server.connect()
    tag = client.ask("/a.txt")["ETag"]
    shutil.move(server.root / "b.txt", server.root / "a.txt")
    answer = client.ask("/a.txt", f"If-None-Match: {tag}", f"If-Modified-Since: {OLD_DATE}")
    assert (answer.status, answer.body) == (200, b"old")
