# SPDX-License-Identifier: Apache-2.0
"""A document root that is swapped while the server runs: noticed within a second, and never half seen."""

import collections
import os
import select
import shutil
import threading
import time

import pytest

from harness.content import populate
from harness.preload import preload
from harness.server import await_true

ENOUGH = 500  # files of each release that clients get while it is swapped
SIZES = {"small.txt": 100, "medium.bin": 20_000, "large.bin": 400_000}


def release(folder, letter):
    """A release in which each file tells which one it is of."""
    files = {name: letter.encode() * size for name, size in SIZES.items()}
    return populate(folder / "releases" / letter, {"index.html": letter.encode(), f"only-{letter}": b"", **files})


def publish(folder, target):
    """Points `current` at another release in one step."""
    new = folder / "new"
    new.symlink_to(target)
    os.rename(new, folder / "current")


@pytest.fixture
def place(tmp_path):
    release(tmp_path, "a")
    release(tmp_path, "b")
    publish(tmp_path, "releases/a")
    return tmp_path


def awaited(client, body, path="/", seconds=30):
    start = time.monotonic()
    await_true(lambda: client.ask(path).body == body, seconds, body)
    return time.monotonic() - start


def test_link_is_pointed_elsewhere(place, serve):
    server = serve(root=place / "current")
    client = server.connect()
    for letter in "baba":
        publish(place, f"releases/{letter}")
        awaited(client, letter.encode())
        assert client.ask(f"/only-{letter}").status == 200
    assert len(server.wait_log(r"\S+/current was replaced and is now the folder \S+/releases/[ab]", 4)) == 4


def test_the_first_request_after_a_pause(place, serve, clock):
    """After a time without requests, the first request gets the new release."""
    server = serve(root=place / "current")
    client = server.connect()
    assert client.ask("/").body == b"a"
    publish(place, "releases/b")
    clock.advance(1.2)
    assert client.ask("/").body == b"b"


# A disk that answers late: what opens a root waits while the file HOLD exists, and says so by HOLD.held.
LATE_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *realpath(const char *path, char *resolved)
{
    char *(*next)(const char *, char *) = (char *(*)(const char *, char *))dlsym(RTLD_NEXT, "realpath");
    const char *hold = getenv("HOLD");
    char held[4096];
    snprintf(held, sizeof(held), "%s.held", hold);
    while (access(hold, F_OK) == 0) {
        close(open(held, O_CREAT | O_WRONLY, 0600));
        usleep(1000);
    }
    return next(path, resolved);
}
"""


def test_a_disk_that_is_late(place, serve, tmp_path):
    """From the check that notices the new release on, requests wait for it: none gets the former one."""
    hold, held = tmp_path / "hold", tmp_path / "hold.held"
    env = {**preload(tmp_path, LATE_DISK), "HOLD": str(hold)}
    server = serve({"MaxKeepAliveRequest": 1_000_000}, root=place / "current", env=env)
    first, second = server.connect(), server.connect()
    assert second.ask("/small.txt").body == b"a" * SIZES["small.txt"]
    hold.touch()
    publish(place, "releases/b")
    while True:
        first.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        while not held.exists() and not select.select([first.sock], [], [], 0.005)[0]:
            pass
        if held.exists():
            break
        assert first.response().body == b"a"
        time.sleep(0.01)  # the check comes within a second
    second.send("GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n")
    second.assert_quiet()
    hold.unlink()
    assert first.response().body == b"b"
    assert second.response().body == b"b" * SIZES["small.txt"]


def test_directory_is_moved_away(place, serve, clock):
    root = place / "releases" / "a"
    client = serve(root=root).connect()
    root.rename(place / "old")
    clock.advance(1.2)
    assert client.ask("/").body == b"a", "while there is no other, the old one serves"
    (place / "releases" / "b").rename(root)
    awaited(client, b"b")
    shutil.rmtree(place / "old")
    assert client.ask("/").body == b"b"


def test_old_release_is_removed(place, serve):
    client = serve(root=place / "current").connect()
    publish(place, "releases/b")
    shutil.rmtree(place / "releases" / "a")
    awaited(client, b"b")


@pytest.mark.parametrize("link", ["absolute", "relative"])
def test_links_inside(place, serve, link):
    for letter in "ab":
        folder = place / "releases" / letter
        (folder / "link").symlink_to(folder / "index.html" if link == "absolute" else "index.html")
    client = serve({"SymLink": "Inside"}, root=place / "current").connect()
    assert client.ask("/link").body == b"a"
    publish(place, "releases/b")
    awaited(client, b"b", "/link")
    (place / "releases" / "b" / "back").symlink_to(place / "releases" / "a" / "index.html")
    assert client.ask("/back").status == 404, "the former root is outside now"


def test_download_continues(place, serve, clock):
    client = serve(root=place / "current").connect(rcvbuf=4096)
    with open(place / "releases" / "a" / "huge.bin", "wb") as file:
        file.write(b"a" * 20_000_000)
    client.send("GET /huge.bin HTTP/1.1\r\nHost: h\r\n\r\n")
    head = client.head()
    publish(place, "releases/b")
    clock.advance(1.1)
    assert client.exactly(head.length) == b"a" * 20_000_000
    assert client.ask("/").body == b"b"


@pytest.mark.parametrize("symlinks", [pytest.param("Off", marks=pytest.mark.slow), "Inside"])
def test_every_answer_is_of_one_release(place, serve, symlinks):
    server = serve(
        {"Workers": 2, "SymLink": symlinks, "Indexfile": "only-a only-b", "MaxKeepAliveRequest": 1_000_000},
        root=place / "current",
    )
    end, seen, errors = time.monotonic() + 60, collections.Counter(), []

    def is_over():
        return errors or min(seen[b"a"], seen[b"b"]) >= ENOUGH or time.monotonic() > end

    def swap():
        for turn in range(10_000):
            publish(place, f"releases/{'ba'[turn % 2]}")
            if is_over():
                return
            time.sleep(0.007)

    def ask():
        try:
            client = server.connect()
            while not is_over():
                for name, size in SIZES.items():
                    answer = client.ask(f"/{name}")
                    assert answer.status == 200 and answer.body in (b"a" * size, b"b" * size), answer
                    seen[answer.body[:1]] += 1
                assert client.ask("/").status == 200, "neither index was there: two releases in one request"
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for work in (swap, ask, ask, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert min(seen[b"a"], seen[b"b"]) >= ENOUGH, seen
    publish(place, "releases/b")
    awaited(server.connect(), b"b" * 100, "/small.txt")
