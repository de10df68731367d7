"""The operator lives with exactly the permissions that its rules state."""

from typing import Any

import pytest

from prfaas.controller.access import cluster_rules, hub_rules, lease_rules, member_rules
from prfaas.kube.resources import (
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    ROLEBINDINGS,
    ROLES,
    SERVICEACCOUNTS,
    Obj,
)

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

NAME = "operator"


async def test_a_pool_is_made_and_removed_with_the_stated_permissions_alone(
    quiet_world: Any, start_operator: Any, eventually: Any, tmp_path: Any
) -> None:
    world = quiet_world
    world.be_kubelet()
    token = await _limited_token(world)
    kubeconfig = tmp_path / "limited"
    kubeconfig.write_text(world.kubeconfig_with_token("here", token))
    operator = start_operator(kubeconfig=kubeconfig)
    await world.delete("MemberCluster", "there")
    await world.prfaas_pool()
    await world.pd_pool()
    await world.route()
    for kind, name in (("PDPool", "pd"), ("PrfaasPool", "far"), ("PrefillRoute", "route")):
        await world.settled(kind, name)
    await world.wait_condition("MemberCluster", "here", "Authorized", "True", "Granted")
    await eventually(lambda: world.events("PDPool", "pd"))
    await world.patch("PDPool", "pd", spec={"instances": 3})
    await world.settled("PDPool", "pd")
    for kind, name in (("PDPool", "pd"), ("PrfaasPool", "far")):
        await world.delete(kind, name)

    async def nothing() -> bool:
        assert await world.gone("PDPool", "pd")
        assert await world.gone("PrfaasPool", "far")
        return not await world.leftovers()

    await eventually(nothing)
    assert operator.sample("prfaas_operator_api_write_errors_total") == 0


async def _limited_token(world: Any) -> str:
    here = world.clients["here"]
    await here.create(SERVICEACCOUNTS, {"metadata": {"name": NAME, "namespace": world.name}})
    for namespace, rules in ((world.name, [*hub_rules(), *lease_rules()]), (world.children, member_rules())):
        await here.create(ROLES, {"metadata": {"name": NAME, "namespace": namespace}, "rules": rules})
        await here.create(ROLEBINDINGS, _binding("Role", NAME, NAME, world.name, namespace))
    cluster_wide = f"{world.name}-{NAME}"
    await here.create(CLUSTERROLES, {"metadata": {"name": cluster_wide}, "rules": cluster_rules()})
    await here.create(
        CLUSTERROLEBINDINGS, _binding("ClusterRole", cluster_wide, cluster_wide, world.name, None)
    )
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await here.create(SERVICEACCOUNTS, request, namespace=world.name, name=NAME, subresource="token")
    return str(answer["status"]["token"])


def _binding(kind: str, role: str, name: str, home: str, namespace: str | None) -> Obj:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": home}],
    }
