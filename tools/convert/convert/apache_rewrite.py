# SPDX-License-Identifier: Apache-2.0
"""Rules of mod_rewrite: the usual ones as what they are for, others as [REDIRECT], [REWRITE] and [RULES]."""

import re

from .model import Content, Host, Scope
from .patterns import expression, is_prefix

ALL = ("^(.*)$", "^/?(.*)$", "^/?(.*)", "(.*)", ".*", "^", "^/(.*)$", "^.*$", "^(.*)", "^/(.*)", "/?(.*)", "(.*)$")
HOST_HEADER = "%{HTTP_HOST}", "%{SERVER_NAME}"
URI = re.compile(r"(https?)://([^/]+)(/.*)?|(/.*)")


def convert_rewrites(server) -> None:
    for conditions, rule, scope in server.rewrites:
        convert_rule(server, conditions, rule, scope)
    for node in server.conditions:
        server.report.skip(node, "no RewriteRule is behind it")


def read_flags(text: str) -> dict:
    flags = {}
    for flag in text.strip("[]").split(","):
        key, _, value = flag.strip().partition("=")
        flags[key.upper()] = value
    return flags


def convert_rule(server, conditions: list, rule, scope: Scope) -> None:
    if len(rule.args) < 2:
        server.report.skip(rule, "a rule has an expression and a target")
        return
    pattern, target = rule.args[:2]
    flags = read_flags(rule.args[2]) if len(rule.args) > 2 else {}
    tests = [" ".join(node.args) for node in conditions]
    code = flags.get("R", flags.get("REDIRECT"))
    code = {"permanent": "301", "": "302", "temp": "302"}.get(code, code)
    if code is None and target.startswith(("http://", "https://")) and "P" not in flags:
        code = "302"
    for convert in (drop_idle, to_https, to_host, front_controller, websocket):
        if convert(server, tests, rule, scope, pattern, target, code):
            return
    when = [make_condition(test) for test in tests]
    if None in when:
        server.report.skip(rule, "conditions of When are for methods, parameters and headers: "
                           f"{tests[when.index(None)]} is none")
        for node in conditions:
            server.report.skip(node, "its RewriteRule is not converted")
        return
    make_section(server, rule, scope, pattern, target, flags, code, when)


# ── rules that are for something: each returns whether it is this one ──


def drop_idle(server, tests, rule, scope, pattern, target, code) -> bool:
    if target == "-" and not tests and re.fullmatch(r"\^?/?index\\?\.\w+\$", pattern):
        server.report.drop(rule, "a file that exists is sent")
        return True
    return False


def to_https(server, tests, rule, scope, pattern, target, code) -> bool:
    insecure = re.compile(r"%\{HTTPS\} (?:!=?on|=?off|\^off\$?)(?: \[\w+\])?|%\{SERVER_PORT\} \^?!?(?:80|443)\$?|"
                          r"%\{HTTP:X-Forwarded-Proto\} !=?https|%\{REQUEST_SCHEME\} (?:=|\^)?http\$?")
    name = re.compile(r"%\{(?:SERVER_NAME|HTTP_HOST)\} =?\^?([\w.\\-]+)\$?(?: \[[\w,]+\])?")
    match = re.fullmatch(r"https://(%\{\w+\}|[\w.:-]+)(/?)(\$1|%\{REQUEST_URI\}|\$0|/\$1)?", target)
    if not match or pattern not in ALL or code not in ("301", "302", "308", "307"):
        return False
    own = match[1] in HOST_HEADER or match[1] in server.host.names[:1]
    secure = any("tls" in each for each in server.host.listens)
    rest = [test for test in tests if not insecure.fullmatch(test)]
    names = [name.fullmatch(test.replace(" [OR]", "")) for test in rest]
    if not own or not all(names) or (secure and len(rest) == len(tests)):
        return False
    if match[1] not in HOST_HEADER and len(server.host.names) > 1:
        server.host.set_key("Redirect", f"https://{match[1]}")
        server.host.base.values["moved"] = True
        return True
    server.host.base.values["to_https"] = not secure
    server.host.https_only = True
    return True


def to_host(server, tests, rule, scope, pattern, target, code) -> bool:
    """`RewriteCond %{HTTP_HOST} ^www\\.example\\.org$`: the name is a host that redirects."""
    match = re.fullmatch(r"(https?)://(%\{\w+\}|%1|[\w.:-]+)(/?)(\$1|%\{REQUEST_URI\}|\$0)?", target)
    tests = [test for test in tests if not test.startswith("%{HTTPS}")]
    if not match or pattern not in ALL or code not in ("301", "308", "302") or len(tests) != 1:
        return False
    name = re.fullmatch(r"%\{HTTP_HOST\} (!?)\^?([\w.\\()*+-]+)\$?(?: \[[\w,]+\])?", tests[0])
    if not name:
        return False
    text = name[2].replace("\\", "")
    generic = text in ("www.(.*)", "www.(.+)")
    target_name = match[2]
    if generic and target_name == "%1" and not name[1]:
        moved = [each for each in server.host.names if each.startswith("www.")]
        target_name = moved[0][4:] if moved else ""
    elif name[1] and (generic or text in ("www.", "www", target_name)):  # all names but one
        target_name = f"www.{server.host.names[0].removeprefix('www.')}" if "%{" in target_name and server.host.names \
            else target_name
        moved = [each for each in server.host.names if each != target_name] or [target_name.removeprefix("www.")]
    else:
        moved = [text] if re.fullmatch(r"[\w.-]+", text) and not name[1] else []
    if not moved or not target_name or "%" in target_name:
        return False
    other = Host(moved, rule.place, listens=list(server.host.listens), base=Scope(node=rule))
    other.set_key("Redirect", f"{match[1]}://{target_name}")
    other.base.values["moved"] = True
    server.host.names = [each for each in server.host.names if each not in moved]
    server.config.hosts.append(other)
    return True


def front_controller(server, tests, rule, scope, pattern, target, code) -> bool:
    missing = re.compile(r"%\{(?:DOCUMENT_ROOT\}(?:/)?%\{)?REQUEST_(?:FILENAME|URI)\}\s+!-[fdls]")
    files = [test for test in tests if missing.match(test)]
    match = re.fullmatch(r"/?([\w./-]+\.\w+)(?:/\$1|\?.*)?", target)
    if code is not None or not match or not files or len(files) < len(tests) or scope.pattern != "/":
        return False
    if pattern not in (*ALL, ".", "^.*$", "^/.*$", "^(.+)$"):
        return False
    if "?" in target:
        server.report.note(rule, f"the script has no parameters {target.partition('?')[2]}: it finds the path in "
                           "REQUEST_URI")
    server.host.set_key("TryFiles", f"$path $path/ /{match[1].lstrip('/')}")
    server.host.base.values["files_first"] = True
    return True


def websocket(server, tests, rule, scope, pattern, target, code) -> bool:
    if target.startswith(("ws://", "wss://")):
        server.report.drop(rule, "WebSocket works without a line")
        return True
    return False


# ── others ──


def make_condition(test: str):
    """A value of When; None: there is none."""
    match = re.fullmatch(r"%\{(\w+)(?::([\w-]+))?\} (!?)(\S+)(?: \[([\w,]+)\])?", test)
    if not match or "OR" in (match[5] or "").upper().split(","):
        return None
    variable, name, negated, text, flags = match.groups()
    mark = "~*" if "NC" in (flags or "").upper().split(",") else "~"
    if variable == "REQUEST_METHOD" and re.fullmatch(r"\^?\(?[A-Z|]+\)?\$?", text):
        return f"{negated}method {text.strip('^$()').replace('|', ' ')}"
    if variable in ("HTTP_USER_AGENT", "HTTP_REFERER", "HTTP_COOKIE", "HTTP_ACCEPT"):
        name = "-".join(part.capitalize() for part in variable[5:].split("_"))
    if variable == "HTTP" or (variable.startswith("HTTP_") and name and variable != "HTTP_HOST"):
        return f"{negated}header {name} {mark}{expression(text)[1:] if expression(text)[0] == '~' else text}"
    match = re.fullmatch(r"\^?(?:\(\^\|&\))?(\w+)=([\w-]+)(?:\(&\|\$\))?\$?", text)
    if variable == "QUERY_STRING" and match:
        return f"{negated}query {match[1]} ={match[2]}"
    return None


def make_section(server, rule, scope, pattern, target, flags, code, when) -> None:
    conditions = [("When", each) for each in when]
    match = rooted(pattern, scope, "NC" in flags or "NOCASE" in flags)
    sections = server.host.sections
    if "F" in flags or code == "403":
        place = (("Match", match),) if pattern not in ALL else ()
        sections.append(("RULES", (*place, *conditions, ("Action", "deny"))))
        return
    if "G" in flags or code == "410":
        sections.append(("RULES", (("Match", match), *conditions, ("Action", "deny 410"))))
        return
    if target == "-":
        server.report.skip(rule, "a rule that changes nothing has no counterpart: put narrower sections first")
        return
    target = target.replace("%{REQUEST_URI}", "$0") if pattern in ALL else target
    if "%" in re.sub(r"%\{(?:HTTP_HOST|SERVER_NAME)\}", "", target):
        server.report.skip(rule, "a target has captures of its expression, and no variables")
        return
    if "%{" in target and server.host.names:
        target = re.sub(r"%\{(?:HTTP_HOST|SERVER_NAME)\}", server.host.names[0], target)
    if "P" in flags:
        pass_on(server, rule, scope, pattern, target)
        return
    if not URI.fullmatch(target):
        target = (scope.pattern.rstrip("/") if is_prefix(scope.pattern) else "") + "/" + target.lstrip("/")
    query = target.endswith("?") or "QSD" in flags
    rows = [("Match", match), ("To", target.removesuffix("?")), *conditions]
    if code is not None:
        if code not in ("301", "302", "303", "307", "308"):
            server.report.skip(rule, f"{code} is no status of a redirect")
            return
        rows += [("Status", code)] * (code != "301") + [("KeepPath", "Off")] * bool(query)
        sections.append(("REDIRECT", tuple(rows)))
        return
    if "?" in target and "QSA" not in flags or query:
        rows.append(("KeepQuery", "Off"))
    if "END" in flags or "L" in flags or "LAST" in flags:
        rows.append(("Last", "On"))
    sections.append(("REWRITE", tuple(rows)))


def rooted(pattern: str, scope: Scope, ignore_case: bool) -> str:
    """The expression for whole paths: within a folder rules see them without what leads to it."""
    prefix = re.escape(scope.pattern.rstrip("/")) if is_prefix(scope.pattern) else ""
    if pattern.startswith("^") and not pattern.startswith(("^/", "^(/", "^(?:/")):
        pattern = f"^{prefix}/{pattern[1:]}"
    return expression(pattern, ignore_case)


def pass_on(server, rule, scope, pattern, target) -> None:
    match = re.fullmatch(r"(https?|fcgi)://([^/$]+)(/[^$]*)?\$?[01]?", target)
    prefix = re.fullmatch(r"\^(/[\w./-]*?)/?\(\.\*\)\$?", pattern)
    if not match or match[1] == "fcgi" or not (prefix or pattern in ALL):
        server.report.skip(rule, "To of [PROXY] has no captures")
        return
    path, to = (prefix[1] if prefix else "") or "/", (match[3] or "/").rstrip("/")
    one = Scope(path, server.host.base, rule, is_open=True)
    rows = [("To", f"{match[1]}://{match[2]}" + (to if to != path.rstrip("/") else ""))]
    if path != "/" and not to:
        rows.append(("StripPrefix", "On"))
    one.content = Content("proxy", tuple(rows), rule)
    server.handled.append(one)
