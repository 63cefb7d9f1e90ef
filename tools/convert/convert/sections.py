# SPDX-License-Identifier: Apache-2.0
"""Makes the sections of a host from its scopes, in the order in which this server looks for the first one that fits."""

import re

from .model import CONTENTS, GATEWAYS, KINDS, Host, Scope
from .patterns import covers, is_prefix, overlaps, without
from .report import Report


def make_sections(host: Host, report: Report, common: Scope) -> list:
    """Returns (name, rows) of all sections behind [HOST], in the order in which they are written."""
    made = []
    if host.tls:
        made.append(("TLS", host.tls))
    made += host.sections
    made += make_rules(host, report, common)
    for kind in KINDS:
        made += make_settings(host, report, kind, common)
    made += make_contents(host, report)
    made += make_headers(host)
    return [(name, tuple(rows)) for name, rows in made]


def all_scopes(host: Host) -> list:
    return [*host.scopes, host.base]


def served_scopes(host: Host) -> list:
    """Those for which settings matter: redirects and rules come before them."""
    return [scope for scope in all_scopes(host) if not scope.is_redirected() and not scope.is_refused()]


def prune(entries: list, common=None) -> list:
    """Leaves out (pattern, value, scope) of which an entry behind it says the same: None means no section. `common` is
    the value of the section for all hosts."""
    kept: list = [("/", common)] if common else []
    for entry in reversed(entries):
        if is_needed(entry, kept):
            kept.insert(0, entry)
    return [entry for entry in kept if len(entry) == 3]


def drop_exemptions(entries: list, report: Report) -> list:
    """Leaves out expressions that only exempt a part of the paths of a prefix: what holds for that holds for all."""
    kept = []
    for number, (pattern, value, scope) in enumerate(entries):
        behind = [other for other, rows, _ in entries[number + 1:] if rows and overlaps(pattern, other)]
        if value or pattern[0] in "=/" or not behind or any(not is_prefix(other) or other == "/" for other in behind):
            kept.append((pattern, value, scope))
        elif scope.node:
            report.note(scope.node, f"what holds for {behind[0]} holds for paths of both, too")
    return kept


def is_needed(entry: tuple, kept: list) -> bool:
    pattern, value, *_ = entry
    for other, behind, *_ in kept:
        if not overlaps(other, pattern):
            continue
        if behind != value:
            return True
        if covers(other, pattern):
            return False
    return bool(value)


def with_match(pattern: str, rows) -> tuple:
    return tuple(rows) if pattern == "/" else (("Match", pattern), *rows)


def make_settings(host: Host, report: Report, kind: str, common: Scope) -> list:
    name, off = KINDS[kind]
    scopes = [scope for scope in served_scopes(host) if scope is not host.base and not (
        scope.is_open and kind not in scope.settings)] + [host.base]
    entries = [(scope.pattern, scope.get(kind) or None, scope) for scope in scopes]
    behind = common.settings.get(kind)
    if kind == "limits":
        host.keys += [row for row in host.base.settings.get("limits", ()) if row not in (behind or ())]
        entries = entries[:-1] + [("/", None, host.base)]
        entries = [(pattern, None if value == host.base.get("limits") else value, scope)
                   for pattern, value, scope in entries]
        behind = None
    made = []
    for pattern, value, _ in drop_exemptions(prune(entries, behind), report):
        rows = tuple(row for row in value if row[0] != "On") if value else off
        if rows is not None:
            made.append((name, with_match(pattern, rows)))
    return made


def make_rules(host: Host, report: Report, common: Scope) -> list:
    scopes = [scope for scope in all_scopes(host) if scope is host.base or not (
        scope.is_redirected() or scope.is_open and scope.rules is None)]
    entries = [(scope.pattern, scope.list_rules() or None, scope) for scope in scopes]
    made = []
    for pattern, rules, _ in drop_exemptions(prune(entries, common.rules), report):
        for rows in rules or [(("Action", "allow"),)]:
            made.append(("RULES", with_match(pattern, rows)))
    return made


# ── headers: all sections that match apply, and the first one that has a name wins ──


def make_headers(host: Host) -> list:
    made = []
    scopes = served_scopes(host)
    for number, scope in enumerate(scopes):
        if not scope.headers:
            continue
        inner = scopes[:number] if scope is not host.base else []
        excluded = [other.pattern for other in inner if overlaps(scope.pattern, other.pattern)
                    and not other.is_open and not set(scope.headers) <= set(other.headers or {})]
        pattern = without(scope.pattern, excluded)
        for on_errors in (False, True):
            rows = [row for row in scope.headers.values() if row[3] == on_errors]
            if rows:
                keys = [(key, f"{header} {value}" if header else value) for key, header, value, _ in order_rows(rows)]
                made.append(("HEADERS", with_match(pattern, keys + [("OnErrors", "On")] * on_errors)))
    return made


def order_rows(rows: list) -> list:
    return sorted(rows, key=lambda row: ("Remove", "Expires", "Set", "Add").index(row[0]))


def order_rows(rows: list) -> list:
    return sorted(rows, key=lambda row: ("Remove", "Expires", "Set", "Add").index(row[0]))


def is_answer(scope: Scope) -> bool:
    """Whether its paths are redirected, or refused: headers make no difference worth an expression."""
    return scope.content is not None and scope.content.kind == "redirect"


# ── content: redirects and fixed answers come first, then the plugins in their order ──


def make_contents(host: Host, report: Report) -> list:
    entries = [(scope.pattern, scope.content, scope) for scope in all_scopes(host)]
    entries = [(pattern, content, scope) for pattern, content, scope in entries
               if content and (content.kind == "respond" or not scope.is_refused())]
    made, handlers = [], make_handlers(entries)
    if handlers:
        made.append(("HANDLERS", handlers))
    for number, (pattern, content, scope) in enumerate(entries):
        name, order, _ = CONTENTS[content.kind]
        earlier = [each for each in entries[:number] if overlaps(pattern, each[0])]
        if any(covers(each[0], pattern) for each in earlier) and content.node:
            if content.kind == "files":
                continue
            report.note(content.node, f"no request for {pattern} gets here: what comes before it answers them")
            continue
        if order == 0:
            later = [each[0] for each in earlier if not comes_first(each[1], content)]
            made.append((name, exclude(pattern, content, later)))
        elif content.kind == "files":
            made += make_alias(pattern, content, scope, entries[number + 1:], report)
        else:
            made.append((name, with_match(pattern, content.rows)))
    return made


def comes_first(one, other) -> bool:
    """Whether the content of an earlier scope is asked first by itself: sections of one kind are in order."""
    return one.kind == other.kind or (one.kind, other.kind) == ("redirect", "respond")


def exclude(pattern: str, content, others: list) -> tuple:
    rows = list(content.rows)
    if rows and rows[0][0] == "Match":
        return tuple(rows)
    if not others:
        return (("Match", pattern), *rows) if content.kind == "redirect" or pattern != "/" else tuple(rows)
    narrow = without(pattern, others)
    if content.kind == "redirect" and is_prefix(pattern):
        target = dict(rows)["To"]
        if dict(rows).get("KeepPath") != "Off":
            narrow = narrow.removesuffix("(/|$)") + "(.*)$"
            rows = [(key, target.rstrip("/") + "/$1" if key == "To" and pattern == "/" else value + "$1"
                     if key == "To" else value) for key, value in rows]
    return (("Match", narrow), *rows)


def make_alias(pattern: str, content, scope, behind: list, report: Report) -> list:
    folder = dict(content.rows).get("To")
    gateway = any(other.kind in GATEWAYS and overlaps(pattern, behind_pattern) for behind_pattern, other, _ in behind)
    if folder and pattern == "/":
        return []
    if folder and (pattern.startswith("=") or is_prefix(pattern)):
        return [("ALIAS", (("Match", pattern), ("To", folder)))]
    if folder and content.node:
        report.skip(content.node, "a folder for the paths of an expression is not possible: they are below Root")
        return []
    root = scope.value("root")
    own = scope.values.get("own_files") and scope.value("files_first")
    if (gateway or own) and root and is_prefix(pattern) and pattern != "/":
        return [("ALIAS", (("Match", pattern), ("To", root.rstrip("/") + pattern)))]
    return []


def needs_handler(entry: tuple, behind: list) -> bool:
    """Whether a plugin that is asked earlier would take paths of this entry for one behind it."""
    pattern, content, scope = entry
    if CONTENTS[content.kind][1] == 0:
        return False
    if content.kind == "files" and (is_prefix(pattern) or (dict(content.rows).get("To") and pattern[0] == "=")):
        return False
    return any(0 < CONTENTS[other.kind][1] < CONTENTS[content.kind][1] and overlaps(pattern, there) and
               not (other.kind == "proxy" and scope.value("files_first")) for there, other, _ in behind)


def make_handlers(entries: list) -> tuple:
    needed = [number for number, entry in enumerate(entries) if needs_handler(entry, entries[number + 1:])]
    rows = []
    for number, (pattern, content, _) in enumerate(entries):
        plugin = CONTENTS[content.kind][2]
        if not plugin or not needed or number > needed[-1]:
            continue
        if number in needed or any(overlaps(pattern, entries[n][0]) for n in needed if n > number):
            rows.append(("Match", f"{pattern} {plugin}"))
    return tuple(rows)


def escape_dollars(text: str) -> str:
    """A target without captures: a dollar before a digit would be one."""
    return re.sub(r"\$(?=\d)", "%24", text)
