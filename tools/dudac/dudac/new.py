# SPDX-License-Identifier: Apache-2.0
"""Makes the folder of a new service from a template: a folder of files in which the name replaces NEW_SERVICE, also
in the names of files. A new folder in templates/ is a new template; nothing else has to know of it."""

import contextlib
import os
import pathlib

from . import DudacError
from .folder import check_name, open_folder, suggest_name

TEMPLATES = pathlib.Path(__file__).resolve().parent / "templates"
MARK = "NEW_SERVICE"


def list_templates() -> list:
    return sorted(path.name for path in TEMPLATES.glob("*") if path.is_dir())


def list_files(template: str) -> list:
    """The files of a template, as seen from its folder."""
    top = TEMPLATES / template
    return sorted(path.relative_to(top) for path in top.rglob("*")
                  if path.is_file() and "__pycache__" not in path.parts)


def make_folders(folder: pathlib.Path, made: list) -> None:
    """Makes a folder and those above it, and notes those that it has made."""
    if not folder.is_dir():
        make_folders(folder.parent, made)
        folder.mkdir()
        made.append(folder)


def write_file(path: pathlib.Path, data: bytes, made: list) -> None:
    with open(path, "xb") as file:
        made.append(path)
        file.write(data)


def remove_made(made: list) -> None:
    for path in reversed(made):
        with contextlib.suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()


def make_service(path: str, template: str) -> pathlib.Path:
    """Returns the folder, which must not exist or must be empty. Leaves nothing behind if it fails."""
    folder = pathlib.Path(os.path.abspath(path))
    name, made = check_name(suggest_name(folder), path), []
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DudacError(f"{path} exists already, and is not changed; choose another name")
    try:
        make_folders(folder, made)
        open_folder(folder)
        for source in list_files(template):
            target = folder / str(source).replace(MARK, name)
            make_folders(target.parent, made)
            data = (TEMPLATES / template / source).read_bytes()
            write_file(target, data.replace(MARK.encode(), name.encode()), made)
    except BaseException:
        remove_made(made)
        raise
    return folder
