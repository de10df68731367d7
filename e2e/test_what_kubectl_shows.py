"""kubectl is how people look at the system: its tables must read like sentences."""

import re

import pytest
from e2e.samples import PD_POOL, PRFAAS_POOL, ROUTE, sample
from e2e.scene import Scene

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

KINDS = "prfaaspools,pdpools,prefillroutes,memberclusters,modelprofiles"
EXPECTED = """\
NAME READY WHY SERVING OF ON IN SUMMARY AGE
prfaaspool.prfaas.io/h200 True Available 4 4 H200 west 4 of 4 prefill instances serve. AGE

NAME READY WHY PREFILL DECODE OF ON IN SUMMARY AGE
pdpool.prfaas.io/h20 True Available 3 5 8 H20 east 5 of 5 decode and 3 of 3 prefill instances serve. AGE

NAME READY WHY FROM MODE ABOVE SUMMARY AGE
prefillroute.prfaas.io/case-study True Available h20 Static 19400 \
Prompts of h20 with more than 19400 uncached tokens are prefilled by h200. AGE

NAME READY WHY VERSION NAMESPACE SUMMARY AGE
membercluster.prfaas.io/east True Available VERSION NAMESPACE Kubernetes VERSION. AGE
membercluster.prfaas.io/west True Available VERSION NAMESPACE Kubernetes VERSION. AGE

NAME READY WHY MODEL CACHE SUMMARY AGE
modelprofile.prfaas.io/internal-1t True Available internal-1t BF16 Numbers for H200, H20. AGE
"""
"""`kubectl get` of the case study when all is well, with its columns one space apart."""


def in_words(output: str, namespace: str) -> str:
    """kubectl's output without what differs from run to run."""
    text = re.sub(r" +", " ", output.replace(namespace, "NAMESPACE"))
    text = re.sub(r"\bv1\.\d+\.\d+[-+\w]*", "VERSION", text)
    text = re.sub(r" (\d+[smhd])+ ?$", " AGE", text, flags=re.MULTILINE)
    return re.sub(r" +$", "", text, flags=re.MULTILINE)


async def test_kubectl_get_reads_like_a_sentence_and_describe_says_what_happened(scene: Scene) -> None:
    scene.operator().start()
    await scene.connect()
    await scene.apply(sample("case-study", namespace=scene.namespace, engine_image=scene.places.engine_image))
    await scene.ready(seconds=240)
    scene.say("the case study is Ready")
    kubectl = scene.places.hub.cluster.kubectl
    got = in_words(kubectl("get", KINDS, "-n", scene.namespace), scene.namespace)
    assert got.strip() == EXPECTED.strip()

    pool = kubectl("describe", "pdpool", PD_POOL, "-n", scene.namespace)
    for words in (
        "Type: Ready",
        "Type: TemplateAccepted",
        "Type: InstancesReady",
        "Type: RolesSettled",
        "Summary: 5 of 5 decode and 3 of 3 prefill instances serve.",
        "Ready is now True: Every role has at least its minimum of serving instances.",
    ):
        assert words in re.sub(r" +", " ", pool), pool
    remote = kubectl("describe", "prfaaspool", PRFAAS_POOL, "-n", scene.namespace)
    assert "InstancesReady is now True: Every instance serves." in remote
    route = kubectl("describe", "prefillroute", ROUTE, "-n", scene.namespace)
    for words in (
        "Type: RemoteUsable",
        "RemoteUsable is now True: Remote instances are ready and compatible.",
    ):
        assert words in re.sub(r" +", " ", route), route
    for text in (pool, remote, route):
        assert "<none>" not in text.rpartition("Events:")[2], text
