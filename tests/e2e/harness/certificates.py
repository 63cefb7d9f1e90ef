# SPDX-License-Identifier: Apache-2.0
"""A certificate authority for the tests, and clients that trust it. The command `openssl` makes responses of OCSP."""

import datetime
import hashlib
import ipaddress
import pathlib
import re
import select
import socket
import ssl
import subprocess

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .client import Client
from .messages import octets

KINDS = {
    "ec": lambda: ec.generate_private_key(ec.SECP256R1()),
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "weak": lambda: rsa.generate_private_key(65537, 1024),
}
ATTRIBUTES = {"CN": NameOID.COMMON_NAME, "O": NameOID.ORGANIZATION_NAME}
USES = {"clientAuth": ExtendedKeyUsageOID.CLIENT_AUTH, "OCSPSigning": ExtendedKeyUsageOID.OCSP_SIGNING}
PEM = serialization.Encoding.PEM


def openssl(*args, data=None):
    """Runs the command; returns what it printed."""
    done = subprocess.run(["openssl", *map(str, args)], input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def read_name(text):
    """A distinguished name, written as the command does: /O=Clients/CN=alice."""
    pairs = [row.partition("=") for row in text.split("/")[1:]]
    return x509.Name([x509.NameAttribute(ATTRIBUTES[key], value) for key, _, value in pairs])


def read_alternative(name):
    if name.startswith("IP:"):
        return x509.IPAddress(ipaddress.ip_address(name[3:]))
    return x509.DNSName(name)


class Pair:
    """A certificate and its key, as files."""

    def __init__(self, folder, name):
        self.cert, self.key = folder / f"{name}.pem", folder / f"{name}.key"

    @property
    def der(self):
        return ssl.PEM_cert_to_DER_cert(self.cert.read_text())

    @property
    def fingerprint(self):
        return hashlib.sha256(self.der).hexdigest()

    def keys(self, **rest):
        """Of a section [TLS]."""
        return {"Certificate": self.cert, "CertificateKey": self.key, **rest}


class Authority(Pair):
    """Makes certificates. Its chain has one step, so that a leaf is signed by the root itself."""

    def __init__(self, folder, name="ca"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        super().__init__(self.folder, name)
        self.signing_key, self.name = KINDS["ec"](), read_name(f"/CN=Test {name}")
        now = datetime.datetime.utcnow()
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        extensions = [
            (x509.BasicConstraints(ca=True, path_length=None), True),
            (usage, True),
            (x509.SubjectKeyIdentifier.from_public_key(self.signing_key.public_key()), False),
        ]
        self.write(self, self.signing_key, self.name, now, now + datetime.timedelta(days=30), extensions)

    def make(self, name, *names, kind="ec", subject=None, start=None, end="20491231235959Z", use=None):
        """A certificate for these names (or "IP:..."); `start` and `end` as YYYYMMDDHHMMSSZ; `use` as extended ones."""
        pair = Pair(self.folder, name)  # authorities have the same name, so that a key tells which one has signed
        extensions = [(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.signing_key.public_key()), False)]
        if names:
            extensions.append((x509.SubjectAlternativeName(list(map(read_alternative, names))), False))
        if use:
            extensions.append((x509.ExtendedKeyUsage([USES[use]]), False))
        times = [datetime.datetime.strptime(text, "%Y%m%d%H%M%SZ") for text in (start or "20200101000000Z", end)]
        self.write(pair, KINDS[kind](), read_name(subject or f"/CN={name}"), *times, extensions)
        return pair

    def write(self, pair, key, subject, start, end, extensions):
        """Signs a certificate, and writes it and its key."""
        builder = x509.CertificateBuilder(
            self.name, subject, key.public_key(), x509.random_serial_number(), start, end
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        pair.cert.write_bytes(builder.sign(self.signing_key, hashes.SHA256()).public_bytes(PEM))
        pair.key.write_bytes(key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        pair.key.chmod(0o600)

    def staple(self, pair, end=None, *, begin=None, status="V", signer=None, bare=False):
        """The file of a response of OCSP about that number of this authority: good, or of a `status` R or None, from
        `begin` until `end` (YYYYMMDDHHMMSSZ), signed by the authority or another pair, and `bare` of its certificate.
        """
        signer = signer or self
        index, request, response = self.folder / "ocsp.txt", self.folder / "ocsp.req", pair.cert.with_suffix(".ocsp")
        number = openssl("x509", "-in", pair.cert, "-noout", "-serial").decode().strip().partition("=")[2]
        revoked = "240101000000Z" if status == "R" else ""
        row = f"{status}\t491231235959Z\t{revoked}\t{number}\tunknown\t/CN=any\n"
        index.write_text(row if status else row.replace(number, "7FFFFFFF").replace("None", "V"))
        openssl("ocsp", "-issuer", self.cert, "-serial", f"0x{number}", "-no_nonce", "-reqout", request)
        openssl(
            "ocsp", "-index", index, "-CA", self.cert, "-rsigner", signer.cert, "-rkey", signer.key, "-reqin", request,
            "-respout", response, "-ndays", 7, *(["-resp_no_certs"] if bare else []),
        )  # fmt: skip
        if begin or end:  # the command counts in minutes, and forwards
            response.write_bytes(change_times(response.read_bytes(), begin, end, signer.key))
        return response

    def context(self, *, alpn=None, pair=None, check=True, **versions):
        """A client's; `minimum_version` and the like may be set."""
        context = ssl.create_default_context(cafile=self.cert)
        context.check_hostname = False  # the tests look themselves
        context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)  # an end without close_notify is an error
        if not check:
            context.verify_mode = ssl.CERT_NONE
        if alpn:
            context.set_alpn_protocols(alpn)
        if pair:
            context.load_cert_chain(pair.cert, pair.key)
        for key, value in versions.items():
            setattr(context, key, value)
        return context


def der(tag, *parts):
    """A value in DER."""
    content = b"".join(parts)
    size = len(content)
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag]) + (bytes([size]) if size < 128 else bytes([128 | len(octets)]) + octets) + content


def parts_of(value):
    """The values within one in DER."""
    found, at = [], 0
    while at < len(value):
        more = value[at + 1] & 127 if value[at + 1] & 128 else 0
        size = int.from_bytes(value[at + 2 : at + 2 + more], "big") if more else value[at + 1]
        found.append((value[at : (end := at + 2 + more + size)], value[at + 2 + more : end]))
        at = end
    return found


def change_times(response, begin, end, key):
    """A response of OCSP with another thisUpdate or nextUpdate, signed anew."""
    (status, _), (_, wrapped) = parts_of(parts_of(response)[0][1])
    (kind, _), (_, basic) = parts_of(parts_of(wrapped)[0][1])
    (data, _), (algorithm, _), _, *rest = parts_of(parts_of(basic)[0][1])
    for at, text in zip(list(re.finditer(rb"\x18\x0f\d{14}Z", data))[-2:], (begin, end)):
        if text:
            data = data[: at.start() + 2] + text.encode() + data[at.end() :]
    signature = der(3, b"\0", openssl("dgst", "-sha256", "-sign", key, data=data))
    basic = der(0x30, data, algorithm, signature, *(whole for whole, _ in rest))
    return der(0x30, status, der(0xA0, der(0x30, kind, der(4, basic))))


class TlsClient(Client):
    """A connection whose bytes are encrypted; `first` is sent before, `do_handshake` runs the handshake."""

    def __init__(self, address, context, name="localhost", *, session=None, first=b"", do_handshake=True, **rest):
        super().__init__(address, **rest)
        if first:
            self.sock.sendall(first)
        self.plain, self.unsent = self.sock, b""
        try:
            self.sock = context.wrap_socket(
                self.plain,
                server_hostname=name,
                session=session,
                do_handshake_on_connect=do_handshake,
                suppress_ragged_eofs=False,
            )
        except OSError:
            self.plain.close()
            raise

    def send_in_background(self, data):
        """Sends while the test receives, since two threads must not use one connection of OpenSSL at once."""
        self.unsent = memoryview(octets(data))

    def receive(self, most):
        if not self.unsent:
            return self.sock.recv(most)
        timeout = self.sock.gettimeout()
        self.sock.settimeout(0)
        try:
            while (data := self.receive_now(most)) is None:
                writers = [self.sock] if self.unsent else []
                if not self.send_now() and not any(select.select([self.sock], writers, [], timeout)):
                    raise TimeoutError("nothing to receive, and no room to send")
            return data
        finally:
            self.sock.settimeout(timeout)

    def receive_now(self, most):
        """What is there; None: nothing yet."""
        try:
            return self.sock.recv(most)
        except ssl.SSLWantReadError:
            return None

    def send_now(self):
        """Sends what there is room for, and returns how much; what the server has closed takes no more."""
        try:
            sent = self.sock.send(self.unsent[:16384]) if self.unsent else 0
        except ssl.SSLWantWriteError:
            return 0
        except (BrokenPipeError, ConnectionResetError):
            sent = len(self.unsent)
        self.unsent = self.unsent[sent:]
        return sent

    @property
    def fingerprint(self):
        return hashlib.sha256(self.sock.getpeercert(True)).hexdigest()


class Bytes:
    """A TLS client in memory, whose records the test carries itself in both directions."""

    def __init__(self, context, name="localhost"):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.object = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)

    def step(self):
        """Continues with the handshake: whether it is done, and what is to be sent."""
        try:
            self.object.do_handshake()
            return True, self.outgoing.read()
        except ssl.SSLWantReadError:
            return False, self.outgoing.read()

    def write(self, data):
        self.object.write(data)
        return self.outgoing.read()


def alert_of(address, hello, timeout=30.0):
    """The description of the alert that answers these bytes; None when there is none."""
    with socket.create_connection(address, timeout) as sock:
        sock.sendall(hello)
        answer = b""
        try:
            while piece := sock.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass
    return answer[6] if answer[:1] == b"\x15" else None
