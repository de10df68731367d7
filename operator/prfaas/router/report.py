"""`GET /v1/report`: this router's counters and gauges in at most 4 KB, for the operator's loops."""

import msgspec

from prfaas.api.meta import ROLE_PREFILL
from prfaas.api.report import MAX_REPORT_BYTES, Report
from prfaas.router.core import Router


def make_report(router: Router) -> Report:
    """The report as of now."""
    now, counters, tables = router.now(), router.counters, router.tables
    topology, control, own = tables.topology, tables.control, tables.own
    reasons: dict[str, int] = {}
    for (_, reason), count in counters.decisions.items():
        reasons[reason] = reasons.get(reason, 0) + count
    healthy = router.engine.last_known_healthy
    return Report(
        instance=router.config.instance,
        start=router.start,
        uptime_seconds=round(now - router.started, 1),
        role=own.role if own else "",
        state="Draining" if router.draining else "Ready" if healthy else "NotReady",
        ready=healthy and not router.draining,
        engine_healthy=healthy,
        topology_generation=topology.generation if topology else 0,
        control_generation=control.generation if control else 0,
        control_age_seconds=round(tables.control_age(now) or 0.0, 1),
        requests=counters.request_count,
        failed=counters.failed,
        rejected=sum(counters.rejections.values()),
        fallbacks=sum(counters.fallbacks.values()),
        places=counters.places,
        reasons=reasons,
        outcomes=counters.hand_offs,
        reachable=_reachable(router, now),
        links=[link.report() for link in router.links.all()],
        uncached_tokens=_trimmed(counters.uncached.counts),
        output_tokens=counters.output_tokens,
        gate_backlog_seconds=round(router.gate.backlog_seconds() or 0.0, 4),
        gate_queued=router.gate.queued,
        gate_running=router.gate.running,
        streams=counters.streams,
        unfetched=len(router.unfetched),
        decode_running=router.watch.running,
        mean_tilt_tokens=round(counters.tilt_tokens / counters.tilted, 1) if counters.tilted else 0.0,
    )


def encode_report(report: Report) -> bytes:
    """JSON of at most MAX_REPORT_BYTES; the longest lists are cut first if there are too many links."""
    data = msgspec.json.encode(report)
    while len(data) > MAX_REPORT_BYTES and report.links:
        report.links = report.links[:-1]
        data = msgspec.json.encode(report)
    return data


def _reachable(router: Router, now: float) -> dict[str, int]:
    counts: dict[str, int] = {}
    for peer in router.peers:
        if peer.instance.role == ROLE_PREFILL and peer.usable(now, router.peers.expiry_seconds):
            counts[peer.instance.pool] = counts.get(peer.instance.pool, 0) + 1
    return counts


def _trimmed(counts: list[int]) -> list[int]:
    end = len(counts)
    while end and not counts[end - 1]:
        end -= 1
    return counts[:end]
