# SPDX-License-Identifier: Apache-2.0
"""What a conversion of nginx knows while it goes through the blocks, and variables of nginx in values."""

import dataclasses
import os
import re

from .model import Config, Host, Scope
from .nginx_words import UNKNOWN, UNNEEDED, VARIABLES
from .report import Node, Report

VARIABLE = re.compile(r"\$\{?(\w+)\}?")
PREFIX = "/etc/nginx"  # of paths in the configuration
NO_VARIABLE = "${} has no counterpart here"


@dataclasses.dataclass
class Context:
    report: Report
    config: Config
    http: Scope = dataclasses.field(default_factory=Scope)
    upstreams: dict = dataclasses.field(default_factory=dict)  # name: (node, servers, rows)
    used_upstreams: set = dataclasses.field(default_factory=set)
    formats: dict = dataclasses.field(default_factory=dict)  # name: text
    zones: dict = dataclasses.field(default_factory=dict)  # name: rate, of limit_req_zone
    host: Host = None
    named: dict = dataclasses.field(default_factory=dict)  # of the host: locations with @
    used_named: set = dataclasses.field(default_factory=set)

    def skip(self, node: Node, sentence: str) -> None:
        self.report.skip(node, sentence)

    def drop(self, node: Node, why: str) -> None:
        self.report.drop(node, why)

    def note(self, node: Node, sentence: str) -> None:
        self.report.note(node, sentence)


def full_path(path: str) -> str:
    return path if path.startswith(("/", "$")) else os.path.join(PREFIX, path)


def translate(text: str):
    """A value with variables, as [LOGGER] and RequestSet take them. Returns it, and a variable that is unknown."""
    unknown = []

    def replace(match) -> str:
        name = match[1]
        if name.startswith("http_") and name not in VARIABLES:
            return "$header_" + name[5:]
        if name not in VARIABLES:
            unknown.append(name)
        return "$" + VARIABLES.get(name, name)

    made = VARIABLE.sub(replace, text)
    return made, unknown[0] if unknown else None


def has_variable(text: str):
    """The name of the first variable that is no capture; None: there is none."""
    return next((name for name in VARIABLE.findall(text) if not name.isdigit()), None)


def skip_unknown(context: Context, node: Node) -> None:
    if node.word in UNNEEDED:
        context.drop(node, UNNEEDED[node.word])
    elif node.word in UNKNOWN:
        context.skip(node, UNKNOWN[node.word])
    else:
        context.skip(node, "the word is not known at this place")


def is_plain(upstream: tuple) -> bool:
    """Whether a group is one server without options, which needs no group here."""
    _, servers, rows = upstream
    return len(servers) == 1 and " " not in servers[0] and not rows
