# SPDX-License-Identifier: Apache-2.0
"""Locations of nginx: their patterns, in the order in which nginx tries them, and what they answer."""

import re

from . import nginx_settings as settings
from .model import Content, GATEWAYS, Host, Scope
from .nginx_content import (convert_if, convert_return, convert_rewrite, convert_try_files, make_gateway,
                            set_try_files)
from .nginx_context import Context, full_path, has_variable, skip_unknown
from .patterns import clean_prefix, expression, is_prefix, overlaps, within
from .report import Node

HIDDEN = re.compile(r"\^?(?:\(\?:\^\|/\))?/?\(?\^?/?\\\.(?:ht|git|env|svn|user\\\.ini|\(|\w+\)?|\)?$|$).*")
EXACT, FIRST, EXPRESSION, PREFIX = range(4)
HOST_WORDS = {"index": ["index.html"], "gzip_static": ["off"], "brotli_static": ["off"], "disable_symlinks": ["off"],
              "error_page": [], "error_log": ["off"]}  # and what makes no difference


def convert_locations(context: Context, host: Host, nodes: list) -> None:
    found = []
    for node in nodes:
        if not (node.args and node.args[0].startswith("@")):
            collect(context, host, node, host.base, found)
    found.sort(key=lambda entry: entry[0])
    by_pattern = {}
    for _, scope in found:
        by_pattern.setdefault(scope.pattern, scope)
    scopes = list(by_pattern.values())
    host.base.values["all_scopes"] = scopes
    for scope in scopes:
        finish_location(context, host, scope)
    host.scopes = [scope for scope in scopes if not scope.values.get("is_base")]
    move_base(host)
    drop_hidden(context, host)


def collect(context: Context, host: Host, node: Node, outer: Scope, found: list) -> None:
    """Appends the scopes of a location and of those in it, each with what it is sorted by."""
    if node.block is None or len(node.args) not in (1, 2):
        context.skip(node, "a location has a path and a block")
        return
    pattern, rank = read_pattern(node, outer)
    if pattern is None:
        context.skip(node, f"{node.args[0]} is no modifier of a location")
        return
    scope = Scope(pattern, outer, node)
    if rank == PREFIX and outer.values.get("rank") == FIRST:  # expressions are not tried within it, either
        rank = FIRST
    scope.values["rank"] = rank
    number = len(found)
    path = pattern.lstrip("=")
    nested = outer is not host.base
    key = (rank, -len(path) if rank in (FIRST, PREFIX) else 0, not nested if rank == EXPRESSION else False, number)
    found.append((key, scope))
    later = []
    for each in node.block:
        if each.word == "location":
            collect(context, host, each, scope, found)
        elif each.word in LATER:
            later.append(each)
        elif each.word in ("proxy_pass", "fastcgi_pass", "scgi_pass", "alias", "stub_status", "internal"):
            scope.values[each.word] = each
        elif each.word in HOST_WORDS and pattern != "/":
            if each.args != HOST_WORDS[each.word]:
                context.skip(each, "it is for the whole host here, and not for some paths")
        elif not settings.convert_setting(context, scope, each):
            skip_unknown(context, each)
    scope.values["later"] = later


def read_pattern(node: Node, outer: Scope) -> tuple:
    if len(node.args) == 1:
        path = node.args[0]
        for modifier in ("=", "^~", "~*", "~"):  # a path behind it without a blank
            if path.startswith(modifier):
                return read_modified(modifier, path[len(modifier):], outer)
        return clean_prefix(path), PREFIX
    return read_modified(*node.args, outer)


def read_modified(modifier: str, path: str, outer: Scope) -> tuple:
    if modifier == "=":
        return "=" + path, EXACT
    if modifier == "^~":
        return clean_prefix(path), FIRST
    if modifier in ("~", "~*"):
        prefix = outer.pattern if is_prefix(outer.pattern) else "/"
        return within(prefix, expression(path, modifier == "~*")), EXPRESSION
    return None, PREFIX


LATER = {"return": convert_return, "rewrite": convert_rewrite, "if": convert_if, "try_files": convert_try_files}


def finish_location(context: Context, host: Host, scope: Scope) -> None:
    values = scope.values
    for node in sorted(values.get("later", ()), key=lambda each: each.word == "return"):
        LATER[node.word](context, host, scope, node)
    if "fallback" in values:
        set_try_files(context, host, *values.pop("fallback"), scope)
    settings.finish_scope(scope)
    if "internal" in values:
        context.note(values["internal"], "the path can be requested by clients, too")
    if "stub_status" in values:
        set_status(context, scope, values["stub_status"])
    if scope.content is not None and scope.content.kind == "respond":  # return comes before logins and rules in nginx
        scope.settings["auth"], scope.rules = (), []
    gateway = next((word for word in ("proxy_pass", "fastcgi_pass", "scgi_pass") if word in values), None)
    if scope.content is not None and gateway and scope.content.kind in ("redirect", "respond"):
        context.drop(values[gateway], "a redirect or an answer comes before it")
    elif gateway:
        make_gateway(context, host, scope, values[gateway])
    elif scope.content is None:
        scope.content = make_files(context, host, scope)


def set_status(context: Context, scope: Scope, node: Node) -> None:
    path = scope.pattern.lstrip("=")
    if not path.startswith("/"):
        context.skip(node, "StatusPath is a path")
        return
    context.config.sections.append(("STATUS", (("Enabled", "On"), ("StatusPath", path))))
    context.note(node, "the status is JSON, metrics for Prometheus are at /metrics, both for this machine")
    if scope.rules:
        scope.rules = None
    scope.values["is_base"] = True


def make_files(context: Context, host: Host, scope: Scope):
    """Files of a location: an alias, or another root than that of the host."""
    pattern, node = scope.pattern, scope.values.get("alias")
    if node is not None:
        folder = node.args[0] if node.args else ""
        if has_variable(folder) or "$" in folder:
            context.skip(node, "the folder of an alias has no variables")
            return None
        folder = full_path(folder)
        if not (pattern.startswith("=") or is_prefix(pattern)):
            context.skip(node, "an alias is for a prefix or for one path")
            return None
        return Content("files", (("To", folder.rstrip("/") or "/"),), node)
    root, base = scope.value("root"), base_root(host)
    if root and "root" in own_values(scope, host) and base and root != base:
        path = pattern.lstrip("=") if pattern[0] in "=/" else ""
        return Content("files", (("To", root.rstrip("/") + path),), scope.node)
    if not any(each.word == "rewrite" for each in scope.values.get("later", ())):
        scope.values["own_files"] = True  # a missing one is 404, whatever TryFiles of the host says
    return Content("files")


def own_values(scope: Scope, host: Host) -> set:
    """Names of the values that a location, or one around it, has set."""
    names = set()
    while scope is not None and scope is not host.base:
        names |= set(scope.values)
        scope = scope.outer
    return names


def base_root(host: Host):
    """The root of the host: that of the server, else that of its location /."""
    if host.base.value("root"):
        return host.base.value("root")
    for scope in host.base.values.get("all_scopes", ()):
        if scope.pattern == "/" and "root" in scope.values:
            return scope.values["root"]
    return None


def move_base(host: Host) -> None:
    """The content of location / is that of the host, and its settings hold for what no other location has."""
    for scope in host.scopes:
        if scope.pattern != "/":
            continue
        if set(scope.values) & {"root", "index"} and not host.base.value("root"):
            host.base.values.setdefault("root", scope.values.get("root"))
        if "index" in scope.values:
            host.base.values["index"] = scope.values["index"]
        others = [each for each in host.scopes if each is not scope and each.content and
                  each.content.kind not in ("redirect", "respond")]
        if not others:  # nothing else is there that the settings could not be for
            host.base.settings.update(scope.settings)
            host.base.rules = scope.rules if scope.rules is not None else host.base.rules
            host.base.headers = scope.headers if scope.headers is not None else host.base.headers
            scope.settings, scope.rules, scope.headers = {}, None, None
            if "log" in scope.values:
                host.base.values["log"] = scope.values.pop("log")


def drop_hidden(context: Context, host: Host) -> None:
    """A location that refuses names with a dot in front is the default, where files alone are below it."""
    everything = [scope for scope in (*host.scopes, host.base) if scope.pattern == "/" and scope.content]
    if any(scope.content.kind in GATEWAYS and scope.content.kind != "fastcgi" for scope in everything):
        return
    kept = []
    for scope in host.scopes:
        refuses = scope.rules == [(("Action", "deny"),)] or (
            scope.content and scope.content.kind == "respond" and dict(scope.content.rows).get("Status", "")[:1] == "4")
        text = scope.pattern.lstrip("~").removeprefix("*") if scope.pattern.startswith("~") else ""
        if refuses and text and HIDDEN.fullmatch(text):
            context.drop(Node(scope.node.text(), [], scope.node.place),
                         "names that begin with a dot are 404, but for /.well-known")
        elif scope.pattern.startswith("/.well-known") and scope.content and scope.content.kind == "files" and \
                not scope.content.rows and not scope.rules and not any(
                    overlaps(scope.pattern, each.pattern) for each in host.scopes if each is not scope):
            context.drop(Node(scope.node.text(), [], scope.node.place), "/.well-known is served")
        else:
            kept.append(scope)
    host.scopes = kept
