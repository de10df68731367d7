"""Environment and command line of containers.

Kubernetes documentation: "Define Environment Variables for a Container", "Downward API".

Each test runs Python code that compares what it finds with what the pod says; a difference is a failed pod.
"""

import pytest
from tests.localnode.contract import Pods, phase, waiting_reason

from prfaas.kube.resources import CONFIGMAPS, SECRETS

pytestmark = pytest.mark.cluster

COMPARE = (
    "import os, sys; want = dict(a.split('=', 1) for a in sys.argv[1:]); "
    "bad = {k: os.environ.get(k) for k, v in want.items() if os.environ.get(k) != v}; "
    "sys.exit(str(bad) if bad else 0)"
)


def field(name: str, path: str) -> dict[str, object]:
    """A variable from a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


async def test_fields_of_the_pod_are_in_the_environment(pods: Pods) -> None:
    await pods.script_succeeds(
        "fields",
        "import os, ipaddress; e = os.environ; "
        "assert e['NAME'] == 'fields' and e['LABEL'] == 'blue' and e['NODE'] == e['EXPECTED_NODE'], dict(e); "
        "assert len(e['UID']) == 36 and e['ACCOUNT'] == 'default', dict(e); "
        "assert e['NAMESPACE'] == e['EXPECTED_NAMESPACE'], dict(e); "
        "ipaddress.ip_address(e['IP']); ipaddress.ip_address(e['HOST']); assert e['IP'] in e['IPS'], dict(e)",
        labels={"colour": "blue"},
        env=[
            field("NAME", "metadata.name"),
            field("NAMESPACE", "metadata.namespace"),
            field("UID", "metadata.uid"),
            field("LABEL", "metadata.labels['colour']"),
            field("NODE", "spec.nodeName"),
            field("ACCOUNT", "spec.serviceAccountName"),
            field("IP", "status.podIP"),
            field("IPS", "status.podIPs"),
            field("HOST", "status.hostIP"),
            {"name": "EXPECTED_NODE", "value": pods.contract.node},
            {"name": "EXPECTED_NAMESPACE", "value": pods.namespace},
        ],
    )


async def test_keys_of_config_maps_and_secrets_are_in_the_environment(pods: Pods) -> None:
    await pods.put(CONFIGMAPS, "settings", {"colour": "red", "SIZE": "9"})
    await pods.put(SECRETS, "keys", {"token": "s3cret"})
    await pods.script_succeeds(
        "keys",
        COMPARE,
        args=["COLOUR=red", "TOKEN=s3cret", "C_colour=red", "C_SIZE=9", "token=s3cret", "SIZE=own"],
        envFrom=[
            {"prefix": "C_", "configMapRef": {"name": "settings"}},
            {"configMapRef": {"name": "settings"}},
            {"secretRef": {"name": "keys"}},
            {"secretRef": {"name": "not-there", "optional": True}},
        ],
        env=[
            {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "no", "optional": True}}},
            {"name": "SIZE", "value": "own"},
        ],
    )


async def test_references_are_expanded_in_values_and_arguments(pods: Pods) -> None:
    await pods.script_succeeds(
        "expansion",
        "import sys; want = ['--name=expansion', 'a-b', '$$(B)', '$$(UNKNOWN)', '$$(LATER)-x', '$(open']; "
        "sys.exit(0 if sys.argv[1:] == want else repr(sys.argv))",
        args=["--name=$(NAME)", "$(B)", "$$(B)", "$(UNKNOWN)", "$(EARLY)", "$(open"],
        env=[
            field("NAME", "metadata.name"),
            {"name": "A", "value": "a"},
            {"name": "B", "value": "$(A)-b"},
            {"name": "EARLY", "value": "$(LATER)-x"},
            {"name": "LATER", "value": "later"},
        ],
    )


async def test_the_api_server_is_in_the_environment_and_answers(pods: Pods) -> None:
    await pods.script_succeeds(
        "api",
        "import os, socket; e = os.environ; "
        "address = e['KUBERNETES_SERVICE_HOST'], int(e['KUBERNETES_SERVICE_PORT']); "
        "socket.create_connection(address, 10).close(); "
        "assert e['KUBERNETES_SERVICE_PORT'] == e['KUBERNETES_SERVICE_PORT_HTTPS']",
    )


async def test_a_missing_key_holds_the_container_until_it_is_there(pods: Pods) -> None:
    reference = {"configMapKeyRef": {"name": "late", "key": "word"}}
    await pods.create(
        "late",
        [pods.container("main", 'test "$WORD" = hello', env=[{"name": "WORD", "valueFrom": reference}])],
        restartPolicy="Never",
    )
    pod = await pods.until("late", lambda p: waiting_reason(p, "main") == "CreateContainerConfigError")
    assert phase(pod) == "Pending"
    await pods.put(CONFIGMAPS, "late", {"word": "hello"})
    assert phase(await pods.ended("late")) == "Succeeded"
