# SPDX-License-Identifier: Apache-2.0
"""The site that most tests read: every kind of name and size, old enough for strong validators."""

import fcntl
import itertools
import os
import random
import zlib

OLD = 1_600_000_000  # 2020-09-13 12:26:40 UTC: far older than any clock's granularity
OLD_DATE = "Sun, 13 Sep 2020 12:26:40 GMT"


def pattern(size, seed=1):
    """Bytes that tell every offset apart."""
    return random.Random(seed).randbytes(size)


def cycle(size):
    """The same bytes again and again, which tell whether any was left out."""
    return bytes(itertools.islice(itertools.cycle(range(251)), size))


def checksum_of_letters(megabytes):
    """Of a megabyte of "a", one of "b" and so on, behind "z" again from "a"."""
    checksum = 0
    for n in range(megabytes):
        checksum = zlib.crc32(bytes([97 + n % 26]) * (1 << 20), checksum)
    return checksum


def receive_rest(client):
    """The length and the checksum of all that comes until the end of a connection, which is not kept."""
    length, checksum = len(client.buffer), zlib.crc32(client.buffer)
    while data := client.receive(1 << 18):
        length, checksum = length + len(data), zlib.crc32(data, checksum)
    return length, checksum


HELLO = b"Hello, world\n"
HUNDRED = bytes(range(100))
MEDIUM = pattern(20_000, 2)
LARGE = pattern(3_000_000, 3)

FILES = {
    "index.html": b"<!doctype html><title>home</title>\n",
    "hello.txt": HELLO,
    "last.txt": b"last\n",
    "hundred.bin": HUNDRED,
    "empty.txt": b"",
    "one.txt": b"1",
    "medium.bin": MEDIUM,
    "large.bin": LARGE,
    "dir/index.html": b"<!doctype html><title>dir</title>\n",
    "dir/file.txt": b"in dir\n",
    "dir/.git/config": b"secret\n",
    "dir with space/index.html": b"spaced\n",
    "noindex/file.txt": b"no index\n",
    "a..b.txt": b"dots inside\n",
    "..hidden.txt": b"hidden\n",
    "with space.txt": b"space\n",
    "gr\u00fc\u00dfe.txt": "gr\u00fc\u00dfe\n".encode(),
    "100%.txt": b"percent\n",
    "semi;colon.txt": b"semicolon\n",
    "plus+and&.txt": b"plus\n",
    "tilde~.txt": b"tilde\n",
    "quote'.txt": b"quote\n",
    "back\\slash.txt": b"backslash\n",
    ".secret": b"secret\n",
    ".well-known/acme.txt": b"challenge\n",
    ".well-known/.hidden": b"hidden\n",
    "file": b"no extension\n",
    "file.unknown": b"unknown\n",
    "UPPER.TXT": b"upper\n",
    "page.HTML": b"<p>upper\n",
}


def populate(root, files=None):
    """Writes files (name to bytes) below `root`, all of the same old time."""
    for name, data in (FILES if files is None else files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (OLD, OLD))
    return root


MANY, MOST = 20_000, 100_000


def make_many(folder, count):
    """A new folder of `count` files; links to a few, which are made in half of the time."""
    folder.mkdir()
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for n in range(count):
        name = f"file-{n}.txt"
        if n % 10_000 == 0:
            first = name
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd))
        else:
            os.link(first, name, src_dir_fd=fd, dst_dir_fd=fd)
    os.close(fd)


def make_once(path, make):
    """Makes what several processes use, by the first one that needs it."""
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            new = path.with_name(f"{path.name}.{os.getpid()}")
            make(new)
            new.rename(path)
    return path


HUGE = 5 * 2**30 + 7
MARKS = {0: b"begin", 2**31 - 2: b"2GiB", 2**32 - 3: b"across", 5 * 2**30: b"the end"}


def make_huge(path):
    """Sparse: only the places of MARKS exist."""
    with open(path, "wb") as file:
        file.truncate(HUGE)
        for offset, text in MARKS.items():
            file.seek(offset)
            file.write(text)
    os.utime(path, (OLD, OLD))
