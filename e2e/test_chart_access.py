"""The rights that the chart and the manifest for member clusters grant are enough for the operator."""

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.places import Place
from e2e.samples import PRFAAS_POOL, small_case_study
from e2e.scene import MANAGER, Scene
from e2e.waiting import eventually

from clusterfixtures import Cluster
from localclusters import toolchain
from localworld import ROOT, OperatorProcess
from prfaas.kube.kubeconfig import load_kubeconfig
from prfaas.kube.resources import EVENTS, SECRETS

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

CHART = ROOT / "charts" / "prfaas"
MEMBER_ACCESS = ROOT / "manifests" / "member-access.yaml"
RELEASE = "prfaas"


def helm(cluster: Cluster, *arguments: str) -> str:
    """Run helm. Raises AssertionError with its words when it fails."""
    command = [str(toolchain.helm()), *arguments, "--kubeconfig", str(cluster.kubeconfig)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout


def deployed_arguments(cluster: Cluster, namespace: str) -> list[str]:
    """What the chart's Deployment tells the operator, but for where metrics are served and its image."""
    deployment = cluster.get("deployment", RELEASE, "-n", namespace)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["prfaas", "operator"]
    ours = ("--metrics=", "--router-image=")
    return [argument for argument in container["args"] if not argument.startswith(ours)]


def token_kubeconfig(place: Place, token: str) -> str:
    """A kubeconfig that has nothing but a bearer token."""
    connection = load_kubeconfig(place.cluster.kubeconfig)
    authority = base64.b64encode((connection.ca or "").encode()).decode()
    cluster: dict[str, Any] = {"server": connection.server, "certificate-authority-data": authority}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {"token": token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }
    )


@contextmanager
def member_access(place: Place, namespace: str) -> Iterator[str]:
    """The manifest for member clusters, applied for a namespace; gives the kubeconfig that it leads to."""
    documents = [d for d in yaml.safe_load_all(MEMBER_ACCESS.read_text()) if d["kind"] != "Namespace"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    text = text.replace('"namespace": "prfaas"', f'"namespace": "{namespace}"')
    place.cluster.kubectl("apply", "-f", "-", stdin=text)
    try:
        token = ""
        for _ in range(100):
            secret = place.cluster.get("secret", "prfaas-operator-token", "-n", namespace)
            if token := secret.get("data", {}).get("token", ""):
                break
            time.sleep(0.1)
        yield token_kubeconfig(place, base64.b64decode(token).decode())
    finally:
        place.cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=text)


async def put_kubeconfig(scene: Scene, cluster: str, kubeconfig: str) -> None:
    """Into the Secret that the samples name."""
    secret = {
        "metadata": {"name": f"{cluster}-kubeconfig", "namespace": scene.namespace},
        "stringData": {"kubeconfig": kubeconfig},
    }
    await scene.hub.apply(SECRETS, secret, manager=MANAGER)


@pytest.mark.timeout(300)
async def test_the_charts_service_account_and_the_members_manifest_are_all_that_the_operator_needs(
    scene: Scene, tmp_path: Path
) -> None:
    hub, namespace = scene.places.hub, scene.namespace
    helm(hub.cluster, "install", RELEASE, str(CHART), "-n", namespace,
         "--set", "crds.install=false", "--set", "replicas=0")  # fmt: skip
    try:
        token = hub.cluster.kubectl("create", "token", RELEASE, "-n", namespace, "--duration=1h").strip()
        kubeconfig = tmp_path / "operator.kubeconfig"
        kubeconfig.write_text(token_kubeconfig(hub, token))
        with (
            member_access(scene.places.members["east"], namespace) as east,
            member_access(scene.places.members["west"], namespace) as west,
        ):
            await put_kubeconfig(scene, "east", east)
            await put_kubeconfig(scene, "west", west)
            await work(scene, kubeconfig)
    finally:
        helm(hub.cluster, "uninstall", RELEASE, "-n", namespace)


async def work(scene: Scene, kubeconfig: Path) -> None:
    """The small case study is made, changed and deleted with those rights alone."""
    operator = OperatorProcess(
        kubeconfig,
        scene.directory / "operator.log",
        router_image=scene.places.router_image,
        arguments=deployed_arguments(scene.places.hub.cluster, scene.namespace),
    )
    scene.operators.append(operator)
    operator.start()
    before = await scene.objects()
    await scene.apply(
        small_case_study(
            namespace=scene.namespace,
            engine_image=scene.places.engine_image,
            remote=1,
            prefill=0,
            decode=1,
        )
    )
    await scene.ready()
    scene.say("ready with the rights of the chart and of the members' manifest")
    await scene.patch("PrfaasPool", PRFAAS_POOL, {"spec": {"instances": 2}})
    await scene.ready()

    async def told() -> bool:
        events = (await scene.hub.list(EVENTS, namespace=scene.namespace)).items
        return any(e["regarding"]["name"] == PRFAAS_POOL for e in events)

    await eventually(told, 20, what="no event about the pool")
    await scene.delete_all()
    await scene.gone()
    await scene.nothing_but(before)
    assert "not permitted" not in operator.log_tail(1000)
    scene.say("changed and deleted; nothing was refused")
