# SPDX-License-Identifier: Apache-2.0
"""A log that can take no more, as on a full disk. It is a regular file: not every machine has a device /dev/full."""

FULL_BYTES = 64 << 20  # more than any other file that a server writes in these tests


def make_full(path):
    """Makes the file, which has no blocks; returns the wrapper of a server that can add nothing to it."""
    with open(path, "wb") as file:
        file.truncate(FULL_BYTES)
    return ["sh", "-c", f'trap "" XFSZ; exec prlimit --fsize={FULL_BYTES} -- "$0" "$@"']
