# SPDX-License-Identifier: Apache-2.0
"""Words of nginx for the server as a whole."""

import os

from . import nginx_settings as settings
from .nginx_context import Context, skip_unknown
from .nginx_words import SERVER_ROWS
from .report import Node


def convert_main(context: Context, node: Node) -> None:
    config, value = context.config, node.args[0] if node.args else ""
    if node.word in SERVER_ROWS:
        key, make = SERVER_ROWS[node.word]
        made = make(value)
        if made and key == "TrustedProxies":
            config.server.append((key, made))
        elif made and not (key == "PidFile" and os.path.dirname(made) == "/run"):
            config.set_server(key, made)
        elif node.word == "worker_processes":
            context.drop(node, "there is a worker for each processor")
        elif key == "PidFile":
            context.drop(node, "the service manager knows the process; PidFile of [SERVER] writes its number")
        else:
            context.skip(node, f"{value} is no value of {key}")
    elif node.word == "user":
        config.set_server("User", value)
        if len(node.args) > 1:
            config.set_server("Group", node.args[1])
    elif node.word == "error_log":
        settings.set_error_log(context, node)
    elif node.word == "server_tokens":
        if value == "off":
            config.set_server("HideVersion", "On")
        else:
            context.drop(node, "the version is in the header Server")
    elif node.word == "default_type":
        context.http.values["default_type"] = ""
        if value == "application/octet-stream":
            context.drop(node, "it is the default")
        else:
            config.set_server("DefaultMimeType", value)
    elif node.word == "log_format":
        context.formats[value] = "".join(arg for arg in node.args[1:] if not arg.startswith("escape="))
        context.drop(node, "each log has its Format")
    elif node.word == "map" and node.args == ["$http_upgrade", "$connection_upgrade"]:
        context.drop(Node(node.text(), [], node.place), "WebSocket works without a line")
    elif node.word in ("ssl_protocols", "ssl_certificate", "ssl_certificate_key", "ssl_client_certificate"):
        context.http.values.setdefault("tls", []).append(node)  # of all servers
    elif node.word == "limit_req_zone":
        settings.read_zone(context, node)
    elif node.word == "limit_conn_zone":
        context.drop(node, "each section [CLIENT_LIMITS] counts")
    elif not settings.convert_setting(context, context.http, node):
        skip_unknown(context, node)
