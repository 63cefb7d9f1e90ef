# SPDX-License-Identifier: Apache-2.0
"""Reports changes of a source folder as events ("changed", path), by inotify."""

import os
import pathlib
import queue

from . import DudacError

# What a service does not begin anew for: its data, and files that the server reads for each request.
IGNORED_FOLDERS = {"html", "data", "logs", "__pycache__"}
CHANGES = {"created", "modified", "moved", "deleted"}


def is_ignored(path: str, folder: pathlib.Path, build: pathlib.Path) -> bool:
    if path == str(build) or path.startswith(f"{build}/"):
        return True
    parts = pathlib.PurePath(os.path.relpath(path, folder)).parts
    name = parts[-1] if parts else ""
    hidden = any(part.startswith(".") and part != ".." for part in parts)
    return hidden or (bool(parts) and parts[0] in IGNORED_FOLDERS) or name.endswith(("~", ".swp", ".swx", ".tmp"))


def find_inode(path: pathlib.Path):
    try:
        status = os.stat(path)
        return status.st_dev, status.st_ino
    except OSError:
        return None


class Watcher:
    """Runs in a thread of its own until close()."""

    def __init__(self, folder: pathlib.Path, build: pathlib.Path, events: queue.SimpleQueue):
        try:
            from watchdog.events import FileSystemEventHandler
            from watchdog.observers import Observer
        except ModuleNotFoundError:
            raise DudacError("--watch needs the Debian package python3-watchdog") from None

        class Handler(FileSystemEventHandler):
            def on_any_event(self, event):
                if event.event_type not in CHANGES or event.is_directory and event.event_type == "modified":
                    return
                for path in (event.src_path, getattr(event, "dest_path", "")):
                    if path and not is_ignored(path, folder, build):
                        events.put(("changed", path))

        self.folder, self.inode = folder, find_inode(folder)
        self.observer = Observer()
        self.observer.schedule(Handler(), str(folder), recursive=True)
        try:
            self.observer.start()
        except OSError as error:
            raise DudacError(f"{folder} cannot be watched: {error.strerror}; the limits are in /proc/sys/fs/inotify") \
                from None

    def check_folder(self) -> None:
        """inotify watches a folder itself, not its path."""
        if find_inode(self.folder) != self.inode:
            raise DudacError(f"the folder {self.folder} was deleted or replaced while it was watched")

    def close(self) -> None:
        self.observer.stop()
        self.observer.join()
