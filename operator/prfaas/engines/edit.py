"""A change to the top level of a JSON body, as data.

A router may apply it to the parsed object or splice the bytes it received; either way every member that is
not named here stays as the client wrote it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Edit:
    """Members to remove and members to set; a name in both is set."""

    drop: frozenset[str] = frozenset()
    put: Mapping[str, object] = field(default_factory=dict)

    def apply(self, body: Mapping[str, object]) -> dict[str, object]:
        """The edited copy of `body`; nested values are shared, not copied."""
        if not self.drop and not self.put:
            return dict(body)
        kept = {name: value for name, value in body.items() if name not in self.drop}
        kept.update(self.put)
        return kept

    def then(self, other: "Edit") -> "Edit":
        """This edit followed by `other`."""
        put = {name: value for name, value in self.put.items() if name not in other.drop}
        put.update(other.put)
        return Edit(drop=self.drop | other.drop, put=put)

    @property
    def empty(self) -> bool:
        """Whether a body passes unchanged."""
        return not self.drop and not self.put
