#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Starts dudac: finds the package next to this file, or in share/monkey/dudac of an installation."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PLACES = HERE, HERE.parent / "share" / "monkey" / "dudac"


def find_package():
    for place in PLACES:
        if (place / "dudac" / "cli.py").exists():
            return str(place)
    sys.exit(f"dudac: the package dudac is neither in {PLACES[0]} nor in {PLACES[1]}")


sys.path[0] = find_package()
try:
    from dudac.cli import main
except ModuleNotFoundError as error:
    if error.name != "click":
        raise
    sys.exit(f"dudac: the Python module {error.name} is missing: install the Debian package python3-{error.name}")
except KeyboardInterrupt:  # main() handles later ones
    sys.exit(130)

main()
