"""Whether a member cluster takes pods of a pool's template, asked once per revision by a server-side dry run.

Only what a new template can mend holds a rollout: schema, pod security, policy. Quota and webhooks that
fail pass by themselves and are met again by each slot on its own.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from prfaas.api.meta import FIELD_MANAGER
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError, BadRequest, Forbidden, Invalid, Unreachable
from prfaas.kube.resources import PODS
from prfaas.render.hashes import template_hash
from prfaas.render.pool import PoolView
from prfaas.render.refusal import refusals
from prfaas.render.slot import dry_run_pod

PASSING = re.compile(
    r"exceeded quota|failed quota|error looking up service account|cannot create resource|"
    r"unable to create new content in namespace|namespaces? \S+ not found"
)
"""Refusals that say nothing about the template."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the member cluster says of the template."""

    accepted: Literal["Yes", "No", "Unknown"]
    message: str = ""


NOT_CHECKED = Verdict("Unknown", "The template has not been checked yet.")
_NEVER = ("", NOT_CHECKED, float("-inf"))


def verdict_of(error: ApiError | None) -> Verdict:
    """The verdict that the outcome of a dry run means. Raises `error` where it says nothing about the
    template."""
    if error is None:
        return Verdict("Yes", "A dry run of a pod passed.")
    message = _without_name(error.message)
    if isinstance(error, Invalid | BadRequest):
        return Verdict("No", message)
    if isinstance(error, Forbidden) and not PASSING.search(error.message):
        return Verdict("No", message)
    if isinstance(error, Unreachable):
        raise error
    return Verdict("Unknown", message)


BELIEVED_SECONDS = {"Yes": float("inf"), "No": 300.0, "Unknown": 30.0}
"""How long a verdict stands. A policy may be lifted, what passes may pass; an accepted template is not asked
about again, since a refusal later would show on its slots."""


class TemplateChecks:
    """Verdicts by pool and template, so that each revision is asked about once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._verdicts: dict[tuple[str, str], tuple[str, Verdict, float]] = {}

    def known(self, view: PoolView) -> Verdict:
        """The verdict on the present template, NOT_CHECKED if there is none."""
        fingerprint, verdict, _ = self._verdicts.get(_key(view), _NEVER)
        return verdict if fingerprint == _fingerprint(view) else NOT_CHECKED

    async def check(self, client: ApiClient, view: PoolView) -> Verdict:
        """The verdict on the present template, by a dry run if there is none that stands. Raises ApiError."""
        fingerprint, (known, verdict, when) = _fingerprint(view), self._verdicts.get(_key(view), _NEVER)
        if known == fingerprint and self._clock() - when < BELIEVED_SECONDS[verdict.accepted]:
            return verdict
        refused = refusals(view)
        verdict = Verdict("No", " ".join(refused)) if refused else await _dry_run(client, view)
        self._verdicts[_key(view)] = (fingerprint, verdict, self._clock())
        return verdict


async def _dry_run(client: ApiClient, view: PoolView) -> Verdict:
    verdict = NOT_CHECKED
    for role in view.roles:
        pod = dry_run_pod(view, role)
        try:
            await client.create(PODS, pod, manager=FIELD_MANAGER, dry_run=True, strict=True)
            verdict = verdict_of(None)
        except ApiError as error:
            verdict = verdict_of(error)
        if verdict.accepted != "Yes":
            return verdict
    return verdict


def _key(view: PoolView) -> tuple[str, str]:
    return view.owner.kind, f"{view.owner.namespace}/{view.owner.name}"


def _fingerprint(view: PoolView) -> str:
    return " ".join((view.owner.uid, view.namespace, *(template_hash(view, role) for role in view.roles)))


def _without_name(message: str) -> str:
    """The message without the name of the pod that was never made."""
    return re.sub(r'^pods? "[^"]*" is (forbidden|invalid): ', "", message, flags=re.IGNORECASE)
