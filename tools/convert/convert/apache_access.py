# SPDX-License-Identifier: Apache-2.0
"""Access and logins of Apache: Require, Order, Allow and Deny as [RULES] and [AUTH]."""

import re

from .model import Scope

LOCAL = "127.0.0.0/8 ::1"


def require(server, node, scope, value):
    words = [arg.lower() for arg in node.args]
    negated = words[:1] == ["not"]
    words, args = words[negated:], node.args[negated:]
    rules = scope.values.setdefault("requirements", [])
    if words == ["all", "granted"]:
        rules.append("granted")
    elif words == ["all", "denied"]:
        rules.append("denied")
    elif words[:1] == ["ip"]:
        rules.append(("deny" if negated else "allow", " ".join(full_network(arg) for arg in args[1:])))
    elif words == ["local"]:
        rules.append(("deny" if negated else "allow", LOCAL))
    elif words[:1] == ["valid-user"]:
        scope.values.setdefault("users", [])
    elif words[:1] in (["user"], ["group"]) and not negated:
        scope.values.setdefault("users", []).append(("Require", " ".join([words[0], *args[1:]])))
    else:
        server.report.skip(node, "[RULES] has networks, and [AUTH] users and groups")
        rules.append("denied")


def full_network(text: str) -> str:
    """`10.1` as `10.1.0.0/16`."""
    parts = text.rstrip(".").split(".")
    if ":" in text or "/" in text or len(parts) == 4:
        return text
    return ".".join(parts + ["0"] * (4 - len(parts))) + f"/{8 * len(parts)}"


def allow_or_deny(server, node, scope, value):
    """Of Apache 2.2: Order, Allow from, Deny from."""
    rules = scope.values.setdefault("requirements", [])
    word = node.word.lower()
    if word == "order":
        scope.values["order"] = value.lower()
        return
    names = [arg for arg in node.args if arg.lower() != "from"]
    if [name.lower() for name in names] == ["all"]:
        if not (word == "deny" and scope.values.get("order") == "deny,allow" and any(
                isinstance(rule, tuple) for rule in rules)):
            rules.append("granted" if word == "allow" else "denied")
    elif all(re.fullmatch(r"[\d.:/a-fA-F]+", name) for name in names):
        rules.append((word, " ".join(full_network(name) for name in names)))
    else:
        server.report.skip(node, "[RULES] has networks, no names")


def finish_requirements(server, scope: Scope) -> None:
    """Rules and logins of what Require, Allow and Deny have said."""
    rules = scope.values.pop("requirements", None)
    networks = [rule for rule in rules or () if isinstance(rule, tuple)]
    if rules is not None:
        made = [(("Network", text), ("Action", action)) for action, text in
                sorted(networks, key=lambda rule: rule[0] != "deny")]
        if any(action == "allow" for action, _ in networks) or ("denied" in rules and "granted" not in rules):
            made.append((("Action", "deny"),))
        scope.rules = made
    users = scope.values.pop("users", None)
    if users is None:
        if rules and "granted" in rules and scope is not server.host.base and scope.pattern != "/":
            scope.settings["auth"] = ()
        return
    file = scope.value("auth_file")
    if not file:
        server.report.skip(scope.node, "a login needs AuthUserFile: write [AUTH] with Users")
        scope.rules = [(("Action", "deny"),)]
        return
    rows = [("Realm", scope.value("realm"))] if scope.value("realm") else []
    rows.append(("Users", file))
    if scope.value("auth_groups"):
        rows.append(("Groups", scope.value("auth_groups")))
    if any(action == "allow" for action, _ in networks) and not scope.values.get("all") or \
            scope.value("satisfy") == "any":
        users = [*users, ("Satisfy", "any")]
    scope.settings["auth"] = (*rows, *users)
