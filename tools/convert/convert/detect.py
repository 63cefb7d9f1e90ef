# SPDX-License-Identifier: Apache-2.0
"""Finds out which server a file is for, by its name and its words."""

import importlib
import os
import re

from .report import ConvertError, Place

SERVERS = ("nginx", "caddy", "apache")
NAMES = (("caddyfile", "caddy"), (".caddy", "caddy"), ("nginx", "nginx"), ("httpd", "apache"), ("apache", "apache"))
SIGNS = (  # what a line of each server looks like
    ("apache", re.compile(r"^\s*</?[A-Za-z]+[^>]*>\s*$", re.M)),
    ("apache", re.compile(r"^\s*(?:DocumentRoot|ServerName|LoadModule|RewriteRule|ProxyPass|RewriteEngine)\s",
                          re.M | re.I)),
    ("nginx", re.compile(r"^\s*(?:(?:server|http|events)\s*|(?:location|upstream)\s[^;\n]*)\{", re.M)),
    ("nginx", re.compile(r"^\s*[a-z_]+\s[^{}\n]*;\s*(?:#.*)?$", re.M)),
    ("caddy", re.compile(r"^\s*(?:reverse_proxy|file_server|encode|php_fastcgi|respond|redir|handle|root)\b[^;\n]*$",
                         re.M)),
    ("caddy", re.compile(r"^\S[^;]*\{\s*$", re.M)),
)


def read_start(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20).decode(errors="replace")
    except OSError as error:
        raise ConvertError(Place(path, 1), f"the file cannot be read: {error.strerror}") from None


def find_server(path: str) -> str:
    name, text = os.path.basename(path).lower(), read_start(path)
    for part, server in NAMES:
        if part in name:
            return server
    for server, sign in SIGNS:
        if sign.search(text):
            return server
    raise ConvertError(Place(path, 1), "this is no configuration of nginx, Caddy or Apache that can be recognized: "
                       "write --from nginx, --from caddy or --from apache")


def find_converter(path: str, server=None):
    return importlib.import_module(f".{server or find_server(path)}", __package__)
