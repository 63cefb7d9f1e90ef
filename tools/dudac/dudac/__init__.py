# SPDX-License-Identifier: Apache-2.0
"""The client manager of Duda: makes, builds, runs and tests web services from their source folders.

folder, makefile    what a source folder is: a list of services
compiler            sources to NAME.duda, compiling what has changed
programs            runs compilers and other programs, with limits
installation        where the headers and the server are
config, server      a configuration in a temporary folder, and the server as a process
session             builds and serves; with --watch again after each change
lock                one dudac builds in a folder at a time
reason              why a service does not compile or start, or has crashed, in one line
interrupts, events  signals that end dudac, waits, and the queue of events
check_file, expect  the format of checks.toml; what responses must be
monitor             mistakes that are logged while a check runs, and crashes
keep                values of responses for later requests
data                the data of a test
checks, routes      what `dudac test` and `dudac routes` ask a running service
"""

import pathlib
import re

VERSION = "2.0.0"


class DudacError(Exception):
    """An error of the user or of the machine, as a sentence."""


def read_text(path: pathlib.Path, bytes_max: int, errors: str = "strict") -> str:
    """The text of a file; what cannot be read is a DudacError."""
    try:
        if not path.is_file():  # reading a pipe would wait
            raise DudacError(f"{path} is no file")
        with open(path, "rb") as file:
            data = file.read(bytes_max + 1)
        if len(data) > bytes_max:
            raise DudacError(f"{path} is larger than {bytes_max} bytes")
        return data.decode("utf-8", errors).replace("\r\n", "\n")
    except OSError as error:
        raise DudacError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise DudacError(f"{path}: {error}") from None


def clean(text: str) -> str:
    """Text of files and programs without control bytes, which a terminal would obey."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", "?", text)
