"""kubectl is how people look at the system: its tables must read like sentences."""


import pytest
from e2e.samples import MODEL, PD_POOL, PRFAAS_POOL, ROUTE, sample
from e2e.scene import Scene

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


async def test_kubectl_get_reads_like_a_sentence_on_the_running_case_study(scene: Scene) -> None:
    scene.operator().start()
    await scene.connect()
    documents = sample("case-study", namespace=scene.namespace, engine_image=scene.places.engine_image)
    await scene.apply(documents)
    await scene.ready(seconds=240)
    kubectl = scene.places.hub.cluster.kubectl
    print(
        kubectl(
            "get", "prfaaspools,pdpools,prefillroutes,memberclusters,modelprofiles", "-n", scene.namespace
        )
    )
    for kind, name in (
        ("prfaaspool", PRFAAS_POOL),
        ("pdpool", PD_POOL),
        ("prefillroute", ROUTE),
        ("membercluster", "east"),
        ("modelprofile", MODEL),
    ):
        print(kubectl("describe", kind, name, "-n", scene.namespace)[-3500:])
