# SPDX-License-Identifier: Apache-2.0
"""Where the headers and the server are: in the checkout after `./dev build`, or in the prefix of an installation."""

import os
import pathlib
from dataclasses import dataclass

from . import DudacError

PACKAGE = pathlib.Path(__file__).resolve().parent


@dataclass(frozen=True)
class Installation:
    include: pathlib.Path  # has duda/duda.h
    server: pathlib.Path


def follow_links(program: pathlib.Path):
    """Yields the path of the program as it was called, and what each link on the way leads to."""
    path = pathlib.Path(os.path.abspath(program))
    for _ in range(20):
        yield path
        if not path.is_symlink():
            return
        path = pathlib.Path(os.path.normpath(path.parent / os.readlink(path)))


def list_tops():
    """The folders above the package: CHECKOUT/tools/dudac/dudac, or PREFIX/share/monkey/dudac/dudac. In this order,
    since a checkout may lie in a prefix."""
    return PACKAGE.parents[2], PACKAGE.parents[3]


def find_include() -> pathlib.Path:
    places = [top / "include" for top in list_tops()]
    for place in places:
        if (place / "duda" / "duda.h").exists():
            return place
    raise DudacError(f"the headers of Duda are missing: there is no duda/duda.h in {' or '.join(map(str, places))}")


def list_servers(program: pathlib.Path):
    """The server next to the program, then those of the checkout's builds, then that of the installation."""
    for path in follow_links(program):
        yield path.parent / "monkey"
    checkout, installed = list_tops()
    for preset in ("release", "debug", "asan"):
        yield checkout / "build" / preset / "bin" / "monkey"
    yield installed / "bin" / "monkey"


def find_server(program: pathlib.Path) -> pathlib.Path:
    for path in list_servers(program):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise DudacError("the server is missing: build it with ./dev build, or install it")


def find_installation(program: str) -> Installation:
    """`program` is the path by which dudac was called."""
    return Installation(find_include(), find_server(pathlib.Path(program)))
