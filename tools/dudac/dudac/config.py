# SPDX-License-Identifier: Apache-2.0
"""The configuration of a server for services, in a temporary folder below the build folder:

conf/monkey.conf, plugins.load, sites/default; requests for names of others are refused
site/index.html         the document root: links to the services
error.html              what is shown while the file `failed` exists, instead of the services
"""

import contextlib
import html
import os
import pathlib
import re
import shutil
import tempfile
from dataclasses import dataclass

from . import DudacError
from .folder import check_path
from .level import NEW_LEVEL
from .lock import lock_folder

PLUGINS = ("liana", "mandril", "maintenance", "duda", "static")  # in the order in which they handle a request
SHUTDOWN_SECONDS = 2
ERROR_CHARS_MAX = 10_000  # 6 bytes each at most, and the server takes a page of 64 KB
TITLE_CHARS_MAX = 200
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title>{refresh}
<style>body{{font:1rem/1.5 system-ui,sans-serif;margin:3rem auto;max-width:60rem;padding:0 1rem}}
pre{{background:#222;color:#eee;padding:1rem;overflow-x:auto;border-left:.4rem solid #c33}}</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""
# A page of another site can have its own name lead to this machine (DNS rebinding), but no address and no localhost.
OTHER_NAMES = r"~*^(?!(|localhost|.*\.localhost|[0-9.]+|\[[0-9a-f:.]+\]{})(:[0-9]+)?$)"
REFRESH = '\n<meta http-equiv="refresh" content="1">'


@dataclass(frozen=True)
class Options:
    """How the server listens; port 0 takes a free one."""

    port: int
    address: str = "127.0.0.1"
    workers: int = 2
    https: bool = False
    log_level: str = "info"
    names: tuple = ()  # that clients may ask for, besides addresses and localhost
    sanitize: tuple = ()  # see sanitize.py
    holds_reports: bool = False  # of sanitizers, until the end
    finds_leaks: bool = False  # by AddressSanitizer, when the server ends
    prints: bool = False  # the standard output of the server is that of dudac
    cuts_responses: bool = False  # at the end, instead of waiting for event streams and WebSockets
    console: str = ""  # the path of the console below the URL of a service; Off: none

    @property
    def scheme(self) -> str:
        return "https" if self.https else "http"


def quote(value) -> str:
    """A word of a configuration."""
    check_path(value)
    text = re.sub(r'(["\\])', r"\\\1", str(value)).replace("${", "\\${")
    return f'"{text}"'


def section(name: str, rows: dict) -> str:
    return "".join([f"[{name}]\n", *(f"    {key} {value}\n" for key, value in rows.items())])


def make_page(title: str, body: str, refresh: bool = False) -> str:
    return PAGE.format(title=html.escape(title), body=body, refresh=REFRESH if refresh else "")


def strip_colors(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]", "", text)


def remove_orphaned_folders(build: pathlib.Path) -> None:
    """The folders of runs that were killed. That of a run in another container has a lock."""
    for path in build.glob("run-*-*"):
        pid = path.name.split("-")[1]
        if not pid.isdigit() or os.path.exists(f"/proc/{pid}"):
            continue
        with contextlib.suppress(OSError):
            os.close(lock_folder(path))
            shutil.rmtree(path, ignore_errors=True)


class Config:
    """Files for one run of a server; close() removes them."""

    def __init__(self, build: pathlib.Path, options: Options):
        self.options = options
        try:
            build.mkdir(parents=True, exist_ok=True)
            remove_orphaned_folders(build)
            self.top = pathlib.Path(tempfile.mkdtemp(prefix=f"run-{os.getpid()}-", dir=build))
            self.lock = lock_folder(self.top)
        except OSError as error:
            raise DudacError(f"{build}: {error.strerror}; --build-dir names another folder") from None
        self.folder, self.site = self.top / "conf", self.top / "site"
        self.page, self.flag = self.top / "error.html", self.top / "failed"

    def close(self) -> None:
        shutil.rmtree(self.top, ignore_errors=True)
        os.close(self.lock)

    def write(self, services: list) -> None:
        (self.folder / "sites").mkdir(parents=True, exist_ok=True)
        self.site.mkdir(exist_ok=True)
        if not self.page.exists():
            self.page.write_text("", encoding="utf-8")
        files = {
            self.folder / "monkey.conf": self.server_text(),
            self.folder / "plugins.load": self.plugins_text(),
            self.folder / "sites" / "default": self.host_text(services),
            self.site / "index.html": self.index_text(services),
        }
        for path, text in files.items():
            path.write_text(text, encoding="utf-8", errors="surrogateescape")

    def server_text(self) -> str:
        address = f"[{self.options.address}]" if ":" in self.options.address else self.options.address
        tls = " tls" if self.options.https else ""
        seconds = 0 if self.options.cuts_responses else SHUTDOWN_SECONDS
        text = section("SERVER", {"Listen": f"{address}:{self.options.port}{tls}", "Workers": self.options.workers,
                                  "LogLevel": self.options.log_level, "ShutdownTimeout": f"{seconds}s",
                                  "CoreDumps": "On"})  # debuggers may attach
        text += section("DUDA", {"LogLimit": "Off"})  # each line is for the author
        return text + (section("TLS", {"SelfSigned": "On"}) if self.options.https else "")

    def plugins_text(self) -> str:
        names = ["tls", *PLUGINS] if self.options.https else PLUGINS
        return "[PLUGINS]\n" + "".join(f"    Load {name}\n" for name in names)

    def host_text(self, services: list) -> str:
        text = section("HOST", {"ServerName": "localhost", "DocumentRoot": quote(self.site)})
        names = "".join(f"|{re.escape(name)}" for name in self.options.names)
        text += section("RULES", {"When": f"header Host {quote(OTHER_NAMES.format(names))}", "Action": "deny 421"})
        text += section("MAINTENANCE", {"FlagFile": quote(self.flag), "Page": quote(self.page), "RetryAfter": "1s"})
        for service in services:
            if service.file.exists():
                folders = {key: quote(f"{path}/") for key, path in service.folders.items()}
                text += section("WEB_SERVICE", {"Name": service.name, "Root": "On" if service.root else "Off",
                                                "File": quote(service.file), **folders, **self.console_row(service)})
        return text

    def console_row(self, service) -> dict:
        return {"Console": quote(self.options.console)} if self.has_console(service) else {}

    def has_console(self, service) -> bool:
        """Services of the original API ask for one themselves."""
        return bool(self.options.console) and service.level == NEW_LEVEL

    def index_text(self, services: list) -> str:
        links = "".join(f'<li><a href="{service.path}">{service.path}</a></li>' for service in services)
        return make_page("Services", f"<ul>{links}</ul>")

    def set_failure(self, title: str, text: str) -> None:
        """Writes the error page, which the server reads at its next reload."""
        body = f"<pre>{html.escape(strip_colors(text)[:ERROR_CHARS_MAX])}</pre>"
        title = title if len(title) <= TITLE_CHARS_MAX else f"{title[:TITLE_CHARS_MAX]}..."
        note = "<p>The service comes back in this place after the next change with which it compiles and starts.</p>"
        self.top.mkdir(parents=True, exist_ok=True)  # the build folder may have been removed
        self.page.write_text(make_page(title, body + note, refresh=True), encoding="utf-8", errors="replace")

    def show_failure(self, shown: bool) -> None:
        if shown:
            self.flag.touch()
        else:
            self.flag.unlink(missing_ok=True)
