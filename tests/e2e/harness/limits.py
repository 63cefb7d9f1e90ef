# SPDX-License-Identifier: Apache-2.0
"""The limits of the release: the first table of the README has them."""

from . import build


def read_limits():
    """The numbers of each row, by what stands before its first colon."""
    lines = (build.TOP / "README.md").read_text(encoding="utf-8").partition("| | limit |")[2].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2 : lines.index("", 1)]]
    return {text.partition(":")[0]: [int(number) for number in numbers.split(" / ")] for text, numbers in rows}


LIMITS = read_limits()
BINARY_KB = dict(zip(("release", "small"), LIMITS["binary, stripped"], strict=True))
(IDLE_KB,) = LIMITS["private dirty memory, idle, without the file cache, KB"]
CACHE_KB = LIMITS["the same, more with the file cache, before / after the first request, KB"]
(CONNECTION_BYTES,) = LIMITS["memory per idle keep-alive connection, bytes"]
TLS_KB, H2_KB, H2_TLS_KB = LIMITS["the same over TLS / HTTP/2 / HTTP/2 over TLS, KB"]
KEPT_CALLS, REQUEST_CALLS = LIMITS["system calls per keep-alive request of a small file, kept / opened for it"]
