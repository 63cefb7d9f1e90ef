# SPDX-License-Identifier: Apache-2.0
"""A configuration of Apache: includes, the main server and its virtual hosts."""

import os
import re

from .apache_scopes import Server, convert_nodes, finish_server
from .apache_syntax import parse
from .apache_words import SERVER_ROWS
from .merge import merge_hosts
from .model import Config, Host, Scope
from .reader import Reader
from .report import Node, Place, Report

HOSTS = "VirtualHost or DocumentRoot"
ROOT = "/etc/apache2"  # of paths in the configuration, without ServerRoot
WRAPPERS = ("ifmodule", "ifdefine", "ifversion", "iffile")
ENVIRONMENT = {"APACHE_LOG_DIR": "/var/log/apache2", "APACHE_RUN_DIR": "/run/apache2", "APACHE_RUN_USER": "www-data",
               "APACHE_RUN_GROUP": "www-data", "APACHE_PID_FILE": "/run/apache2/apache2.pid",
               "APACHE_LOCK_DIR": "/var/lock/apache2"}


def read(path: str, report: Report) -> list:
    reader = Reader(parse, report)
    reader.open.append(os.path.realpath(path))
    nodes = reader.read(path, Place(path, 1))
    root = next((node.args[0] for node in nodes if node.word.lower() == "serverroot" and node.args), None)
    base = root if root and os.path.isdir(root) else os.path.dirname(os.path.abspath(path))
    return expand(nodes, reader, base, report, dict(ENVIRONMENT))


def expand(nodes: list, reader: Reader, base: str, report: Report, variables: dict) -> list:
    """Puts included files, and what sections for modules have, in their place; and the values of variables."""
    made = []
    for node in nodes:
        word = node.word.lower()
        node.args = [re.sub(r"\$\{(\w+)\}", lambda found: variables.get(found[1], found[0]), arg) for arg in node.args]
        if word == "define" and len(node.args) == 2:
            variables[node.args[0]] = node.args[1]
        if word in ("include", "includeoptional") and node.args:
            report.lines += 1
            if word == "includeoptional" and not os.path.exists(os.path.join(base, node.args[0])) and \
                    "*" not in node.args[0]:
                report.drop(Node(node.text(), [], node.place), "no file has such a name")
                continue
            made += reader.include_expanded(node.args[0], base, node,
                                            lambda found: expand(found, reader, base, report, variables))
        elif word in WRAPPERS and node.block is not None:
            report.lines += 1
            if node.args[:1] and node.args[0].startswith("!"):
                report.lines += sum(each.count() for each in node.block)
                report.drop(Node(f"{node.word} {node.args[0]}", [], node.place), "the module is taken as loaded")
            else:
                made += expand(node.block, reader, base, report, variables)
        else:
            if node.block is not None:
                node.block = expand(node.block, reader, base, report, variables)
            made.append(node)
    return made


def convert(nodes: list, path: str, config: Config, report: Report) -> None:
    hosts = [node for node in nodes if node.word.lower() == "virtualhost"]
    main, listens = [], []
    for node in nodes:
        if node in hosts:
            continue
        if node.word.lower() == "listen":
            listens.append(node)
        elif not convert_server_word(node, config, report):
            main.append(node)
    if not hosts and not any(node.word.lower() in ("documentroot", "proxypass") for node in main):
        hosts = [Node("VirtualHost", ["*:80"], Place(path, 1), main)] if main else []
        main = []
    elif not hosts:
        hosts = [Node("VirtualHost", [listen_address(node) for node in listens] or ["*:80"], main[0].place, main)]
        main = []
    for node in hosts:
        convert_host(node, main, config, report)
    if hosts:
        for node in listens:
            report.drop(Node("Listen", [], node.place), "each host has its ports")
    merge_hosts(config)


def listen_address(node: Node) -> str:
    value = node.args[0] if node.args else "80"
    return f"*:{value}" if value.isdigit() else value


def convert_server_word(node: Node, config: Config, report: Report) -> bool:
    """Returns whether the directive is one of the server as a whole."""
    word, value = node.word.lower(), node.args[0] if node.args else ""
    if word in SERVER_ROWS and node.block is None:
        key, make = SERVER_ROWS[word]
        made = make(value)
        if made is None:
            report.skip(node, f"{value} is no value of {key}")
        elif (key, made) not in (("KeepAlive", "On"), ("KeepAliveTimeout", "5s")):
            config.set_server(key, made)
        else:
            report.drop(node, "it is the default")
    elif word == "servertokens":
        if value.lower() in ("prod", "productonly"):
            config.set_server("HideVersion", "On")
        else:
            report.drop(node, "the version is in the header Server")
    elif word == "pidfile":
        report.drop(node, "the service manager knows the process; PidFile of [SERVER] writes its number")
    elif word == "loglevel":
        report.drop(node, "LogLevel of [SERVER] is info")
    elif word == "errorlog":
        config.set_server("ErrorLog", value if value.startswith(("/", "stderr")) else os.path.join(ROOT, value))
    elif word == "directory" and node.args[:1] in (["/"], ["/usr/share"]):
        report.drop(Node(f"Directory {node.args[0]}", [], node.place),
                    "files below Root, and of [ALIAS], are served alone")
    else:
        return False
    return True


def convert_host(node: Node, main: list, config: Config, report: Report) -> None:
    words = {each.word.lower(): each for each in node.block or ()}
    secure = words.get("sslengine") is not None and words["sslengine"].args[:1] and \
        words["sslengine"].args[0].lower() == "on"
    host = Host([], node.place, base=Scope(node=node))
    for address in node.args or ["*:80"]:
        name, _, port = address.rpartition(":") if not address.endswith("]") and ":" in address else (address, "", "80")
        port = "80" if port == "*" else port
        name = "" if name in ("*", "_default_", "0.0.0.0", "[::]") else name + ":"
        host.listens.append(f"{name}{port}" + " tls" * bool(secure or port == "443"))
    host.listens = list(dict.fromkeys(host.listens))
    server = Server(host, config, report)
    own = {each.word.lower() for each in node.block or ()}
    inherited = [each for each in main if each.word.lower() not in own or each.block is not None]
    convert_nodes(server, [*inherited, *(node.block or [])], host.base)
    finish_server(server)
    config.hosts.append(host)
