"""Member clusters: credentials that change, that fail, and clusters registered twice."""

from collections.abc import Callable
from typing import Any

import pytest

from prfaas.kube.resources import CLUSTERROLEBINDINGS, PODS, SERVICEACCOUNTS, Obj

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
Eventually = Callable[..., Any]


async def test_a_rotated_kubeconfig_is_taken_without_a_restart_and_moves_no_pod(
    world: Any, eventually: Eventually
) -> None:
    world.be_kubelet("there")
    await world.prfaas_pool(cluster="there")
    await world.settled("PrfaasPool", "far")
    before = {p["metadata"]["uid"] for p in await world.listed(PODS, "far", cluster="there")}
    token = await _token(world, "robot")
    await world.put_secret("there", world.kubeconfig_with_token("there", token))
    await world.patch("PrfaasPool", "far", spec={"instances": 2})
    await world.settled("PrfaasPool", "far")
    assert before < {p["metadata"]["uid"] for p in await world.listed(PODS, "far", cluster="there")}
    # With a token that the server does not know, the condition says so, and nothing is lost.
    await world.put_secret("there", world.kubeconfig_with_token("there", "wrong"))
    await world.wait_condition("MemberCluster", "there", "Authorized", "False", "Unauthorized")
    await world.put_secret("there", world.kubeconfig_with_token("there", token))
    await world.wait_condition("MemberCluster", "there", "Ready", "True", seconds=40)
    assert len(await world.listed(PODS, "far", cluster="there")) == 2


async def test_a_cluster_registered_twice_is_caught(world: Any) -> None:
    await world.wait_condition("MemberCluster", "there", "Ready", "True")
    reference = {"kubeconfigSecretRef": {"name": "there"}}
    await world.make("MemberCluster", "there-again", connection=reference, namespace="default")
    await world.wait_condition("MemberCluster", "there-again", "Ready", "False", "DuplicateCluster")
    await world.wait_condition("MemberCluster", "there", "Ready", "True")


async def test_what_is_wrong_with_a_cluster_is_said_in_its_conditions(world: Any) -> None:
    reference = {"kubeconfigSecretRef": {"name": "absent"}}
    await world.make("MemberCluster", "no-secret", connection=reference, namespace="default")
    await world.wait_condition("MemberCluster", "no-secret", "Authorized", "False", "SecretNotFound")
    await world.put_secret("garbage", "not a kubeconfig")
    reference = {"kubeconfigSecretRef": {"name": "garbage"}}
    await world.make("MemberCluster", "bad-secret", connection=reference, namespace="default")
    await world.wait_condition("MemberCluster", "bad-secret", "Authorized", "False", "SecretInvalid")
    reference = {"kubeconfigSecretRef": {"name": "there"}}
    await world.make("MemberCluster", "no-namespace", connection=reference, namespace="not-there")
    await world.wait_condition("MemberCluster", "no-namespace", "Authorized", "False", "NamespaceNotFound")


async def test_status_names_the_cluster_and_its_finalizer_follows_its_pools(
    world: Any, eventually: Eventually
) -> None:
    await world.wait_condition("MemberCluster", "here", "Ready", "True")
    status = (await world.get("MemberCluster", "here"))["status"]
    assert status["version"].startswith("v1.")
    assert len(status["identity"]) == 36
    await world.pd_pool(instances=0, prefill=0)

    async def held(finalizers: list[str], pools: int) -> bool:
        obj = await world.get("MemberCluster", "here")
        assert obj["status"]["pools"] == pools
        return obj["metadata"].get("finalizers", []) == finalizers

    await eventually(lambda: held(["prfaas.io/in-use"], 1))
    await world.delete("PDPool", "pd")
    await eventually(lambda: held([], 0))


async def _token(world: Any, name: str) -> str:
    """A token of a service account in the other cluster that may do everything there."""
    there = world.clients["there"]
    await there.create(SERVICEACCOUNTS, {"metadata": {"name": name, "namespace": world.children}})
    binding: Obj = {
        "metadata": {"name": f"{world.name}-{name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": world.children}],
    }
    await there.create(CLUSTERROLEBINDINGS, binding)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await there.create(
        SERVICEACCOUNTS, request, namespace=world.children, name=name, subresource="token"
    )
    return str(answer["status"]["token"])
