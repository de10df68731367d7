"""Random pools for the slot planner's property tests."""

from hypothesis import strategies as st

from prfaas.policy.slots import Pod, Role, RoleWanted, Slot, Wanted

REVISIONS = ("a", "b")


def role_wanted(count: int, *, revision: str = "a", minimum: int = 0) -> RoleWanted:
    """A role whose template hash follows its revision."""
    return RoleWanted(count, revision, f"{revision}+router", minimum)


@st.composite
def pools(draw: st.DrawFn, *, max_count: int = 4) -> Wanted:
    """A PrfaasPool (one role) or a PDPool (both), not paused."""
    roles: list[Role] = draw(st.sampled_from([["prefill"], ["prefill", "decode"]]))
    wanted: dict[Role, RoleWanted] = {}
    for role in roles:
        count = draw(st.integers(0, max_count))
        minimum = draw(st.integers(0, count))
        wanted[role] = role_wanted(count, revision=draw(st.sampled_from(REVISIONS)), minimum=minimum)
    return Wanted(wanted, max_unavailable=draw(st.integers(1, 3)))


pods = st.builds(
    Pod,
    uid=st.uuids().map(str),
    ready=st.booleans(),
    terminating=st.booleans(),
    terminal=st.booleans(),
    revision=st.sampled_from(REVISIONS),
    role=st.sampled_from([None, "prefill", "decode"]),
    age_seconds=st.sampled_from([0.0, 15.0, 40.0, 900.0]),
    load=st.sampled_from([None, 0.0, 1.0, 2.0]),
).map(
    lambda pod: (
        pod if pod.live else Pod(pod.uid, False, pod.terminating, pod.terminal, pod.revision, pod.role)
    )
)


def slots(*, both_roles: bool = True) -> st.SearchStrategy[list[Slot]]:
    """Any slots that a cluster could show, well or ill."""
    roles = ["prefill", "decode"] if both_roles else ["prefill"]
    one = st.builds(
        Slot,
        number=st.integers(0, 9),
        role=st.sampled_from(roles),
        revision=st.sampled_from(REVISIONS),
        template=st.sampled_from(["a+router", "b+router", "old"]),
        pods=st.lists(pods, max_size=4, unique_by=lambda pod: pod.uid).map(tuple),
        deleting=st.booleans(),
        observed=st.booleans(),
        replicas=st.integers(0, 2),
        failures=st.integers(0, 3),
        zero_seconds=st.sampled_from([0.0, 50.0, 5000.0]),
    )
    return st.lists(one, max_size=7, unique_by=lambda slot: slot.number)
