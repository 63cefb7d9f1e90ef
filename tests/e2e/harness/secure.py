# SPDX-License-Identifier: Apache-2.0
"""A server behind TLS with its own certificate, for tests of what is carried by it."""

from .certificates import Authority

SITE = """[HOST]
    ServerName localhost
    DocumentRoot {root}
[TLS]
    Certificate {certificate}
    CertificateKey {key}
"""


def serve_secure(serve, folder, root, settings=None, text=""):
    """The server, with more lines of its site; `server.ca` is the CA that its clients trust."""
    ca = Authority(folder / "authority")
    pair = ca.make("localhost", "localhost", "IP:127.0.0.1")
    site = SITE.format(root=root, certificate=pair.cert, key=pair.key) + text
    server = serve({"Listen": "127.0.0.1:0 tls", **(settings or {})}, config={"sites/default": site})
    server.ca = ca
    return server
