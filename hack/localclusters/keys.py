"""Certificate authorities, keys and kubeconfigs of one cluster."""

import base64
import datetime
import ipaddress
import json
import os
import socket
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOST = "127.0.0.1"
USERS = {
    "admin": ("kubernetes-admin", ["system:masters"]),
    # One strong identity for all controllers: with an identity each, start waits 4 s for their tokens.
    "kube-controller-manager": ("system:kube-controller-manager", ["system:masters"]),
    "kube-scheduler": ("system:kube-scheduler", []),
}
"""Client certificates by file name: common name and groups."""


class Authority:
    """A certificate authority that writes what it issues into one directory as NAME.crt and NAME.key."""

    def __init__(self, directory: Path, name: str) -> None:
        """Make the authority and write its own certificate and key."""
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(self._name, self._key.public_key(), extensions=[])
        self._write(name, certificate, self._key)

    def issue(
        self, name: str, *, common_name: str, groups: list[str] | None = None, hosts: list[str] | None = None
    ) -> None:
        """Issue a client certificate, also good for serving when `hosts` are given."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups or []]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        extensions: list[x509.ExtensionType] = []
        if hosts:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
            extensions.append(x509.SubjectAlternativeName([_general_name(host) for host in hosts]))
        extensions.append(x509.ExtendedKeyUsage(usages))
        self._write(name, self._sign(subject, key.public_key(), extensions=extensions), key)

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, extensions: list[x509.ExtensionType]
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        is_authority = subject == self._name
        # Python 3.13 verifies strictly and wants both key identifiers.
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=365))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
            .add_extension(_key_usage(is_authority=is_authority), critical=True)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        (self._directory / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        write_private(self._directory / f"{name}.key", _private_pem(key))


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def make_keys(directory: Path, *, service_cidr: str) -> None:
    """All authorities and certificates of one control plane: cluster, etcd, front proxy, service accounts."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    cluster, etcd, front_proxy = (Authority(directory, n) for n in ("ca", "etcd-ca", "front-proxy-ca"))
    first_service = str(next(ipaddress.ip_network(service_cidr).hosts()))
    names = [
        "kubernetes" + suffix for suffix in ("", ".default", ".default.svc", ".default.svc.cluster.local")
    ]
    local = ["localhost", HOST]
    cluster.issue(
        "apiserver", common_name="kube-apiserver", hosts=[*local, socket.gethostname(), first_service, *names]
    )
    for user, (common_name, groups) in USERS.items():
        cluster.issue(user, common_name=common_name, groups=groups)
    etcd.issue("etcd", common_name="etcd", hosts=local)
    etcd.issue("apiserver-etcd", common_name="kube-apiserver-etcd-client")
    front_proxy.issue("front-proxy", common_name="front-proxy-client")
    account_key = ec.generate_private_key(ec.SECP256R1())
    (directory / "sa.pub").write_bytes(
        account_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    write_private(directory / "sa.key", _private_pem(account_key))


def write_kubeconfig(path: Path, *, keys: Path, cluster: str, server: str, user: str) -> None:
    """A self-contained kubeconfig (as JSON, which is YAML) for one of USERS."""
    data = {
        name: base64.b64encode((keys / file).read_bytes()).decode()
        for name, file in (("ca", "ca.crt"), ("cert", f"{user}.crt"), ("key", f"{user}.key"))
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": cluster,
        "clusters": [
            {"name": cluster, "cluster": {"server": server, "certificate-authority-data": data["ca"]}}
        ],
        "users": [
            {
                "name": user,
                "user": {"client-certificate-data": data["cert"], "client-key-data": data["key"]},
            }
        ],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
    }
    write_private(path, json.dumps(config, indent=1).encode())
