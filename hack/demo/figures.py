"""Series and totals for the report, from samples."""

from collections import Counter
from collections.abc import Iterable

from demo.observe import InstanceView, Observer
from demo.summary import Bytes


def egress(observer: Observer) -> list[tuple[float, float]]:
    """Rate of KV bytes that remote engines sent, in bit/s, between samples; a restarted counter counts from
    zero.
    """
    series: list[tuple[float, float]] = []
    before: dict[str, int] = {}
    last = None
    for sample in observer.samples:
        now = {
            v.uid: int(v.engine["sentBytes"]) for v in sample.instances if v.engine and v.cluster == "west"
        }
        moved = sum(
            count - before.get(uid, 0) if count >= before.get(uid, 0) else count for uid, count in now.items()
        )
        if last is not None and sample.at_seconds > last:
            series.append((sample.at_seconds, 8 * moved / (sample.at_seconds - last)))
        before, last = {**before, **now}, sample.at_seconds
    return series


def ready(instances: Iterable[InstanceView]) -> dict[str, int]:
    """Ready instances by pool and role."""
    return dict(Counter(f"{v.pool} {v.role}" for v in instances if v.ready))


def kv_bytes(observer: Observer) -> Bytes:
    """Bytes of finished transfers by request, as the engines on both ends booked them."""
    found = Bytes()
    for transfers in observer.transfers.values():
        for transfer in transfers:
            if transfer["state"] == "done":
                side = found.sent if transfer["direction"] == "sent" else found.received
                side[transfer["request_id"]] = side.get(transfer["request_id"], 0) + transfer["bytes"]
    return found
