"""Keys of the work queue: what is to be reconciled, never what happened to it."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["MemberCluster", "ModelProfile", "PrfaasPool", "PDPool", "PrefillRoute"]
KINDS: tuple[Kind, ...] = ("MemberCluster", "ModelProfile", "PrfaasPool", "PDPool", "PrefillRoute")
POOL_KINDS: tuple[Kind, ...] = ("PrfaasPool", "PDPool")

Aspect = Literal["object", "tables"]


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """One resource in the management cluster, and which of its loops is meant.

    Tables of a pool have a loop of their own, so that a slow step on a slot never delays them.
    """

    kind: Kind
    namespace: str
    name: str
    aspect: Aspect = "object"

    def __str__(self) -> str:
        """`Kind namespace/name`, with the aspect if it is not the object itself."""
        suffix = "" if self.aspect == "object" else f" ({self.aspect})"
        return f"{self.kind} {self.namespace}/{self.name}{suffix}"

    @property
    def tables(self) -> "Key":
        """The key of the same pool's tables."""
        return Key(self.kind, self.namespace, self.name, "tables")
