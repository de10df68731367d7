"""The demo's summary: counts, and every claim checked against what clients, routers and engines say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from demo.client import Seen
from demo.picture import Fault

RECOVERY_SECONDS = 5.0
"""How soon after the link is back routers must use it again."""
PLACES = {"remote": "remote", "local": "local", "in-place": "inPlace"}


@dataclass(frozen=True, slots=True)
class Decision:
    """What a decode instance's router remembers of one request (`/v1/decisions/recent`)."""

    id: str
    decided: str
    place: str
    reason: str
    outcome: str
    uncached_tokens: int
    threshold_tokens: int
    seconds: float
    failures: tuple[str, ...]

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> "Decision":
        """From the router's JSON."""
        return cls(
            id=raw["id"],
            decided=raw.get("decided", ""),
            place=raw.get("place", ""),
            reason=raw.get("reason", ""),
            outcome=raw.get("outcome", ""),
            uncached_tokens=raw.get("uncachedTokens", 0),
            threshold_tokens=raw.get("thresholdTokens", 0),
            seconds=raw.get("seconds", 0.0),
            failures=tuple(raw.get("failures", ())),
        )


@dataclass(slots=True)
class Bytes:
    """KV bytes of verified hand-offs by request, as engines count them on both ends."""

    sent: dict[str, int] = field(default_factory=dict)
    received: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the summary is made from."""

    seen: Mapping[str, Seen]
    decisions: Mapping[str, Decision]
    faults: Sequence[Fault]
    bytes: Bytes
    leftovers: Sequence[str]
    seconds: float


def summarise(evidence: Evidence) -> dict[str, Any]:
    """The summary as JSON-ready dict; `problems` lists every promise that was broken."""
    seen, decisions = evidence.seen, evidence.decisions
    places = dict.fromkeys(PLACES.values(), 0)
    for decision in decisions.values():
        if decision.place in PLACES:
            places[PLACES[decision.place]] += 1
    verified = [d for d in decisions.values() if d.outcome == "verified"]
    excused = sorted(d.id for d in decisions.values() if _excused(d, seen, evidence.faults))
    summary = {
        "requests": len(seen),
        "failed": sum(1 for s in seen.values() if not s.ok),
        **places,
        "verified": len(verified),
        "recomputed": sum(1 for d in decisions.values() if d.outcome == "recomputed"),
        "unverified": sum(1 for d in decisions.values() if d.outcome == "unverified"),
        "fallbacks": sum(1 for d in decisions.values() if d.failures),
        "inFlightAtFaults": excused,
        "bytesSent": sum(evidence.bytes.sent.get(d.id, 0) for d in verified),
        "bytesReceived": sum(evidence.bytes.received.get(d.id, 0) for d in verified),
        "ttftSeconds": _ttft(seen.values(), decisions),
        "faults": [
            {"name": f.name, "from": round(f.start_seconds, 1), "to": round(f.end_seconds, 1)}
            for f in evidence.faults
        ],
        "leftovers": list(evidence.leftovers),
        "seconds": round(evidence.seconds, 1),
    }
    summary["problems"] = _problems(summary, evidence, set(excused))
    return summary


def _problems(summary: Mapping[str, Any], evidence: Evidence, excused: set[str]) -> list[str]:
    problems = [f"request {s.id} failed: {s.status} {s.error}" for s in evidence.seen.values() if not s.ok]
    missing = [id_ for id_ in evidence.seen if id_ not in evidence.decisions]
    problems += [f"no router remembers request {id_}" for id_ in missing]
    if summary["requests"] < 300:
        problems.append(f"only {summary['requests']} requests")
    problems += [
        f"only {summary[name]} requests prefilled {place}"
        for place, name in PLACES.items()
        if summary[name] < 50
    ]
    for decision in evidence.decisions.values():
        above = decision.uncached_tokens > decision.threshold_tokens
        if (
            above
            and decision.id not in excused
            and (decision.place, decision.outcome) != ("remote", "verified")
        ):
            problems.append(
                f"request {decision.id} of {decision.uncached_tokens} uncached tokens was prefilled "
                f"{decision.place} ({decision.reason}), outcome {decision.outcome or 'none'}"
            )
    if summary["bytesSent"] != summary["bytesReceived"]:
        problems.append(f"{summary['bytesSent']} bytes sent, {summary['bytesReceived']} received")
    if summary["verified"] and not summary["bytesReceived"]:
        problems.append("hand-offs are verified, but no engine received a byte")
    return [*problems, *evidence.leftovers]


def _excused(decision: Decision, seen: Mapping[str, Seen], faults: Sequence[Fault]) -> bool:
    """Whether the request was above the threshold and met a fault: under way to a remote when it began, or
    arrived while it lasted, and was therefore prefilled elsewhere."""
    if decision.uncached_tokens <= decision.threshold_tokens or decision.id not in seen:
        return False
    if (decision.place, decision.outcome) == ("remote", "verified"):
        return False
    arrived, left = seen[decision.id].at_seconds, seen[decision.id].end_seconds
    return any(
        arrived <= (fault.end_seconds + RECOVERY_SECONDS if fault.everywhere else fault.start_seconds)
        and left >= fault.start_seconds
        for fault in faults
    )


def _ttft(seen: Iterable[Seen], decisions: Mapping[str, Decision]) -> dict[str, float]:
    result = {}
    for place, name in PLACES.items():
        times = [
            s.ttft_seconds for s in seen if s.ok and s.id in decisions and decisions[s.id].place == place
        ]
        if times:
            result[name] = round(fmean(times), 3)
    return result
