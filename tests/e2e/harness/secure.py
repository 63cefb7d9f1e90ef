# SPDX-License-Identifier: Apache-2.0
"""A server behind TLS with a certificate of its own, for tests of what is carried by it."""

import subprocess

SITE = """[HOST]
    ServerName localhost
    DocumentRoot {root}
[TLS]
    Certificate {certificate}
    CertificateKey {key}
"""


def self_signed(folder):
    """Paths of a certificate and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    options = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split()
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = ["openssl", "req", *options, *names, "-out", certificate, "-keyout", key]
    subprocess.run(command, check=True, capture_output=True)
    key.chmod(0o600)
    return certificate, key


def serve_secure(serve, folder, root, settings=None):
    certificate, key = self_signed(folder)
    site = SITE.format(root=root, certificate=certificate, key=key)
    return serve({"Listen": "127.0.0.1:0 tls", **(settings or {})}, config={"sites/default": site})
