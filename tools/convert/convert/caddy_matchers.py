# SPDX-License-Identifier: Apache-2.0
"""Matchers of Caddy: for which paths, and under which conditions, a directive holds."""

import re

from .patterns import body_of, expression
from .report import Node


def take_matcher(site, node: Node, within: str):
    """Returns the patterns that a directive is for, the conditions When, and its other arguments; None if its matcher
    cannot be said, which is reported."""
    args = list(node.args)
    if args and args[0].startswith("@"):
        matcher = site.matchers.get(args[0])
        if matcher is None:
            site.report.skip(node, f"there is no matcher {args[0]}")
            return None
        result = read_matcher(matcher)
        if result is None:
            site.report.skip(node, f"the matcher {args[0]} has conditions that no section has")
            return None
        patterns, conditions = result
        return [clip(pattern, within) for pattern in patterns or ["/"]], conditions, args[1:]
    if args and (args[0].startswith("/") or args[0] == "*") and node.word != "rewrite_target":
        if args[0].startswith("/") and node.word in ("redir", "respond") and len(args) == 1:
            return [within], [], args
        return [clip(read_path(args[0]), within)], [], args[1:]
    return [within], [], args


def clip(pattern: str, within: str) -> str:
    """A pattern without a path is that of the block around it."""
    return within if pattern == "/" else pattern


def read_path(text: str) -> str:
    if text in ("*", "/*"):
        return "/"
    if text.startswith("*"):
        return text if re.fullmatch(r"\*\.[\w.-]+", text) else expression(re.escape(text[1:]) + "$")
    if text.endswith("*") and "*" not in text[:-1]:
        return text[:-1].rstrip("/") or "/"
    if "*" in text:
        return expression("^" + re.escape(text).replace(r"\*", "[^/]*") + "$")
    return "=" + text


def rows_of(node: Node) -> list:
    """The conditions of a matcher, in a block or in its line."""
    if node.block is not None:
        return node.block
    return [Node(node.args[0], node.args[1:], node.place)] if node.args else []


def read_matcher(node: Node):
    """Returns the patterns and conditions of a named matcher; None: no section can say it."""
    rows = rows_of(node)
    patterns, conditions = [], []
    for row in rows:
        if row.word == "path":
            patterns += [read_path(arg) for arg in row.args]
        elif row.word == "path_regexp":
            patterns.append(expression(row.args[-1]))
        elif row.word == "method":
            conditions.append("method " + " ".join(row.args))
        elif row.word == "header" and len(row.args) == 2 and "*" not in row.args[1].strip("*"):
            value = re.escape(row.args[1].strip("*"))
            start, end = ("" if row.args[1].startswith("*") else "^"), ("" if row.args[1].endswith("*") else "$")
            conditions.append(f"header {row.args[0]}" + (f" ~{start}{value}{end}" if value else ""))
        elif row.word == "header_regexp" and len(row.args) >= 2:
            conditions.append(f"header {row.args[-2]} {expression(row.args[-1])}")
        elif row.word == "query" and row.args:
            name, _, value = row.args[0].partition("=")
            conditions.append(f"query {name}" + (f" ={value}" if value not in ("", "*") else ""))
        elif row.word == "not" and row.args[:1] == ["path"]:
            excluded = "".join(f"(?!{not_path(arg)})" for arg in row.args[1:])
            patterns.append(f"~^{excluded}/")
        elif row.word in ("remote_ip", "client_ip") or (row.word == "not" and row.args[:1] in (
                ["remote_ip"], ["client_ip"])):
            return None
        else:
            return None
    return patterns, conditions


def not_path(text: str) -> str:
    return body_of(read_path(text))


def networks_of(site, node: Node):
    """The networks of a matcher `@name remote_ip ...`, and whether it is negated; None: it is another one."""
    matcher = site.matchers.get(node.args[0]) if node.args else None
    if matcher is None:
        return None
    rows = rows_of(matcher)
    paths = [read_path(arg) for row in rows if row.word == "path" for arg in row.args]
    rows = [row for row in rows if row.word != "path"]
    if len(rows) != 1:
        return None
    words = [rows[0].word, *rows[0].args]
    negated = words[0] == "not"
    words = words[negated:]
    if words[:1] not in (["remote_ip"], ["client_ip"]):
        return None
    private = "192.168.0.0/16 172.16.0.0/12 10.0.0.0/8 127.0.0.0/8 fd00::/8 ::1"
    return negated, " ".join(words[1:]).replace("private_ranges", private), paths
