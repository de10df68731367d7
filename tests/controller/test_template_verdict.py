"""What the outcome of a dry run means: only what a new template can mend holds a rollout."""

from typing import Any

import pytest

from prfaas.controller.template import BELIEVED_SECONDS, TemplateChecks, verdict_of
from prfaas.kube.errors import ApiError, BadRequest, Forbidden, Invalid, ServerError, Unreachable
from prfaas.render.pool import EngineView, Owner, PoolView, RouterView

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


class Server:
    """Answers dry runs, and counts them."""

    def __init__(self, refusal: ApiError | None) -> None:
        self.refusal, self.asked = refusal, 0

    async def create(self, resource: Any, obj: Any, **options: Any) -> Any:
        assert options["dry_run"]
        self.asked += 1
        if self.refusal is not None:
            raise self.refusal
        return obj


def view(image: str = "engine:1") -> PoolView:
    return PoolView(
        owner=Owner("hub", "PrfaasPool", "ns", "far", "uid"),
        namespace="pods",
        template={"spec": {"containers": [{"name": "engine", "image": image}]}},
        engine=EngineView("vllm", "0.22.0", "nixl", "small"),
        router=RouterView("router:1"),
    )


@pytest.mark.parametrize(
    ("refusal", "accepted"),
    [(None, "Yes"), (Invalid("bad"), "No"), (Forbidden("exceeded quota: gpus"), "Unknown")],
)
async def test_each_template_is_asked_about_once_until_the_verdict_is_too_old(
    refusal: ApiError | None, accepted: str
) -> None:
    server, now = Server(refusal), [0.0]
    checks = TemplateChecks(lambda: now[0])
    for _ in range(3):
        assert (await checks.check(server, view())).accepted == accepted  # type: ignore[arg-type]
    assert server.asked == 1
    await checks.check(server, view("engine:2"))  # type: ignore[arg-type]
    assert server.asked == 2
    now[0] += min(BELIEVED_SECONDS[accepted], 1e9)
    await checks.check(server, view("engine:2"))  # type: ignore[arg-type]
    assert server.asked == (2 if accepted == "Yes" else 3)
