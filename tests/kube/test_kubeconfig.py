"""Kubeconfigs: what is understood, and what is refused with which words."""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prfaas.kube.connection import KubeconfigInvalid, in_cluster_connection
from prfaas.kube.kubeconfig import connection_of, load_kubeconfig, parse_kubeconfig

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def document(*, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    }


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_token_and_an_inline_authority_are_read() -> None:
    found = connection_of(
        document(user={"token": "abc"}, cluster={"certificate-authority-data": encoded(PEM)})
    )
    assert (found.server, found.token, found.ca, found.namespace) == (
        "https://10.0.0.1:6443",
        "abc",
        PEM,
        "team",
    )


def test_secrets_are_not_in_the_repr() -> None:
    found = connection_of(document(user={"token": "abc-secret", "password": "pw-secret", "username": "me"}))
    assert "secret" not in repr(found)


def test_files_are_found_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(PEM)
    (tmp_path / "token").write_text("from-file")
    config = tmp_path / "config"
    config.write_text(str(document(user={"tokenFile": "token"}, cluster={"certificate-authority": "ca.pem"})))
    found = load_kubeconfig(config)
    assert found.ca == PEM
    assert Path(found.token_file) == tmp_path / "token"


@pytest.mark.parametrize(
    ("user", "cluster"),
    [
        ({"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}, {}),
        ({"client-certificate": "a", "client-key": "b"}, {}),
        ({}, {"certificate-authority": "/etc/ssl/ca.pem"}),
    ],
)
def test_a_kubeconfig_from_a_secret_may_not_name_files(user: dict[str, Any], cluster: dict[str, Any]) -> None:
    with pytest.raises(KubeconfigInvalid, match="names a file; a kubeconfig in a Secret must hold"):
        load_kubeconfig(document(user=user, cluster=cluster))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"current-context": "other"}, "names context 'other', which is not among its contexts"),
        ({"current-context": "", "contexts": []}, "has 0 contexts and no current-context"),
        ({"current-context": "", "contexts": ["main"]}, "has 0 contexts and no current-context"),
        ({"current-context": "", "contexts": {"main": {}}}, "has 0 contexts and no current-context"),
        ({"users": []}, "names user 'u', which is not among its users"),
        ({"clusters": [{"name": "c", "cluster": {"server": "10.0.0.1"}}]}, "is not an https URL"),
        ({"clusters": [{"name": "c", "cluster": {"server": "https://[::1"}}]}, "is not an https URL"),
        ({"users": [{"name": "u", "user": {"auth-provider": {"name": "gcp"}}}]}, "auth-provider"),
        ({"users": [{"name": "u", "user": {"client-key-data": encoded(PEM)}}]}, "only one of client cert"),
        ({"users": [{"name": "u", "user": {"client-certificate-data": "%%"}}]}, "not base64 of PEM"),
        ({"users": [{"name": "u", "user": {"client-certificate-data": 7}}]}, "not base64 of PEM"),
        ({"users": [{"name": "u", "user": {"client-certificate-data": encoded("x")}}]}, "no PEM block"),
        ({"users": [{"name": "u", "user": {"exec": {"args": []}}}]}, "names no command"),
    ],
)
def test_what_cannot_work_is_refused_with_words_that_help(change: dict[str, Any], words: str) -> None:
    with pytest.raises(KubeconfigInvalid, match=words):
        connection_of({**document(), **change})


def test_a_password_in_the_address_is_refused_without_being_repeated() -> None:
    with pytest.raises(KubeconfigInvalid, match="write both under users") as refused:
        connection_of(document(cluster={"server": "https://me:pw-secret@10.0.0.1"}))
    assert "pw-secret" not in str(refused.value)


def test_data_wrapped_over_lines_is_read() -> None:
    wrapped = "\n".join(encoded(PEM)[i : i + 20] for i in range(0, len(encoded(PEM)), 20))
    assert connection_of(document(cluster={"certificate-authority-data": wrapped})).ca == PEM


@pytest.mark.parametrize("text", ["", "just words", "- a\n- list", "a: [", "\x00", "kind: Pod"])
def test_what_is_no_kubeconfig_is_called_so(text: str) -> None:
    with pytest.raises(KubeconfigInvalid):
        parse_kubeconfig(text)


def test_the_only_context_is_taken_without_a_current_one() -> None:
    assert connection_of({**document(), "current-context": ""}).server == "https://10.0.0.1:6443"


def test_a_pod_finds_its_own_api_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for name, text in (("token", "t"), ("ca.crt", PEM), ("namespace", "prfaas-system\n")):
        (tmp_path / name).write_text(text)
    found = in_cluster_connection(tmp_path)
    assert (found.server, found.namespace, found.ca) == ("https://[fd00::1]:443", "prfaas-system", PEM)
    assert found.token_file == str(tmp_path / "token")


def test_outside_a_pod_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(KubeconfigInvalid, match="name a kubeconfig"):
        in_cluster_connection()


def test_a_plain_kubeconfig_does_not_import_the_kubernetes_library() -> None:
    code = (
        "import sys, prfaas.fleet, prfaas.kube.informer, prfaas.kube.lease, prfaas.kube.events\n"
        "from prfaas.kube.kubeconfig import connection_of\n"
        f"connection_of({document(user={'token': 'x'})!r})\n"
        "sys.exit('kubernetes' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
