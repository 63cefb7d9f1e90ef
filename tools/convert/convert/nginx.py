# SPDX-License-Identifier: Apache-2.0
"""A configuration of nginx: the blocks main, http and upstream, and what includes mean."""

import os

from . import nginx_settings as settings
from .merge import merge_hosts
from .model import Config, Scope
from .nginx_context import Context, full_path, is_plain, skip_unknown
from .nginx_main import convert_main
from .nginx_server import convert_server
from .nginx_syntax import parse
from .nginx_words import BALANCE, HASH_BY
from .reader import Reader
from .report import Node, Place, Report
from .units import duration

HOSTS = "block server"
PARTS = ("mime.types", "fastcgi_params", "fastcgi.conf", "scgi_params", "fastcgi-php.conf", "proxy_params",
         "uwsgi_params", "ssl-dhparams.pem", "options-ssl-nginx.conf")
BUILT_IN = {
    "mime.types": "the usual types are built in", "fastcgi_params": "variables of FastCGI are sent",
    "fastcgi.conf": "variables of FastCGI are sent", "scgi_params": "variables of SCGI are sent",
    "fastcgi-php.conf": "scripts that do not exist are 404, and variables of FastCGI are sent",
    "proxy_params": "Host is that of the client, and X-Forwarded-For, X-Real-IP and others are always sent",
    "options-ssl-nginx.conf": "the profile intermediate is the default: TLS 1.2 and 1.3 with forward secrecy",
}


def read(path: str, report: Report) -> list:
    """The nodes of a file, with those of the files that it includes in their place."""
    reader = Reader(parse, report)
    reader.open.append(os.path.realpath(path))
    return expand(reader.read(path, Place(path, 1)), reader, os.path.dirname(os.path.abspath(path)), report)


def expand(nodes: list, reader: Reader, base: str, report: Report) -> list:
    made = []
    for node in nodes:
        if node.word == "include" and len(node.args) == 1 and node.block is None:
            report.lines += 1
            made += include(node, reader, base, report)
            continue
        if node.block is not None:
            node.block = expand(node.block, reader, base, report)
        made.append(node)
    return made


def include(node: Node, reader: Reader, base: str, report: Report) -> list:
    name = os.path.basename(node.args[0])
    if name in BUILT_IN:
        report.drop(Node(f"include {name}", [], node.place), BUILT_IN[name])
        return []
    return reader.include_expanded(node.args[0], base, node, lambda found: expand(found, reader, base, report))


def convert(nodes: list, path: str, config: Config, report: Report) -> None:
    context = Context(report, config)
    top = flatten(nodes, context)
    for node in top:
        if node.word == "upstream":
            read_upstream(context, node)
    for node in top:
        if node.word not in ("server", "upstream"):
            convert_main(context, node)
    servers = [node for node in top if node.word == "server"]
    for node in servers:
        convert_server(context, node)
    merge_hosts(config)
    settings.make_common(context)
    write_upstreams(context)


def flatten(nodes: list, context: Context) -> list:
    """The directives of the blocks http and events, and those around them."""
    made = []
    for node in nodes:
        if node.word == "http" and node.block is not None:
            made += flatten(node.block, context)
        elif node.word == "events" and node.block is not None:
            made += node.block
        elif node.word == "location":  # of a file that is included in a server
            server = next((each for each in made if each.word == "server" and each.args == ["-"]), None)
            if server is None:
                server = Node("server", ["-"], node.place, [])
                made.append(server)
            server.block.append(node)
        else:
            made.append(node)
    return made


# ── groups of servers ──


def read_upstream(context: Context, node: Node) -> None:
    if len(node.args) != 1 or node.block is None:
        context.skip(node, "a group has a name and a block")
        return
    servers, rows = [], []
    for each in node.block:
        if each.word == "server" and each.args:
            servers.append(read_upstream_server(context, each, rows))
        elif each.word in BALANCE:
            rows += BALANCE[each.word] or (("Balance", "LeastLoaded"),)
        elif each.word == "hash" and each.args and each.args[0] in HASH_BY:
            rows += [("Balance", "Hash"), ("HashBy", HASH_BY[each.args[0]])]
        else:
            skip_unknown(context, each)
    context.upstreams[node.args[0]] = (node, servers, rows)


def read_upstream_server(context: Context, node: Node, rows: list) -> str:
    address, options = node.args[0], []
    for option in node.args[1:]:
        name, _, value = option.partition("=")
        if name in ("weight", "backup", "down"):
            options.append(option)
        elif name == "max_fails":
            add_once(rows, "EjectAfter", value)
        elif name == "fail_timeout" and value.strip("s") == "0":
            add_once(rows, "EjectAfter", "0")
        elif name == "fail_timeout" and duration(value, 300):
            add_once(rows, "EjectTime", duration(value, 300))
        elif name == "max_conns":
            add_once(rows, "MaxConnections", value)
        elif name == "slow_start" and duration(value):
            add_once(rows, "SlowStart", duration(value))
        elif name != "resolve":
            context.skip(node, f"the option {option} is not known here")
    return " ".join([address, *options])


def add_once(rows: list, key: str, value: str) -> None:
    if key not in dict(rows):
        rows.append((key, value))


def write_upstreams(context: Context) -> None:
    for name, (node, servers, rows) in context.upstreams.items():
        if name not in context.used_upstreams:
            if not is_plain(context.upstreams[name]):
                context.note(node, f"no host of this file uses the group {name}")
            continue
        rows = [row for row in rows if row != ("Balance", "LeastLoaded")] if ("Balance", "LeastLoaded") in rows else (
            rows if "Balance" in dict(rows) or len(servers) == 1 else [("Balance", "RoundRobin"), *rows])
        made = [("Name", name), *(("Server", server) for server in servers), *rows]
        context.config.sections.append(("UPSTREAM", tuple(made)))


def root_of(scope: Scope) -> str:
    return full_path(scope.value("root", ""))
