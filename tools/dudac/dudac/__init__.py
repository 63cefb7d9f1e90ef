# SPDX-License-Identifier: Apache-2.0
"""The client manager of Duda: makes, builds, runs and tests web services from their source folders.

folder, makefile    what a source folder is: a list of services
compiler            sources to NAME.duda, compiling what has changed
installation        where the headers and the server are
config, server      a configuration in a temporary folder, and the server as a process
session             builds and serves; with --watch again after each change
checks, routes      what `dudac test` and `dudac routes` ask a running service
"""

import re

VERSION = "2.0.0"


class DudacError(Exception):
    """An error of the user or of the machine, as a sentence."""


def clean(text: str) -> str:
    """Text of files and programs without control bytes, which a terminal would obey."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", "?", text)
