"""Credentials that change while they are used (token files, exec plugins), and keys that leave no file."""

import asyncio
import datetime as dt
import stat
import sys
import tempfile
from pathlib import Path

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from prfaas.kube.client import ApiClient
from prfaas.kube.connection import Connection, ExecPlugin, KubeconfigInvalid
from prfaas.kube.credentials import EXPIRY_MARGIN_SECONDS, FILE_SECONDS, RETRY_SECONDS, Credentials
from prfaas.kube.errors import ApiError, CredentialsFailed
from prfaas.kube.exec_plugin import run_exec_plugin
from prfaas.kube.tls import tls_context

SERVER = "https://127.0.0.1:1"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_rotated_token_file_is_read_again_after_a_minute_or_a_refusal(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    clock = Clock()
    credentials = Credentials(Connection(server=SERVER, token_file=str(file)), None, clock=clock)
    assert await credentials.header() == "Bearer one"
    file.write_text("two")
    assert await credentials.header() == "Bearer one"
    clock.now += FILE_SECONDS
    assert await credentials.header() == "Bearer two"
    file.write_text("three")
    credentials.expire()
    assert await credentials.header() == "Bearer three"


async def test_a_token_file_that_vanishes_for_a_moment_does_not_lose_the_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = Credentials(Connection(server=SERVER, token_file=str(file)), None)
    await credentials.header()
    file.unlink()
    credentials.expire()
    assert await credentials.header() == "Bearer one"


async def test_a_token_file_that_never_was_is_an_error(tmp_path: Path) -> None:
    credentials = Credentials(Connection(server=SERVER, token_file=str(tmp_path / "no")), None)
    with pytest.raises(CredentialsFailed, match="cannot be read"):
        await credentials.header()


def plugin(tmp_path: Path, body: str, **config: object) -> ExecPlugin:
    script = tmp_path / "plugin"
    script.write_text(f"#!{sys.executable}\nimport os, sys, json, time\n{body}\n")
    script.chmod(0o755)
    settings = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script), **config}
    return ExecPlugin(str(script), settings)


def credential(status: dict[str, object]) -> str:
    text = orjson.dumps({"kind": "ExecCredential", "status": status}).decode()
    return f"print({text!r})"


async def test_an_exec_plugin_is_asked_once_until_its_token_is_about_to_expire(tmp_path: Path) -> None:
    count = tmp_path / "count"
    ends = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=300)).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = (
        f"open({str(count)!r}, 'a').write('x')\n"
        f"n = len(open({str(count)!r}).read())\n"
        f"print(json.dumps({{'status': {{'token': 't%d' % n, 'expirationTimestamp': {ends!r}}}}}))"
    )
    clock = Clock()
    connection = Connection(server=SERVER, exec_plugin=plugin(tmp_path, body))
    credentials = Credentials(connection, None, clock=clock)
    assert await credentials.header() == "Bearer t1"
    clock.now += 300 - EXPIRY_MARGIN_SECONDS - 10
    assert await credentials.header() == "Bearer t1"
    clock.now += 10
    assert await credentials.header() == "Bearer t2"


async def test_an_exec_plugin_that_failed_is_not_asked_again_at_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    body = f"open({str(count)!r}, 'a').write('x')\nsys.exit(1)"
    clock = Clock()
    credentials = Credentials(
        Connection(server=SERVER, exec_plugin=plugin(tmp_path, body)), None, clock=clock
    )
    for _ in range(5):
        with pytest.raises(CredentialsFailed, match="ended with 1"):
            await credentials.header()
        credentials.expire()
    assert count.read_text() == "x"
    clock.now += RETRY_SECONDS
    with pytest.raises(CredentialsFailed):
        await credentials.header()
    assert count.read_text() == "xx"


async def test_a_slow_plugin_is_run_once_for_all_and_outlives_the_request_that_began_it(
    tmp_path: Path,
) -> None:
    count = tmp_path / "count"
    body = f"open({str(count)!r}, 'a').write('x')\ntime.sleep(0.5)\n" + credential({"token": "slow"})
    credentials = Credentials(Connection(server=SERVER, exec_plugin=plugin(tmp_path, body)), None)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await credentials.header()
    assert await asyncio.gather(credentials.header(), credentials.header()) == ["Bearer slow"] * 2
    assert count.read_text() == "x"


async def test_credentials_that_cannot_be_had_are_an_error_of_the_call(tmp_path: Path) -> None:
    connection = Connection(server=SERVER, token_file=str(tmp_path / "no"))
    async with ApiClient(connection) as client:
        with pytest.raises(ApiError, match="CredentialsFailed"):
            await client.request("GET", "/version")


async def test_an_exec_plugin_sees_its_arguments_and_environment(tmp_path: Path) -> None:
    body = (
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "token = '-'.join([*sys.argv[1:], os.environ['REGION'], info['spec']['cluster']['server']])\n"
        "print(json.dumps({'status': {'token': token}}))"
    )
    made = plugin(
        tmp_path, body, args=["a", "b"], env=[{"name": "REGION", "value": "r"}], provideClusterInfo=True
    )
    found = await run_exec_plugin(made, Connection(server=SERVER))
    assert found.token == f"a-b-r-{SERVER}"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.stderr.write('no login'); sys.exit(3)", "ended with 3: no login"),
        ("print('hello')", "printed no ExecCredential"),
        (credential({}), "neither a token nor a client certificate"),
        (credential({"token": "x", "expirationTimestamp": "soon"}), "printed no ExecCredential"),
        ("time.sleep(60)", "gave no answer within"),
    ],
)
async def test_an_exec_plugin_that_fails_is_an_error_with_its_words(
    tmp_path: Path, body: str, words: str
) -> None:
    with pytest.raises(KubeconfigInvalid, match=words):
        await run_exec_plugin(plugin(tmp_path, body), Connection(server=SERVER), timeout_seconds=2)


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PATH", "PYTHONPATH", "NODE_OPTIONS", "ld_library_path"])
async def test_an_exec_plugin_may_not_change_what_its_command_runs(tmp_path: Path, name: str) -> None:
    made = plugin(tmp_path, credential({"token": "x"}), env=[{"name": name, "value": "y"}])
    with pytest.raises(KubeconfigInvalid, match="may not set the variable"):
        await run_exec_plugin(made, Connection(server=SERVER))


def key_and_certificate() -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "someone")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private.decode(), certificate.public_bytes(pem).decode()


def test_a_client_key_from_memory_is_on_disk_only_while_it_is_loaded_and_for_us_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes: list[int] = []
    original = tempfile.NamedTemporaryFile

    def watched(*args: object, **kwargs: object) -> object:
        file = original(*args, **kwargs)
        modes.append(stat.S_IMODE(Path(file.name).stat().st_mode))
        return file

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", watched)
    key, certificate = key_and_certificate()
    context = tls_context(Connection(server=SERVER, ca=certificate, client_cert=certificate, client_key=key))
    assert context is not None
    assert modes == [0o600]
    assert list(tmp_path.iterdir()) == []
    assert [c["serialNumber"] for c in context.get_ca_certs()] == ["01"]


def test_certificates_that_do_not_fit_are_refused() -> None:
    key, certificate = key_and_certificate()
    other, _ = key_and_certificate()
    with pytest.raises(KubeconfigInvalid, match="do not fit together"):
        tls_context(Connection(server=SERVER, client_cert=certificate, client_key=other))
    bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    with pytest.raises(KubeconfigInvalid, match="certificate-authority"):
        tls_context(Connection(server=SERVER, ca=bad, client_cert=certificate, client_key=key))
