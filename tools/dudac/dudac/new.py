# SPDX-License-Identifier: Apache-2.0
"""Makes the folder of a new service from a template: a folder of files in which NEW_SERVICE stands for the name, also
in the names of files."""

import os
import pathlib

from . import DudacError
from .folder import check_name

TEMPLATES = pathlib.Path(__file__).resolve().parent / "templates"
MARK = "NEW_SERVICE"


def list_templates() -> list:
    return sorted(path.name for path in TEMPLATES.iterdir() if path.is_dir())


def make_service(path: str, template: str) -> pathlib.Path:
    """Returns the folder; it must not exist, or be empty."""
    folder = pathlib.Path(os.path.abspath(path))
    name = check_name(folder.name, path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DudacError(f"{path} exists already, and is not changed; choose another name")
    for source in sorted(TEMPLATES.joinpath(template).rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            target = folder / str(source.relative_to(TEMPLATES / template)).replace(MARK, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source.read_text(encoding="utf-8").replace(MARK, name), encoding="utf-8")
    return folder
