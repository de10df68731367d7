"""Other ways to route, for comparison: earliest finish and the length-blind split. Not used in production.

Earliest finish sends a prompt where its first token is predicted to come first. The length-blind split
sends a fixed share away whatever the length: the middle baseline that the paper leaves out.
"""

from collections.abc import Mapping

from prfaas.policy.types import Candidate, Decision, Place, Reason, Snapshot


def earliest_finish(
    snapshot: Snapshot, *, transfer_seconds: Mapping[str, float], overlapped: bool = True
) -> Decision:
    """The place whose first token comes first.

    `transfer_seconds` is by pool what the hand-off takes on an idle link. With `overlapped` it runs beside
    the prefill, behind the link's backlog; without, it begins when the prefill has ended.
    """
    total = snapshot.total_tokens
    best: tuple[float, Place, Candidate, str | None] | None = None
    for candidate in snapshot.local:
        finish = _prefill_end(candidate, total)
        if best is None or finish < best[0]:
            best = (finish, Place.LOCAL, candidate, None)
    for remote in snapshot.remotes:
        wire, queued = transfer_seconds[remote.pool], remote.link_backlog_seconds
        for candidate in remote.instances:
            end = _prefill_end(candidate, total)
            if overlapped:
                finish = max(end, max(candidate.backlog_seconds or 0.0, queued) + wire)
            else:
                finish = max(end, queued) + wire
            if best is None or finish < best[0]:
                best = (finish, Place.REMOTE, candidate, remote.pool)
    if best is None:
        return Decision(Place.IN_PLACE, Reason.NO_REMOTE, None, None, total, 0.0)
    _, place, chosen, pool = best
    reason = Reason.TILTED_REMOTE if place is Place.REMOTE else Reason.TILTED_LOCAL
    return Decision(place, reason, chosen.id, pool, total - chosen.cached_tokens, 0.0)


def length_blind(snapshot: Snapshot, *, remote_share: float, draw: float) -> Decision:
    """Remote iff `draw`, uniform in [0, 1), is below `remote_share`; then the least loaded instance."""
    total = snapshot.total_tokens
    remote = [(c, r.pool) for r in snapshot.remotes for c in r.instances]
    if remote and (draw < remote_share or not snapshot.local):
        chosen, pool = min(remote, key=lambda pair: pair[0].backlog_seconds or 0.0)
        return Decision(Place.REMOTE, Reason.ABOVE_THRESHOLD, chosen.id, pool, total, 0.0)
    if not snapshot.local:
        return Decision(Place.IN_PLACE, Reason.NO_REMOTE, None, None, total, 0.0)
    chosen = min(snapshot.local, key=lambda c: c.backlog_seconds or 0.0)
    return Decision(Place.LOCAL, Reason.BELOW_THRESHOLD, chosen.id, None, total, 0.0)


def _prefill_end(candidate: Candidate, total: int) -> float:
    backlog = candidate.backlog_seconds or 0.0
    if candidate.curve is None:
        return backlog
    return backlog + candidate.curve.seconds(total - candidate.cached_tokens, candidate.cached_tokens)
