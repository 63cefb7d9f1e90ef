# SPDX-License-Identifier: Apache-2.0
"""A Caddyfile: sites with their addresses, snippets, imports and global options."""

import copy
import os
import re

from .caddy_directives import convert_site
from .caddy_syntax import parse
from .caddy_words import GLOBAL
from .model import Config, Host, Scope
from .reader import DEPTH_MAX, Reader
from .report import ConvertError, Node, Place, Report

HOSTS = "site"
ADDRESS = re.compile(r"(?:(https?)://)?(\[[0-9a-fA-F:.]+\]|[^:/\s]*)(?::(\d+))?(/.*)?")
CERTIFICATES = ("Caddy gets certificates itself; here a program such as certbot does: write its files as Certificate "
                "and CertificateKey in [TLS] of the host. Until then the server makes a self-signed one")


def read(path: str, report: Report) -> list:
    reader = Reader(parse, report)
    reader.open.append(os.path.realpath(path))
    nodes = reader.read(path, Place(path, 1))
    if nodes and not is_site(nodes):  # one site without braces
        first = nodes[0]
        nodes = [Node(first.word, first.args, first.place, nodes[1:])]
    snippets = {node.word[1:-1]: node for node in nodes if re.fullmatch(r"\([\w.-]+\)", node.word)}
    rest = [node for node in nodes if not re.fullmatch(r"\([\w.-]+\)", node.word)]
    report.lines += sum(node.count() for node in snippets.values())
    return expand(rest, Imports(reader, snippets, report), os.path.dirname(os.path.abspath(path)), 0)


def is_site(nodes: list) -> bool:
    return any(node.block is not None and (node.word in ("", "import") or not node.args or "." in node.word or
                                           ":" in node.word or node.word.endswith(",")) for node in nodes[:1]) or (
        nodes[0].block is not None or nodes[0].word == "import")


class Imports:
    def __init__(self, reader: Reader, snippets: dict, report: Report):
        self.reader, self.snippets, self.report = reader, snippets, report


def expand(nodes: list, imports: Imports, base: str, depth: int) -> list:
    """Puts snippets and files in the place of `import`."""
    if depth > DEPTH_MAX:
        raise ConvertError(nodes[0].place if nodes else Place("", 1), "snippets import each other without end")
    made = []
    for node in nodes:
        if node.word == "import" and node.args:
            imports.report.lines += 1
            name, values = node.args[0], node.args[1:]
            if name in imports.snippets:
                found = [fill(copy.deepcopy(each), values) for each in imports.snippets[name].block or ()]
                made += expand(found, imports, base, depth + 1)
            else:
                made += imports.reader.include_expanded(
                    name, base, node, lambda found: expand(found, imports, base, depth + 1))
            continue
        if node.block is not None:
            node.block = expand(node.block, imports, base, depth + 1)
        made.append(node)
    return made


def fill(node: Node, values: list) -> Node:
    """Puts the arguments of an import in the place of {args[0]}."""
    def replace(text: str) -> str:
        return re.sub(r"\{args[.\[](\d+)\]?\}", lambda found: values[int(found[1])] if int(found[1]) < len(values)
                      else "", text)

    node.word, node.args = replace(node.word), [replace(arg) for arg in node.args]
    for each in node.block or ():
        fill(each, values)
    return node


def convert(nodes: list, path: str, config: Config, report: Report) -> None:
    options = {"http": "80", "https": "443", "auto": True}
    for node in nodes:
        if node.word == "" and node.block is not None:
            for each in node.block:
                convert_option(each, config, report, options)
        elif node.block is None and node.word != "import" and len(nodes) > 1:
            report.skip(node, "a site has a block")
        else:
            convert_address(node, config, report, options)
    finish(config, report)


def convert_option(node: Node, config: Config, report: Report, options: dict) -> None:
    if node.word in ("http_port", "https_port") and node.args:
        options[node.word.partition("_")[0]] = node.args[0]
    elif node.word == "auto_https" and node.args and node.args[0] in ("off", "disable_redirects"):
        options["auto"] = node.args[0] != "off"
        options["redirects"] = False
    elif node.word == "debug":
        config.set_server("LogLevel", "debug")
    elif node.word in GLOBAL:
        report.drop(Node(node.word, [], node.place), GLOBAL[node.word])
    else:
        report.skip(node, "the option is not known here")


def convert_address(node: Node, config: Config, report: Report, options: dict) -> None:
    """A site of several addresses is one host, and one more for those that have other listeners."""
    groups: dict = {}
    for address in " ".join([node.word, *node.args]).replace(",", " ").split():
        match = ADDRESS.fullmatch(address)
        if not match or match[4] not in (None, "/"):
            report.skip(node, f"{address} is no address of a site")
            return
        listens, name = find_listens(match, options)
        groups.setdefault(listens, []).append(name)
    for listens, names in groups.items():
        host = Host([name for name in names if name], node.place, listens=list(listens), base=Scope(node=node))
        host.first = not all(names)
        if len(listens) > 1 and options.get("redirects", True):
            host.https_only = True
        convert_site(host, node.block or [], config, report)
        config.hosts.append(host)


def find_listens(match, options: dict) -> tuple:
    scheme, name, port, _ = match.groups()
    name = "" if name in ("*", "") else name
    if not options["auto"] and not scheme:
        return (port or options["https" if name else "http"],), name
    if scheme == "http" or port == options["http"] or (port and not name and not scheme and port != options["https"]):
        return (port or options["http"],), name
    if port and port != options["https"]:
        return (f"{port} tls",), name
    return (f"{options['https']} tls", options["http"]), name


def finish(config: Config, report: Report) -> None:
    listens = dict.fromkeys(each for host in config.hosts for each in host.listens)
    config.server[:0] = [("Listen", each) for each in sorted(listens, key=lambda each: (" tls" not in each, each))]
    missing = [host for host in config.hosts if any(" tls" in each for each in host.listens) and
               "Certificate" not in dict(host.tls)]
    for host in missing:
        if not host.base.values.get("internal"):
            report.note(Node("", [], host.place), CERTIFICATES)
    if missing:
        config.sections.append(("TLS", (("SelfSigned", "On"),)))
    for host in config.hosts:
        if host.https_only:
            host.tls.append(("Redirect", "https"))
    config.hosts.sort(key=lambda host: not host.first)
