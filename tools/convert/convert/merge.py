# SPDX-License-Identifier: Apache-2.0
"""Several blocks that are one host here: one for http that redirects to https, and those with the same names."""

import re

from .model import Config, Content, Host


def is_to_https(host: Host) -> bool:
    return bool(host.base.values.get("to_https"))


def merge_hosts(config: Config) -> None:
    """A block that only redirects to https becomes `Redirect https` of the host with the same names."""
    hosts = config.hosts
    for host in list(hosts):
        split_moved(config, host)
    for host in [each for each in hosts if is_to_https(each)]:
        rest = []
        for name in host.names:
            secure = find_secure(hosts, host, name)
            if secure is None:
                rest.append(name)
                continue
            secure.https_only = True
            secure.listens += [each for each in host.listens if each not in secure.listens]
        if rest or not host.names:
            host.names, host.https_only = rest, True
        elif host is not None:
            hosts.remove(host)
    for host in hosts:
        if host.https_only:
            set_https(host)
    merge_same_names(config)
    hosts.sort(key=lambda host: not host.first)
    add_listens(config)


def split_moved(config: Config, host: Host) -> None:
    """A block of several names that redirects to https for one of them is two: for that name, and for the others."""
    name = host.key("Redirect").removeprefix("https://")
    if not host.base.values.get("moved") or name not in host.names or find_secure(config.hosts, host, name) is None:
        return
    if any(find_secure(config.hosts, host, other) for other in host.names if other != name):
        return  # those are redirected to another name
    host.names.remove(name)
    find_secure(config.hosts, host, name).https_only = True
    secure = find_secure(config.hosts, host, name)
    secure.listens += [each for each in host.listens if each not in secure.listens]
    if not host.names:
        config.hosts.remove(host)


def find_secure(hosts: list, host: Host, name: str):
    return next((each for each in hosts if each is not host and name in each.names and
                 any(" tls" in listen for listen in each.listens)), None)


def set_https(host: Host) -> None:
    if host.tls:
        host.tls.append(("Redirect", "https"))
    else:
        host.tls = [("Redirect", "https")]
    if is_to_https(host) and host.base.content is None and not host.key("DocumentRoot") and not host.scopes:
        host.base.content = Content("respond", (("Status", "404"),))  # a host without files


def merge_same_names(config: Config) -> None:
    """Blocks for http and https with the same names and the same content are one host."""
    made: list = []
    for host in config.hosts:
        same = next((each for each in made if each.names and each.names == host.names and
                     describe(each) == describe(host)), None)
        if same is None:
            made.append(host)
            continue
        same.listens += [each for each in host.listens if each not in same.listens]
        same.tls = same.tls or host.tls
        same.first |= host.first
    config.hosts[:] = made


def describe(host: Host) -> str:
    scopes = [(scope.pattern, scope.content and (scope.content.kind, scope.content.rows), scope.settings,
               scope.headers, scope.rules) for scope in (*host.scopes, host.base)]
    return repr((host.keys, host.sections, scopes))


def add_listens(config: Config) -> None:
    """The lines Listen of all hosts. One address is either with TLS or without it."""
    listens: dict = {}
    for host in config.hosts:
        for listen in host.listens:
            address = listen.split()[0]
            if address not in listens or (" tls" in listen and " tls" not in listens[address]):
                listens[address] = listen
    for host in config.hosts:
        host.listens = list(dict.fromkeys(listens[listen.split()[0]] for listen in host.listens))
    config.server[:0] = [("Listen", listen) for listen in sorted(listens.values(), key=sort_key)]


def sort_key(listen: str) -> tuple:
    port = re.search(r"(\d+)(?: |$)", listen)
    return ("tls" not in listen, int(port[1]) if port else 0, listen)
