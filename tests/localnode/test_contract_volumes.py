"""Volumes (Kubernetes documentation: "Volumes", "Projected Volumes", "Configure Service Accounts for Pods").

Each test runs Python code that looks at the files; a difference is a failed pod. Mount paths appear in
arguments, environment or command, where a node without mounts can put the real ones.
"""

import json

import pytest
from tests.localnode.contract import Pods, phase, state, waiting_reason

from prfaas.kube.resources import CONFIGMAPS, SECRETS

pytestmark = pytest.mark.cluster

COMPARE = (
    "import json, pathlib, sys; want = json.loads(sys.argv[2]); root = pathlib.Path(sys.argv[1]); "
    "got = {n: (root / n).read_text() if (root / n).exists() else None for n in want}; "
    "sys.exit(0 if got == want else f'{root}: {got}')"
)
"""Compares files under the first argument with a JSON object of names and contents."""

WHO_AM_I = """
import json, os, pathlib, ssl, sys, urllib.request
directory = pathlib.Path(sys.argv[1])
server = os.environ["KUBERNETES_SERVICE_HOST"] + ":" + os.environ["KUBERNETES_SERVICE_PORT"]
request = urllib.request.Request(
    f"https://{server}/apis/authentication.k8s.io/v1/selfsubjectreviews",
    json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode(),
    {"Authorization": "Bearer " + (directory / "token").read_text(), "Content-Type": "application/json"},
)
tls = ssl.create_default_context(cafile=str(directory / "ca.crt"))
found = json.load(urllib.request.urlopen(request, context=tls))["status"]["userInfo"]["username"]
want = "system:serviceaccount:" + (directory / "namespace").read_text() + ":default"
sys.exit(0 if found == want else found)
"""


async def test_a_config_map_is_a_directory_of_files(pods: Pods) -> None:
    await pods.put(CONFIGMAPS, "settings", {"a.yaml": "x: 1\n", "b": "two"})
    await pods.script_succeeds(
        "all",
        COMPARE,
        args=["/etc/settings", json.dumps({"a.yaml": "x: 1\n", "b": "two"})],
        volumeMounts=[{"name": "v", "mountPath": "/etc/settings"}],
        volumes=[{"name": "v", "configMap": {"name": "settings"}}],
    )
    items = [{"key": "b", "path": "deep/er", "mode": 0o400}]
    await pods.script_succeeds(
        "items",
        COMPARE,
        args=["/etc/settings", json.dumps({"deep/er": "two", "b": None, "a.yaml": None})],
        volumeMounts=[{"name": "v", "mountPath": "/etc/settings"}],
        volumes=[{"name": "v", "configMap": {"name": "settings", "items": items}}],
    )


async def test_a_secret_is_a_directory_of_files_with_its_mode(pods: Pods) -> None:
    await pods.put(SECRETS, "keys", {"key": "s3cret"})
    await pods.script_succeeds(
        "secret",
        "import os, sys; p = sys.argv[1]; "
        "assert open(p).read() == 's3cret' and os.stat(p).st_mode & 0o777 == 0o400, os.stat(p)",
        args=["/run/keys/key"],
        volumeMounts=[{"name": "v", "mountPath": "/run/keys", "readOnly": True}],
        volumes=[{"name": "v", "secret": {"secretName": "keys", "defaultMode": 0o400}}],
    )


async def test_a_projected_volume_joins_its_sources(pods: Pods) -> None:
    await pods.put(CONFIGMAPS, "settings", {"a": "1"})
    await pods.put(SECRETS, "keys", {"k": "2"})
    sources = [
        {"configMap": {"name": "settings", "items": [{"key": "a", "path": "from/config"}]}},
        {"secret": {"name": "keys"}},
        {"secret": {"name": "not-there", "optional": True}},
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    ]
    await pods.script_succeeds(
        "projected",
        COMPARE,
        labels={"one": "x", "two": "y"},
        args=["/all", json.dumps({"from/config": "1", "k": "2", "labels": 'one="x"\ntwo="y"'})],
        volumeMounts=[{"name": "v", "mountPath": "/all"}],
        volumes=[{"name": "v", "projected": {"sources": sources}}],
    )


async def test_an_empty_directory_is_shared_by_the_containers_of_a_pod(pods: Pods) -> None:
    await pods.create(
        "shared",
        [
            pods.container(
                "main",
                'test "$(cat $PLACE/note)" = hello',
                env=[{"name": "PLACE", "value": "/here"}],
                volumeMounts=[{"name": "v", "mountPath": "/here", "subPath": "sub"}],
            )
        ],
        initContainers=[
            pods.container(
                "first",
                # The directory of a subPath is made when its container starts, not before.
                "mkdir /there/sub && echo hello > /there/sub/note",
                volumeMounts=[{"name": "v", "mountPath": "/there"}],
            )
        ],
        restartPolicy="Never",
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    assert phase(await pods.ended("shared")) == "Succeeded"


async def test_a_missing_config_map_holds_the_pod_until_it_is_there(pods: Pods) -> None:
    mount = [{"name": "v", "mountPath": "/etc/late"}]
    container = pods.container("main", "test -f /etc/late/x", volumeMounts=mount)
    volumes = [{"name": "v", "configMap": {"name": "late"}}]
    await pods.create("held", [container], restartPolicy="Never", volumes=volumes)
    pod = await pods.until("held", lambda p: (p.get("status") or {}).get("containerStatuses"))
    assert waiting_reason(pod, "main") == "ContainerCreating"
    assert phase(pod) == "Pending"
    await pods.put(CONFIGMAPS, "late", {"x": "1"})
    assert phase(await pods.ended("held")) == "Succeeded"


async def test_the_token_of_the_service_account_opens_the_api(pods: Pods) -> None:
    container = pods.container(
        "main",
        command=["python3", "-c", WHO_AM_I],
        args=["/var/run/secrets/kubernetes.io/serviceaccount"],
    )
    await pods.create("token", [container], restartPolicy="Never", automountServiceAccountToken=True)
    pod = await pods.ended("token")
    assert phase(pod) == "Succeeded", pod["status"]


@pytest.mark.slow
async def test_a_changed_config_map_reaches_the_files(pods: Pods) -> None:
    await pods.put(CONFIGMAPS, "live", {"word": "old"})
    container = pods.container(
        "main",
        "while grep -q old /etc/live/word; do sleep 0.2; done; grep -q new /etc/live/word",
        volumeMounts=[{"name": "v", "mountPath": "/etc/live"}],
    )
    volumes = [{"name": "v", "configMap": {"name": "live"}}]
    await pods.create("live", [container], restartPolicy="Never", volumes=volumes)
    await pods.until("live", lambda p: state(p, "main") == "running")
    await pods.put(CONFIGMAPS, "live", {"word": "new"})
    assert phase(await pods.ended("live")) == "Succeeded"


async def test_the_working_directory_may_be_in_a_volume(pods: Pods) -> None:
    await pods.put(CONFIGMAPS, "settings", {"a": "1"})
    await pods.script_succeeds(
        "working",
        "import pathlib, sys; sys.exit(0 if pathlib.Path('a').read_text() == '1' else 'wrong directory')",
        workingDir="/etc/settings",
        volumeMounts=[{"name": "v", "mountPath": "/etc/settings"}],
        volumes=[{"name": "v", "configMap": {"name": "settings"}}],
    )
