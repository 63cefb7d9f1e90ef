# SPDX-License-Identifier: Apache-2.0
"""What a configuration says, between the words of its server and those of this one.

A host has a scope for all of its paths, and scopes for some of them in the order in which they are tried. A scope has a
setting of each kind, and content. A setting is a tuple of rows (key, value); an empty one switches off what an outer
scope has. Places assign sections: the first one that fits a path is used, as a whole."""

import dataclasses
import typing

from .report import Node, Place

# kind of setting: section, and the rows that switch it off for some paths (None: there are none)
KINDS = {
    "auth": ("AUTH", (("Type", "Off"),)),
    "clients": ("CLIENT_LIMITS", ()),
    "limits": ("LIMITS", None),
    "compress": ("COMPRESS", (("Codings", "none"),)),
    "listing": ("DIRLISTING", (("Enabled", "Off"),)),
    "errors": ("ERROR_PAGES", None),
}

# kind of content: section, and the plugins in the order in which they are asked (0: before all of them)
CONTENTS = {
    "redirect": ("REDIRECT", 0, ""),
    "respond": ("RESPOND", 0, "respond"),
    "proxy": ("PROXY", 1, "proxy"),
    "cgi": ("CGI", 2, "cgi"),
    "fastcgi": ("FASTCGI", 3, "fastcgi"),
    "scgi": ("SCGI", 4, "fastcgi"),
    "files": ("ALIAS", 5, "static"),
}
GATEWAYS = "proxy", "cgi", "fastcgi", "scgi"

Rows = typing.Tuple[typing.Tuple[str, str], ...]


@dataclasses.dataclass
class Content:
    kind: str  # of CONTENTS
    rows: Rows = ()  # for "files": ("To", folder) if it is not that of the host
    node: typing.Optional[Node] = None


@dataclasses.dataclass
class Scope:
    """Settings for the paths of a pattern; what a scope does not set is that of the outer one."""

    pattern: str = "/"
    outer: typing.Optional["Scope"] = None
    node: typing.Optional[Node] = None
    content: typing.Optional[Content] = None
    settings: dict = dataclasses.field(default_factory=dict)
    headers: typing.Optional[dict] = None  # name in lower case: row
    rules: typing.Optional[list] = None  # of rows
    values: dict = dataclasses.field(default_factory=dict)  # what a converter keeps here, such as a root
    is_open: bool = False  # what it does not set is what the scopes behind it say

    def get(self, kind: str):
        scope = self
        while scope is not None and kind not in scope.settings:
            scope = scope.outer
        return scope.settings[kind] if scope else None

    def value(self, name: str, default=None):
        scope = self
        while scope is not None and name not in scope.values:
            scope = scope.outer
        return scope.values[name] if scope else default

    def add_rows(self, kind: str, *rows) -> None:
        """Adds rows to a setting; one with the same key is replaced."""
        old = [row for row in self.settings.get(kind) or self.get(kind) or () if row[0] not in {r[0] for r in rows}]
        self.settings[kind] = tuple(old) + rows

    def add_header(self, *row) -> None:
        """Adds a row (key, name, value, on errors) of [HEADERS]."""
        self.headers = self.headers if self.headers is not None else {}
        self.headers[row[:3] if row[0] in ("Add", "Remove") else row[1].lower()] = row

    def is_refused(self) -> bool:
        """Whether no request gets to what its other settings are for."""
        rule = self.rules[0] if self.rules else ()
        return len(rule) == 1 and rule[0][1].startswith(("deny", "drop"))

    def is_redirected(self) -> bool:
        return self.content is not None and self.content.kind == "redirect"

    def list_rules(self) -> list:
        scope = self
        while scope is not None and scope.rules is None:
            scope = scope.outer
        return scope.rules if scope else []


@dataclasses.dataclass
class Host:
    names: list
    place: Place
    listens: list = dataclasses.field(default_factory=list)  # values of Listen
    keys: list = dataclasses.field(default_factory=list)  # rows of [HOST]
    tls: list = dataclasses.field(default_factory=list)  # rows of [TLS]
    base: Scope = dataclasses.field(default_factory=Scope)
    scopes: list = dataclasses.field(default_factory=list)
    sections: list = dataclasses.field(default_factory=list)  # further ones: (name, rows), of rules, logs ...
    first: bool = False  # answers for names that no host has
    https_only: bool = False

    def set_key(self, key: str, value: str) -> None:
        self.keys = [row for row in self.keys if row[0] != key] + [(key, value)]

    def key(self, name: str) -> str:
        return next((value for key, value in self.keys if key == name), "")


@dataclasses.dataclass
class Config:
    server: list = dataclasses.field(default_factory=list)  # rows of [SERVER]
    sections: list = dataclasses.field(default_factory=list)  # of the server, and for all hosts
    hosts: list = dataclasses.field(default_factory=list)
    common: Scope = dataclasses.field(default_factory=Scope)  # what sections for all hosts say
    users: dict = dataclasses.field(default_factory=dict)  # name of a file: its lines

    def set_server(self, key: str, value: str) -> None:
        self.server = [row for row in self.server if row[0] != key] + [(key, value)]
