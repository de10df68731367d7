"""What a reconciliation ends in. Typed outcomes instead of exceptions, so that the dispatcher alone
decides when to look again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """The world is as the spec says; look again at the next event or the periodic list."""

    again_in: float | None = None
    """Seconds after which something timed is due (a status figure held back, a settling condition), if
    any."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Something failed that may pass by itself; look again with back-off, not before `after` seconds."""

    reason: str
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Wait:
    """Something else has to happen first and will come as an event; `again_in` seconds at the latest."""

    reason: str
    again_in: float | None = None


@dataclass(frozen=True, slots=True)
class Terminal:
    """Only a new generation of the resource helps."""

    reason: str


Outcome = Done | Retry | Wait | Terminal
