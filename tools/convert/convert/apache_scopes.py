# SPDX-License-Identifier: Apache-2.0
"""A host of Apache: its sections for folders, paths and files, and which function each word has."""

import re

from . import apache_settings as settings
from .apache_access import allow_or_deny, finish_requirements, require
from .apache_proxy import add_member, convert_pass, convert_pass_match, drop_websockets, set_proxy_option
from .apache_rewrite import convert_rewrites
from .apache_words import TLS_ROWS, UNKNOWN, UNNEEDED
from .model import Config, Host, Scope
from .patterns import clean_prefix, expression, is_prefix, within
from .report import Node, Report


class Server:
    """A host while it is converted."""

    def __init__(self, host: Host, config: Config, report: Report):
        self.host, self.config, self.report = host, config, report
        self.rewrites: list = []  # (conditions, rule, scope)
        self.conditions: list = []
        self.groups: dict = {}  # of balancers: name: (servers, rows)
        self.handled: list = []  # scopes of ProxyPass, in their order

    def root(self) -> str:
        return self.host.key("DocumentRoot")


def convert_nodes(server: Server, nodes: list, scope: Scope) -> None:
    first = ("documentroot", "servername", "serveralias", "alias", "define", "proxypreservehost", "authtype", "proxy",
             "authname", "authuserfile", "proxytimeout", "sslproxyverify")
    for node in sorted(nodes, key=lambda each: each.word.lower() not in first):
        word = node.word.lower()
        if word in SECTIONS and node.block is not None:
            SECTIONS[word](server, node, scope)
        elif word in WORDS and node.block is None:
            WORDS[word](server, node, scope, node.args[0] if node.args else "")
        elif word in TLS_ROWS and node.args:
            server.host.tls.append((TLS_ROWS[word], node.args[0]))
        elif word in UNNEEDED:
            server.report.drop(Node(node.word, [], node.place), UNNEEDED[word])
        else:
            server.report.skip(node, UNKNOWN.get(word, "the word is not known here"))


# ── sections ──


def enter(server: Server, node: Node, outer: Scope, pattern: str) -> Scope:
    """A scope that comes before those of former sections, since later ones have precedence."""
    scope = Scope(pattern, server.host.base if outer.pattern == "/" else outer, node, is_open=True)
    convert_nodes(server, node.block, scope)
    scope.values["folder"] = outer.values.get("folder")
    finish_requirements(server, scope)
    server.host.scopes.insert(0, scope)
    return scope


def enter_directory(server, node, outer):
    folder = node.args[-1].rstrip("/") or "/" if node.args else "/"
    if node.args[:1] == ["~"] or node.word.lower() == "directorymatch" or any(c in folder for c in "*?["):
        server.report.skip(node, "a section is for paths: a pattern of folders has none")
        return
    root = server.root().rstrip("/")
    aliases = {dict(scope.content.rows).get("To"): scope.pattern for scope in server.host.scopes
               if scope.content and scope.content.kind == "files" and scope.content.rows}
    aliases.update(server.host.base.values.get("scripts", {}))
    path = next((pattern + folder[len(to):] for to, pattern in aliases.items()
                 if to and (folder == to or folder.startswith(to + "/"))), None)
    if path is None and root and (folder == root or folder.startswith(root + "/")):
        path = folder[len(root):] or "/"
    elif path is None and root and (root.startswith(folder.rstrip("/") + "/")):
        path = "/"
    if path is None:
        if is_granted_only(node):
            server.report.drop(Node(f"{node.word} {folder}", [], node.place),
                               "no path of this host leads to the folder")
        else:
            server.report.skip(node, "no path of this host leads to the folder")
        return
    if path == "/":
        server.host.base.values["folder"] = True
        convert_nodes(server, node.block, server.host.base)
        finish_requirements(server, server.host.base)
        server.host.base.values["folder"] = None
    else:
        enter(server, node, outer, path)


def is_granted_only(node: Node) -> bool:
    return all(each.word.lower() in ("require", "options", "allowoverride", "order", "allow", "satisfy")
               for each in node.block)


def enter_location(server, node, outer):
    args = node.args
    if node.word.lower() == "locationmatch" or args[:1] == ["~"]:
        pattern = expression(args[-1] if args else "/")
    else:
        pattern = clean_prefix(args[0]) if args and args[0].startswith("/") else "/"
        if any(c in pattern for c in "*?["):
            server.report.skip(node, "write a LocationMatch as an expression")
            return
    if pattern == "/":
        convert_nodes(server, node.block, server.host.base)
        finish_requirements(server, server.host.base)
    elif pattern in ("/server-status", "/server-info"):
        server.config.sections.append(("STATUS", (("Enabled", "On"), ("StatusPath", pattern))))
        server.report.note(node, "the status is JSON, for this machine alone")
    else:
        enter(server, node, outer, pattern)


def enter_files(server, node, outer):
    args = node.args
    if node.word.lower() == "filesmatch" or args[:1] == ["~"]:
        text = args[-1] if args else ""
        ignore = text.startswith("(?i)")
        text = text.removeprefix("(?i)")
        text = "/" + text[1:] if text.startswith("^") else text
        text = re.sub(r"^\.\+", "", text)
        pattern = expression(text.replace("^", "/") if "^" in text else text, ignore)
    else:
        name = args[0] if args else "*"
        pattern = name if re.fullmatch(r"\*\.[\w.-]+", name) else expression("/" + re.escape(name) + "$")
    if re.fullmatch(r"~\*?/\(?\??:?\\\.(?:ht.*|.*)", pattern) and all(each.word.lower() in (
            "require", "order", "deny", "allow", "satisfy") for each in node.block):
        server.report.drop(Node(node.text(), [], node.place), "names that begin with a dot are 404")
        return
    enter(server, node, outer, within(outer.pattern if is_prefix(outer.pattern) else "/", pattern))


def enter_requirements(server, node, scope):
    kind = node.word.lower()
    for each in node.block:
        if each.word.lower() in ("requireany", "requireall", "requirenone") and each.block is not None:
            enter_requirements(server, each, scope)
        elif each.word.lower() == "require":
            if kind == "requirenone":
                each.args.insert(0, "not")
            require(server, each, scope, each.args[0] if each.args else "")
        else:
            server.report.skip(each, "the word is not known here")
    scope.values["all"] = kind == "requireall"


def enter_proxy(server, node, scope):
    name = node.args[0] if node.args else "*"
    if name.startswith("balancer://"):
        for each in node.block:
            add_member(server, each, name)
    elif all(each.word.lower() in ("order", "allow", "require") for each in node.block):
        server.report.drop(Node("Proxy", [], node.place), "requests for other hosts are never passed on")
    else:
        server.report.skip(node, "options of a backend are keys of [PROXY]")


SECTIONS = {
    "directory": enter_directory, "directorymatch": enter_directory, "location": enter_location,
    "locationmatch": enter_location, "files": enter_files, "filesmatch": enter_files, "proxy": enter_proxy,
    "requireany": enter_requirements, "requireall": enter_requirements, "requirenone": enter_requirements,
}
WORDS = {
    **settings.WORDS,
    "require": require, "order": allow_or_deny, "allow": allow_or_deny, "deny": allow_or_deny,
    "proxypass": convert_pass, "proxypassmatch": convert_pass_match, "proxypreservehost": set_proxy_option,
    "proxytimeout": set_proxy_option, "proxyerroroverride": set_proxy_option, "sslproxyverify": set_proxy_option,
}


def finish_server(server: Server) -> None:
    host = server.host
    finish_requirements(server, host.base)
    convert_rewrites(server)
    drop_websockets(server)
    host.scopes = sorted([*server.handled, *host.scopes], key=lambda scope: not scope.is_redirected())
    if host.key("Redirect"):  # nothing else is reached
        host.keys = [row for row in host.keys if row[0] == "Redirect"]
