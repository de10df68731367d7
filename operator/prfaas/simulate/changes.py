"""Things that happen to the world on the way: links, rates, lengths, outputs, failures."""

from msgspec.structs import replace

from prfaas.policy.types import Place
from prfaas.simulate.scenario import Change
from prfaas.simulate.world import World


def schedule_changes(world: World) -> None:
    """Put the scenario's changes on the clock."""
    for change in world.scenario.changes:
        world.events.at(change.at, lambda now, what: apply(world, now, what), change)


def apply(world: World, now: float, change: Change) -> None:
    """Let one change happen."""
    if change.kind == "link":
        for site in world.sites:
            if change.target in ("", site.name):
                for request in site.link.set_capacity(now, change.value):
                    if request.ready_at < float("inf"):
                        what = (request, request.attempt, request.ready_at)
                        world.events.at(request.ready_at, world.arrived_over_link, what)
    elif change.kind == "rate":
        world.arrivals.rate = change.value
    elif change.kind == "lengths":
        world.arrivals.length_factor = change.value
    elif change.kind == "output":
        world.arrivals.output_tokens = round(change.value)
    elif change.kind == "threshold":
        world.rule = replace(world.rule, threshold_tokens=round(change.value))
    elif change.kind == "fail":
        fail(world, now, change.target)
    else:
        world.events.at(
            now + world.scenario.warm_up_seconds, lambda _, name: restore(world, name), change.target
        )


def fail(world: World, now: float, name: str) -> None:
    """A prefill instance dies with its cache; its prompts are routed anew."""
    instance = next((p for p in world.prefills if p.id == name), None)
    if instance is None or name in world.failed:
        return
    world.failed[name] = instance
    if instance in world.local:
        world.local = [p for p in world.local if p is not instance]
    for site in world.sites:
        if instance in site.instances:
            site.instances = [p for p in site.instances if p is not instance]
    if instance.cache is not None:
        instance.cache.clear()
    lost = instance.take_all(now)
    if instance.link is not None:
        held = [r for r in instance.link.pending.values() if r.source == instance.index]
        for request in held:
            del instance.link.pending[request.index]
            request.attempt += 1
        lost.extend(held)
    for request in lost:
        if request.place is Place.REMOTE:
            world.recorder.remote[request.index] = 0
        world.route(now, request)


def restore(world: World, name: str) -> None:
    """A failed instance is back, empty and warm."""
    instance = world.failed.pop(name, None)
    if instance is None:
        return
    if instance.pool is None:
        world.local = [*world.local, instance]
        return
    for site in world.sites:
        if site.name == instance.pool:
            site.instances = [*site.instances, instance]
