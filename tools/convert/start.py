#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`monkey convert`: finds the package next to this file, or in share/monkey/convert of an installation."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PLACES = HERE, HERE.parents[1] / "share" / "monkey" / "convert"


def find_package():
    for place in PLACES:
        if (place / "convert" / "cli.py").exists():
            return str(place)
    sys.exit(f"monkey: the package convert is neither in {PLACES[0]} nor in {PLACES[1]}")


sys.path[0] = find_package()
sys.dont_write_bytecode = True
from convert.cli import main  # noqa: E402

sys.exit(main())
