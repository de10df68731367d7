"""What a member cluster says of itself is cut to what its status takes, or that could not be written."""

from prfaas.api.membercluster import MemberClusterStatus
from prfaas.controller.clusters import _facts
from prfaas.fleet import ClusterState


def test_long_answers_are_cut() -> None:
    server = "https://" + "a" * 600 + ".example"
    state = ClusterState(
        key="n/c", namespace="p", reason="Connected", message="", version="v1.36.3" + "x" * 90, server=server
    )
    facts = _facts({}, state, [])
    status = MemberClusterStatus.model_validate({k: v for k, v in facts.items() if v is not None})
    assert status.server == server[:512]
    assert status.version.startswith("v1.36.3")
