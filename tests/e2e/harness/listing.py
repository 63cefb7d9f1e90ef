# SPDX-License-Identifier: Apache-2.0
"""Pages of listings: a parser, folders with names of all kinds, and servers that list them."""

import base64
import hashlib
import html.parser
import os
import re
import urllib.parse

from .server import section

OLD = 1_600_000_000

# Any bytes but "/" and NUL; each file has its own content, so that a link shows where it leads.
HOSTILE = [
    b"<b>bold<|b>.txt",
    b"<script>alert(1)<|script>.txt",
    b"\"double\" and 'single'.txt",
    b"a&amp;b &lt; c.txt",
    b"new\nline.txt",
    b"tab\tand\rreturn.txt",
    b"escape\x1b[31m and \x01.txt",
    b"invalid \xff\xfe \xc3.txt",
    b"100%.txt",
    b"%2e%2e%2fname.txt",
    b"q?x=1#y.txt",
    b"  spaces  at both ends.txt ",
    b"back\\slash.txt",
    b"javascript:alert(1).txt",
    b"data:text,x.txt",
    b"semi;colon,=@!$*()~+.txt",
    b"right-to-left \xe2\x80\xaegpj.txt",
    "Überraschung 日本語 🐒.txt".encode(),
    b"x" * 251 + b".txt",
]


def fill(folder, files, mtime=OLD):
    """Writes files (name to content; a name that ends with a slash is a folder), each an hour older than the last."""
    folder = os.fsencode(folder)
    os.makedirs(folder, exist_ok=True)
    for n, (name, content) in enumerate(files.items()):
        path = os.path.join(folder, os.fsencode(name))
        if path.endswith(b"/"):
            os.makedirs(path, exist_ok=True)
        else:
            with open(path, "wb") as file:
                file.write(content)
        os.utime(path, (mtime - 3600 * n,) * 2)


def configure(keys=None, *more, host=None, root=None):
    """The file of a host that lists its folders; `more` are the keys of further sections, which come first."""
    own = section("HOST", {"ServerName": "localhost", "DocumentRoot": root, **(host or {})})
    return {"sites/default": own + "".join(section("DIRLISTING", each) for each in (*more, keys or {}))}


class Page(html.parser.HTMLParser):
    """`rows` are those of the entries: (text, href, size, date); `crumbs`, `scripts` and `styles` texts."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.crumbs, self.links, self.scripts, self.styles = [], [], [], [], []
        self.title, self.stack, self.in_entries, self.row, self.pre = "", [], False, None, None
        self.orders = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in ("meta", "link", "input"):
            self.stack.append(tag)
        if tag == "tbody":
            self.in_entries = attributes.get("id") == "entries"
        elif tag == "th":
            self.orders.append(attributes.get("aria-sort"))
        elif tag == "tr" and self.in_entries:
            self.row = []
        elif tag == "td" and self.row is not None:
            self.row.append("")
        elif tag == "a":
            self.links.append(attributes["href"])
            if self.row is not None:
                self.href = attributes["href"]
        elif tag == "pre":
            self.pre = ""
        elif tag == "script":
            self.scripts.append("")
        elif tag == "style":
            self.styles.append("")

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag
        if tag == "tr" and self.row is not None:
            self.rows.append((self.row[0], self.href, *self.row[1:]))
            self.row = None

    def handle_data(self, data):
        within = self.stack[-1] if self.stack else ""
        if within == "script":
            self.scripts[-1] += data
        elif within == "style":
            self.styles[-1] += data
        elif within == "pre":
            self.pre += data
        elif within == "title":
            self.title += data
        elif "li" in self.stack:
            self.crumbs.append(data)
        elif self.row:
            self.row[-1] += data

    @property
    def names(self):
        return [text for text, *_ in self.rows]

    @property
    def targets(self):
        """The bytes that the links of the entries name."""
        return [urllib.parse.unquote_to_bytes(href) for _, href, *_ in self.rows]

    def policy(self):
        """The digests that a Content-Security-Policy needs: those of styles, those of scripts."""
        return tuple([digest(code) for code in codes] for codes in (self.styles, self.scripts))


def digest(code):
    return "'sha256-" + base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() + "'"


def read_policy(value):
    """Directive to sources."""
    return {name: sources.split() for name, _, sources in (part.strip().partition(" ") for part in value.split(";"))}


def external(text):
    """URLs with a host in a page, except for names of XML namespaces."""
    return [url for url in re.findall(r"""(?:https?:)?//[\w.-]+[^\s"'<>)]*""", text) if "www.w3.org" not in url]
