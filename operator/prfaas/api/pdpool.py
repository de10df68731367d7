"""PDPool: instances of one cluster that prefill or decode."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from prfaas.api.base import ApiModel, Resource, Rule
from prfaas.api.fields import Duration, Time, Within
from prfaas.api.pool import POOL_NAME, POOL_RULES, Egress, PoolSpec, PoolStatus, RouterContainer
from prfaas.api.tables import MAX_INSTANCES
from prfaas.api.template import TemplatePatches

Count = Annotated[int, Field(ge=0, le=MAX_INSTANCES)]


def _ordered(bounds: "PrefillBounds | DecodeBounds") -> bool:
    return bounds.max is None or bounds.min <= bounds.max


_MIN_MAX = Rule(
    cel="!has(self.max) || self.min <= self.max",
    message="min must not be above max.",
    holds=_ordered,
    path=".min",
)


class PrefillBounds(ApiModel):
    """Bounds of the number of instances that prefill."""

    RULES: ClassVar[tuple[Rule, ...]] = (_MIN_MAX,)

    min: Count = 0
    """Fewest instances that prefill. With 0, decode instances may have to prefill what stays in the pool."""
    max: Count | None = None
    """Most instances that prefill; left out, all that decode.min leaves."""


class DecodeBounds(ApiModel):
    """Bounds of the number of instances that decode."""

    RULES: ClassVar[tuple[Rule, ...]] = (_MIN_MAX,)

    min: Count = 1
    """Fewest instances that decode."""
    max: Count | None = None
    """Most instances that decode; left out, all that prefill.min leaves."""


class ManualRoles(ApiModel):
    """A split that you choose."""

    prefill: Count
    """Instances that prefill; all others decode."""


def _manual_in_bounds(roles: "Roles") -> bool:
    if roles.manual is None:
        return True
    top = roles.prefill.max
    return roles.prefill.min <= roles.manual.prefill and (top is None or roles.manual.prefill <= top)


class Roles(ApiModel):
    """Who prefills and who decodes."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="(self.mode == 'Manual') == has(self.manual)",
            message="mode Manual needs manual.prefill, the number of instances that prefill; mode Auto takes "
            "none.",
            holds=lambda r: (r.mode == "Manual") == (r.manual is not None),
            path=".manual",
        ),
        Rule(
            cel="!has(self.manual) || (self.prefill.min <= self.manual.prefill && "
            "(!has(self.prefill.max) || self.manual.prefill <= self.prefill.max))",
            message="manual.prefill must lie between prefill.min and prefill.max.",
            holds=_manual_in_bounds,
            path=".manual",
        ),
    )

    mode: Literal["Auto", "Manual"] = "Manual"
    """Manual: the split given under manual. Auto: the operator converts instances as load changes. Auto is
    not built yet: refused with Stalled, reason NotSupported."""
    prefill: PrefillBounds = Field(default_factory=PrefillBounds)
    """Bounds of the number of instances that prefill."""
    decode: DecodeBounds = Field(default_factory=DecodeBounds)
    """Bounds of the number of instances that decode."""
    manual: ManualRoles | None = None
    """The split, for mode Manual."""


class Conversion(ApiModel):
    """How an instance changes its role."""

    strategy: Literal["Restart", "HotSwitch", "Label"] = "Restart"
    """Restart: the pod is drained and replaced. HotSwitch: the engine is told to switch (SGLang). Label: the
    engine serves both roles and only a label changes, where the engine and its version allow it. HotSwitch
    and Label are not built yet: refused with Stalled, reason NotSupported."""
    cooldown: Annotated[Duration, Within("0s", "24h")] = Duration("10m")
    """Shortest time between two conversions that mode Auto decides on. A split that you change by hand is
    carried out at once, one instance after the other."""


class PDRouter(RouterContainer):
    """The routers of the pool."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.replicas) || self.mode == 'Standalone'",
            message="replicas belong to mode Standalone: a Sidecar router runs once beside every engine.",
            holds=lambda r: r.replicas is None or r.mode == "Standalone",
            path=".replicas",
        ),
    )

    mode: Literal["Sidecar", "Standalone"] = "Sidecar"
    """Sidecar: clients reach a decode instance through the pool's Service and its router decides where to
    prefill. Standalone: a Deployment of routers in front also picks the decode instance. Standalone is not
    built yet: refused with Stalled, reason NotSupported."""
    replicas: Annotated[int, Field(ge=1, le=64)] | None = None
    """Routers of the Deployment, for mode Standalone."""


class Slo(ApiModel):
    """What the pool's users are promised: the objective of the control loops and of goodput."""

    ttft: Annotated[Duration, Within("1ms", "1h")] | None = None
    """Time to first token."""
    tokens_per_second: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Tokens per second of one stream after the first token."""


class PDPoolSpec(PoolSpec):
    """What is wanted of a pool that prefills and decodes."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        *POOL_RULES,
        Rule(
            cel="!has(self.instances) || self.instances == 0 || "
            "self.roles.prefill.min + self.roles.decode.min <= self.instances",
            message="instances must be 0 or at least roles.prefill.min plus roles.decode.min.",
            holds=lambda p: not p.instances or p.roles.prefill.min + p.roles.decode.min <= p.instances,
            path=".instances",
        ),
        Rule(
            cel="!has(self.instances) || self.instances == 0 || !has(self.roles.manual) || "
            "self.roles.manual.prefill + self.roles.decode.min <= self.instances",
            message="roles.manual.prefill leaves fewer than roles.decode.min instances to decode: lower it "
            "or raise instances.",
            holds=lambda p: (
                not p.instances
                or p.roles.manual is None
                or p.roles.manual.prefill + p.roles.decode.min <= p.instances
            ),
            path=".roles.manual",
        ),
        Rule(
            cel="!has(self.instances) || !has(self.roles.manual) || !has(self.roles.decode.max) || "
            "self.instances - self.roles.manual.prefill <= self.roles.decode.max",
            message="roles.manual.prefill leaves more than roles.decode.max instances to decode: raise it or "
            "lower instances.",
            holds=lambda p: (
                p.instances is None
                or p.roles.manual is None
                or p.roles.decode.max is None
                or p.instances - p.roles.manual.prefill <= p.roles.decode.max
            ),
            path=".roles.manual",
        ),
        Rule(
            cel="!has(self.selector) || self.conversion.strategy != 'Restart' || self.roles.mode == 'Manual'",
            message="Adopted pods cannot be restarted in another role: choose conversion.strategy HotSwitch "
            "or Label, or roles.mode Manual.",
            holds=lambda p: (
                p.selector is None or p.conversion.strategy != "Restart" or p.roles.mode == "Manual"
            ),
            path=".conversion",
        ),
    )

    egress: Egress | None = None
    """The link over which cached prefixes leave the cluster, where they are pulled the other way. Not built
    yet: refused with Stalled, reason NotSupported."""
    roles: Roles
    """Who prefills and who decodes."""
    conversion: Conversion = Field(default_factory=Conversion)
    """How an instance changes its role."""
    template_patches: TemplatePatches = Field(default_factory=TemplatePatches)
    """What differs from the template by role."""
    router: PDRouter = Field(default_factory=PDRouter)
    """The routers of the pool."""
    slo: Slo = Field(default_factory=Slo)
    """What the pool's users are promised."""

    def intended(self, instances: int | None = None) -> tuple[int, int]:
        """Prefill and decode instances of a Manual split of `instances` (the spec's own where None).

        Mode Auto has no split of its own: everything decodes but prefill.min.
        """
        total = (self.instances or 0) if instances is None else instances
        wanted = self.roles.manual.prefill if self.roles.manual else self.roles.prefill.min
        prefill = min(wanted, total)
        return prefill, total - prefill


class RoleCount(ApiModel):
    """Instances of one role."""

    desired: Annotated[int, Field(ge=0)] = 0
    """Instances that should have the role."""
    instances: Annotated[int, Field(ge=0)] = 0
    """Instances that have it."""
    ready: Annotated[int, Field(ge=0)] = 0
    """Instances that have it and serve."""


class ConversionProgress(ApiModel):
    """A conversion that is under way."""

    slot: Annotated[int, Field(ge=0)]
    """Slot of the instance."""
    to: Literal["prefill", "decode"]
    """Role that it is getting: prefill or decode."""
    step: Literal["Cordon", "Drain", "Switch", "Verify", "Warm", "Uncordon", "Revert"]
    """Where it stands: Cordon, Drain, Switch, Verify, Warm, Uncordon, or Revert when the switch failed."""
    since: Time
    """When this step began."""
    reason: Annotated[str, Field(max_length=256)] = ""
    """Why the instance is converted."""


class PDPoolStatus(PoolStatus):
    """What is known of a pool that prefills and decodes."""

    prefill: RoleCount = Field(default_factory=RoleCount)
    """Instances that prefill."""
    decode: RoleCount = Field(default_factory=RoleCount)
    """Instances that decode."""
    conversion: ConversionProgress | None = None
    """The conversion that is under way, if any."""
    route: Annotated[str, Field(max_length=253)] = ""
    """PrefillRoute that acts on this pool; empty: none, and every prefill stays in the pool."""


class PDPool(Resource):
    """A pool of instances that prefill or decode, with routers beside them. Clients talk to its Service."""

    PLURAL: ClassVar[str] = "pdpools"
    SHORT_NAME: ClassVar[str] = "pdp"
    NAME_RULES: ClassVar[tuple[Rule, ...]] = (POOL_NAME,)

    kind: str = "PDPool"
    """Name of this type."""
    spec: PDPoolSpec
    """What is wanted."""
    status: PDPoolStatus = Field(default_factory=PDPoolStatus)
    """What is observed; written by the operator alone."""
