# SPDX-License-Identifier: Apache-2.0
"""Reports changes of a source folder as events ("changed", path), by inotify."""

import os
import pathlib

from . import DudacError
from .events import Events

# What a service does not begin anew for: its data, and files that the server reads for each request.
IGNORED_FOLDERS = {"html", "data", "test-data", "logs", "__pycache__"}
CHANGES = {"created", "modified", "moved", "deleted"}


def is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def resolve_folder(path: str) -> str:
    """The path without symbolic links, except for one at its end."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def is_ignored(path: str, folder: pathlib.Path, build: pathlib.Path) -> bool:
    if is_below(path, str(build)) or is_below(resolve_folder(path), os.path.realpath(build)):
        return True
    parts = pathlib.PurePath(os.path.relpath(path, folder)).parts
    name = parts[-1] if parts else ""
    hidden = any(part.startswith(".") and part != ".." for part in parts)
    return hidden or (len(parts) > 1 and parts[0] in IGNORED_FOLDERS) or name.endswith(("~", ".swp", ".swx", ".tmp"))


def identify(status: os.stat_result) -> tuple:
    return status.st_dev, status.st_ino


class Watcher:
    """Runs in a thread of its own until close()."""

    def __init__(self, folder: pathlib.Path, build: pathlib.Path, events: Events):
        self.folder, self.build, self.events = folder, build, events
        self.has_new_folders = False
        self.descriptor = os.open(folder, os.O_PATH)  # the number of its inode belongs to it as long as this is open
        try:
            self.observer = self.start_observer()
        except BaseException:
            os.close(self.descriptor)
            raise

    def start_observer(self):
        try:
            from watchdog.events import FileSystemEventHandler
            from watchdog.observers import Observer
        except ModuleNotFoundError:
            raise DudacError("--watch needs the Debian package python3-watchdog") from None
        observer, handler = Observer(), FileSystemEventHandler()
        handler.on_any_event = self.take_event
        observer.schedule(handler, str(self.folder), recursive=True)
        try:
            observer.start()
        except OSError as error:
            raise DudacError(f"{self.folder} cannot be watched: {error.strerror}; "
                             "the limits are in /proc/sys/fs/inotify") from None
        return observer

    def take_event(self, event) -> None:
        """In the thread of the observer. A folder whose entries change is modified, which they report themselves."""
        if event.event_type not in CHANGES or event.is_directory and event.event_type == "modified":
            return
        for path in (event.src_path, getattr(event, "dest_path", "")):
            if path and not is_ignored(path, self.folder, self.build):
                self.has_new_folders |= event.is_directory
                self.events.put(("changed", path))

    def renew(self) -> None:
        """watchdog does not watch what is in a folder that was moved here. A build follows, so that no change between
        the two is missed."""
        if self.has_new_folders:
            self.has_new_folders = False
            old, self.observer = self.observer, self.start_observer()
            stop_observer(old)

    def check(self) -> None:
        """inotify watches a folder itself, not its path."""
        try:
            is_same = identify(os.stat(self.folder)) == identify(os.fstat(self.descriptor))
        except OSError:
            is_same = False
        if not is_same:
            raise DudacError(f"the folder {self.folder} was deleted or replaced while it was watched")
        if not self.observer.is_alive() or not all(each.is_alive() for each in self.observer.emitters):
            raise DudacError(f"{self.folder} cannot be watched any more")

    def close(self) -> None:
        stop_observer(self.observer)
        os.close(self.descriptor)


def stop_observer(observer) -> None:
    observer.stop()
    observer.join()
