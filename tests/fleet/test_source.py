"""From MemberCluster and Secret to a connection: what is taken, and what is refused with which advice."""

import base64
from typing import Any

import pytest

from prfaas.fleet.source import Refused, Source, SourceRules, secret_name, source_of
from prfaas.kube.connection import Connection
from prfaas.kube.resources import Obj

HUB = Connection(server="https://hub:443", token_file="/token")
CONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://west:6443"}}]
users: [{name: u, user: {token: abc}}]
"""


def member(connection: dict[str, Any]) -> Obj:
    return {
        "metadata": {"name": "west", "namespace": "team"},
        "spec": {"connection": connection, "namespace": "children"},
    }


def by_secret(**fields: str) -> Obj:
    return member({"kubeconfigSecretRef": {"name": "creds", **fields}})


def secret(**data: str) -> Obj:
    return {"data": {key.replace("_", "."): base64.b64encode(v.encode()).decode() for key, v in data.items()}}


def judge(obj: Obj, found: Obj | None, rules: SourceRules | None = None) -> Source | Refused:
    return source_of(obj, found, hub=HUB, rules=rules or SourceRules())


def test_in_cluster_means_the_connection_of_the_management_cluster() -> None:
    made = judge(member({"inCluster": {}}), None)
    assert isinstance(made, Source)
    assert made.connection is HUB
    assert secret_name(member({"inCluster": {}})) is None


@pytest.mark.parametrize("key", ["value", "kubeconfig", "value_yaml"])
def test_secrets_of_cluster_api_flux_and_people_work_as_they_are(key: str) -> None:
    made = judge(by_secret(), secret(**{key: CONFIG}))
    assert isinstance(made, Source)
    assert (made.connection.server, made.connection.token) == ("https://west:6443", "abc")
    assert str(secret_name(by_secret())) == "team/creds"


def test_a_named_key_is_the_only_one_looked_at() -> None:
    made = judge(by_secret(key="mine"), secret(mine=CONFIG, value="nonsense"))
    assert isinstance(made, Source)
    refused = judge(by_secret(key="mine"), secret(value=CONFIG))
    assert isinstance(refused, Refused)
    assert refused.message.startswith("Secret team/creds has no key mine (it has value).")


def test_the_fingerprint_changes_with_the_content_and_only_then() -> None:
    def fingerprint(text: str) -> str:
        made = judge(by_secret(), secret(kubeconfig=text))
        assert isinstance(made, Source)
        return made.fingerprint

    assert fingerprint(CONFIG) == fingerprint(CONFIG)
    assert fingerprint(CONFIG) != fingerprint(CONFIG.replace("abc", "abd"))


EXEC = CONFIG.replace("token: abc", "exec: {apiVersion: x, command: aws}")
INSECURE = CONFIG.replace('server: "https', 'insecure-skip-tls-verify: true, server: "https')


@pytest.mark.parametrize(
    ("obj", "found", "reason", "advice"),
    [
        (by_secret(), None, "SecretMissing", "Secret team/creds does not exist. Create it"),
        (by_secret(), {"data": None}, "KubeconfigInvalid", "it has nothing"),
        (by_secret(), {"data": {"value": "%%%"}}, "KubeconfigInvalid", "the value of value is not base64"),
        (by_secret(), secret(value="hello"), "KubeconfigInvalid", "not a kubeconfig"),
        (by_secret(), secret(value=EXEC), "ExecNotAllowed", "runs the program 'aws'"),
        (by_secret(), secret(value=INSECURE), "InsecureNotAllowed", "certificate-authority-data"),
        (by_secret(namespace="other"), secret(value=CONFIG), "SourceNotAllowed", "Move it to namespace team"),
        (member({"clusterProfileRef": {"name": "x"}}), None, "NotSupported", "connection.clusterProfileRef"),
        (member({"argoCDSecretRef": {"name": "x"}}), None, "NotSupported", "connection.argoCDSecretRef"),
    ],
)
def test_what_cannot_be_used_is_refused_with_advice(
    obj: Obj, found: Obj | None, reason: str, advice: str
) -> None:
    refused = judge(obj, found)
    assert isinstance(refused, Refused)
    assert refused.reason == reason
    assert advice in refused.message


def test_what_the_configuration_allows_is_taken() -> None:
    rules = SourceRules(exec_commands=frozenset({"aws"}), namespaces=frozenset({"other"}), insecure=True)
    assert isinstance(judge(by_secret(namespace="other"), secret(value=EXEC), rules), Source)
    assert isinstance(judge(by_secret(), secret(value=INSECURE), rules), Source)


def test_no_message_repeats_a_secret() -> None:
    for text in (CONFIG.replace("https://west:6443", "ftp://x"), CONFIG.replace("users", "losers"), "abc"):
        refused = judge(by_secret(), secret(value=text))
        assert isinstance(refused, Refused)
        assert "abc" not in refused.message
