"""PrfaasPool: prefill-only instances whose KV cache travels to other clusters."""

from typing import ClassVar

from pydantic import Field

from prfaas.api.base import Resource, Rule
from prfaas.api.pool import POOL_NAME, POOL_RULES, Egress, PoolSpec, PoolStatus


class PrfaasPoolSpec(PoolSpec):
    """What is wanted of a prefill-only pool."""

    RULES: ClassVar[tuple[Rule, ...]] = POOL_RULES

    egress: Egress
    """The link over which KV cache leaves the cluster."""


class PrfaasPoolStatus(PoolStatus):
    """What is known of a prefill-only pool."""


class PrfaasPool(Resource):
    """A pool of prefill-only instances. PrefillRoutes send long uncached prompts to it; its KV cache travels
    to the decode cluster."""

    PLURAL: ClassVar[str] = "prfaaspools"
    SHORT_NAME: ClassVar[str] = "pfp"
    NAME_RULES: ClassVar[tuple[Rule, ...]] = (POOL_NAME,)

    kind: str = "PrfaasPool"
    """Name of this type."""
    spec: PrfaasPoolSpec
    """What is wanted."""
    status: PrfaasPoolStatus = Field(default_factory=PrfaasPoolStatus)
    """What is observed; written by the operator alone."""
