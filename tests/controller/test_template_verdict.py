"""What the outcome of a dry run means: only what a new template can mend holds a rollout."""

import pytest

from prfaas.controller.template import verdict_of
from prfaas.kube.errors import ApiError, BadRequest, Forbidden, Invalid, ServerError, Unreachable

CASES: list[tuple[ApiError | None, str]] = [
    (None, "Yes"),
    (Invalid('Pod "pd-0-check" is invalid: spec.containers[0].image: Required value'), "No"),
    (BadRequest('strict decoding error: unknown field "spec.containers[0].imag"'), "No"),
    (Forbidden('pods "pd-0-check" is forbidden: violates PodSecurity "baseline": root'), "No"),
    (Forbidden('admission webhook "policy.example" denied the request: tag'), "No"),
    (Forbidden('pods "pd-0-check" is forbidden: exceeded quota: gpus, requested: gpu=8'), "Unknown"),
    (Forbidden('pods "x" is forbidden: error looking up service account ns/sa: not found'), "Unknown"),
    (Forbidden('pods is forbidden: User "robot" cannot create resource "pods" in API group ""'), "Unknown"),
    (ServerError('Internal error occurred: failed calling webhook "policy.example"', status=500), "Unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "accepted"), CASES, ids=lambda value: str(value)[:40])
def test_the_verdict_follows_from_the_refusal(error: ApiError | None, accepted: str) -> None:
    assert verdict_of(error).accepted == accepted


def test_the_name_of_a_pod_that_was_never_made_is_not_quoted() -> None:
    verdict = verdict_of(
        Forbidden('pods "pd-0-check" is forbidden: violates PodSecurity "restricted:latest"')
    )
    assert verdict.message == 'violates PodSecurity "restricted:latest"'


def test_a_cluster_that_does_not_answer_says_nothing_about_the_template() -> None:
    with pytest.raises(Unreachable):
        verdict_of(Unreachable("refused", cause="Refused"))
