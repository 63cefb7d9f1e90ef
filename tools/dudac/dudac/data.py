# SPDX-License-Identifier: Apache-2.0
"""The data of a service in a test: a copy of its folder test-data, or of data if it has no such folder."""

import os
import pathlib
import shutil

from . import DudacError
from .folder import Service

BYTES_MAX = 1 << 26
FILES_MAX = 10_000
SUMMARY = f"{FILES_MAX} files or {BYTES_MAX >> 20} MB"


def find_data(service: Service) -> pathlib.Path:
    data = service.folders["DataDir"]
    own = data.with_name("test-data")
    return own if own.is_dir() else data


def check_size(folder: pathlib.Path) -> None:
    files, size = 0, 0
    for place, names, others in os.walk(folder):
        files += len(names) + len(others)
        size += sum(os.lstat(os.path.join(place, name)).st_size for name in others)
        if files > FILES_MAX or size > BYTES_MAX:
            raise DudacError(f"{folder} has more than {SUMMARY}, which a test does not copy; "
                             "make a folder test-data next to it with what the tests need")


def skip_special(place: str, names: list) -> list:
    """Sockets, pipes and devices are no data; links are copied as links."""
    paths = {name: os.path.join(place, name) for name in names}
    return [name for name, path in paths.items()
            if not (os.path.islink(path) or os.path.isfile(path) or os.path.isdir(path))]


def copy_data(service: Service, target: pathlib.Path) -> pathlib.Path:
    source = find_data(service)
    check_size(source)
    try:
        shutil.copytree(source, target, symlinks=True, ignore=skip_special)
    except shutil.Error as error:
        raise DudacError(f"{source} cannot be copied: {error.args[0][0][2]}") from None
    return target
