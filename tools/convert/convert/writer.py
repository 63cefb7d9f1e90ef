# SPDX-License-Identifier: Apache-2.0
"""Prints a configuration as one file of this server, and above it what the report says."""

import re

from .model import Config, Host, Scope
from .report import Report
from .sections import make_sections

COLUMN = 20  # of values
ONE_WORD = {"Realm", "DocumentRoot", "Root", "Users", "Groups", "AccessLog", "ErrorLog", "Certificate",
            "CertificateKey", "CertificateChain", "ClientCA", "FlagFile", "PidFile", "TlsCA"}
SHORT = {  # section: the key of [HOST] and the key of the section that it means
    "PROXY": ("Proxy", "To"),
    "FASTCGI": ("PHP", "To"),
    "AUTH": ("Login", "Users"),
    "DIRLISTING": ("Listing", "Enabled"),
    "COMPRESS": ("Compress", None),
    "TLS": ("Redirect", "Redirect"),
}
SERVER_ORDER = ("Listen", "User", "Group", "Workers", "PidFile", "ErrorLog", "LogLevel")
HOST_ORDER = ("Listener", "DocumentRoot", "Indexfile", "TryFiles", "Redirect")


def quote(text: str) -> str:
    """A word of a value: in quotes if it has blanks or could be taken for something else."""
    if text and not re.search(r'[\s"#]', text) and "${" not in text:
        return text
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${").replace("\n", " ")
    return f'"{inner}"'


def line(key: str, value: str) -> str:
    value = quote(value) if key in ONE_WORD else value
    return f"    {key} {value}" if len(key) >= COLUMN - 5 else f"    {key:<{COLUMN - 4}}{value}"


def shorten(name: str, rows: tuple):
    """The line of [HOST] that means a section with one key; None: it takes the section."""
    if name not in SHORT:
        return None
    key, own = SHORT[name]
    rows = list(rows)
    match = rows.pop(0)[1] + " " if rows and rows[0][0] == "Match" else ""
    if name == "COMPRESS":
        return (key, match + {(): "On", (("Codings", "none"),): "Off"}[tuple(rows)]) if tuple(rows) in (
            (), (("Codings", "none"),)) else None
    if len(rows) != 1 or rows[0][0] != own or match.startswith("~") and " " in match.rstrip():
        return None
    return key, match + rows[0][1]


def write_host(host: Host, report: Report, bound: list, common: Scope) -> list:
    sections, shorts, long_names, rest = make_sections(host, report, common), [], set(), []
    for name, rows in sections:
        short = None if name in long_names else shorten(name, rows)
        if short:
            shorts.append(short)
        else:
            long_names.add(name)
            rest.append((name, rows))
    order = {key: number for number, key in enumerate(HOST_ORDER)}
    keys = sorted(host.keys, key=lambda row: order.get(row[0], len(order)))
    out = [f"[HOST{''.join(' ' + name for name in host.names)}]"]
    for listen in bound:
        out.append(line("Listener", listen))
    out += [line("Root" if key == "DocumentRoot" else key, value) for key, value in keys]
    out += [line(*short) for short in shorts]
    return out + [text for section in rest for text in write_section(*section)]


def write_section(name: str, rows) -> list:
    return ["", f"[{name}]", *(line(*row) for row in rows)]


def write_config(config: Config, report: Report, title: str) -> str:
    rows = sorted(config.server, key=lambda row: SERVER_ORDER.index(row[0]) if row[0] in SERVER_ORDER else 99)
    out = ["[SERVER]", *(line(*row) for row in rows)]
    for section in config.sections:
        out += write_section(*section)
    sets = {frozenset(bare_address(each) for each in host.listens) for host in config.hosts}
    for host in config.hosts:
        bound = list(dict.fromkeys(bare_address(each) for each in host.listens)) if len(sets) > 1 else []
        out += ["", "", *write_host(host, report, bound, config.common)]
    return "\n".join([*write_report(report, title), *out]) + "\n"


def bare_address(listen: str) -> str:
    """The address of a line Listen, as Listener wants it."""
    return listen.split()[0]


def write_report(report: Report, title: str) -> list:
    out = [f"# Converted from {title} by monkey convert."]
    for heading, rows in (("Not converted:", report.skipped), ("Different here:", report.notes)):
        if rows:
            out += ["#", f"# {heading}"]
            out += [f"# {place}: {clean(text)}" for place, text in sorted(rows)]
    if report.unneeded:
        out += ["#", "# Needs no line here:"]
        groups: dict = {}
        for word, place, why in sorted(report.unneeded, key=lambda row: row[1]):
            groups.setdefault((word, why), []).append(str(place))
        out += [f"# {', '.join(dict.fromkeys(places))}: {clean(word)}: {clean(why)}"
                for (word, why), places in groups.items()]
    return out + [""]


def clean(text: str) -> str:
    """Text for one line of a comment, in ASCII and UTF-8 without control bytes."""
    return "".join(c if c.isprintable() else "?" for c in text)
