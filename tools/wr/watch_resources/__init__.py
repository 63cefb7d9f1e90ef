# SPDX-License-Identifier: Apache-2.0
"""Watch Resources: loads servers in rounds and records what they cost."""

import os

VERSION = "1.0"

# Charts need no linear algebra, and the threads of its library would wait for work in a loop.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class WrError(Exception):
    """A sentence for the user: wrong input, or a measurement that is not possible. The program prints it and ends."""


def clean(value: str) -> str:
    """Returns a text of others without characters that no page can hold and that a terminal obeys."""
    return "".join(c if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f" and not "\ud800" <= c <= "\udfff"
                                       and c not in "\ufffe\uffff") else "\ufffd" for c in value)
