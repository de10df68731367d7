"""What is started and killed, from spec and observation alone."""

from __future__ import annotations

from typing import Any

import pytest

from localnode.plan import Kill, KillReason, plan
from localnode.pod import Pod, ProbeKind, parse_pod
from localnode.run import Observed, Result, Run

PROBE = {"exec": {"command": ["true"]}}


def pod(*main: str, init: tuple[dict[str, Any], ...] = (), policy: str = "Always", **fields: Any) -> Pod:
    """A pod with main containers of these names; `fields` go to each of them."""
    return parse_pod(
        {
            "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {
                "restartPolicy": policy,
                "initContainers": list(init),
                "containers": [{"name": name, "image": "i", **fields} for name in main],
            },
        }
    )


def running(**fields: Any) -> Observed:
    """A container that runs."""
    run = Run(id="r", image=fields.pop("image", "i"), restart_count=0, started_at=0.0)
    return Observed(current=run, **fields)


def exited(code: int, **fields: Any) -> Observed:
    """A container that has ended."""
    run = Run(id="r", image="i", restart_count=0, started_at=0.0, finished_at=1.0, exit_code=code)
    run.lost = fields.pop("lost", False)
    return Observed(current=run, **fields)


INIT_A = {"name": "a", "image": "i"}
INIT_B = {"name": "b", "image": "i"}
SIDE = {"name": "side", "image": "i", "restartPolicy": "Always"}
GATED = {**SIDE, "startupProbe": PROBE}


def test_all_main_containers_start_together() -> None:
    assert plan(pod("x", "y"), {}).starts == ["x", "y"]


def test_only_the_first_init_container_starts() -> None:
    assert plan(pod("x", init=(INIT_A, INIT_B)), {}).starts == ["a"]


@pytest.mark.parametrize(
    ("seen", "starts"),
    [
        ({"a": running()}, []),
        ({"a": exited(0)}, ["b"]),
        ({"a": exited(1)}, ["a"]),
        ({"a": exited(0), "b": running()}, []),
        ({"a": exited(0), "b": exited(0)}, ["x"]),
    ],
)
def test_init_containers_follow_each_other(seen: dict[str, Observed], starts: list[str]) -> None:
    assert plan(pod("x", init=(INIT_A, INIT_B)), seen).starts == starts


def test_a_failed_init_container_ends_a_pod_that_is_never_restarted() -> None:
    assert plan(pod("x", init=(INIT_A,), policy="Never"), {"a": exited(1)}).kill_pod


def test_an_init_container_that_has_run_is_not_repeated_once_main_containers_run() -> None:
    seen = {"x": running()}
    assert plan(pod("x", init=(INIT_A, INIT_B)), seen).starts == []


def test_after_the_loss_of_the_node_init_containers_run_again() -> None:
    seen = {"a": exited(0, lost=True), "x": exited(137, lost=True)}
    assert plan(pod("x", init=(INIT_A,)), seen).starts == ["a"]


@pytest.mark.parametrize(
    ("probes", "starts"),
    [({}, []), ({ProbeKind.STARTUP: Result.UNKNOWN}, []), ({ProbeKind.STARTUP: Result.SUCCESS}, ["x"])],
)
def test_a_sidecar_lets_the_next_go_when_its_start_up_probe_succeeds(
    probes: dict[ProbeKind, Result], starts: list[str]
) -> None:
    assert plan(pod("x", init=(GATED,)), {"side": running(probes=probes)}).starts == starts


def test_a_sidecar_without_start_up_probe_lets_the_next_go_at_once() -> None:
    assert plan(pod("x", init=(SIDE, INIT_B)), {"side": running()}).starts == ["b"]


def test_a_crashed_sidecar_is_started_beside_running_main_containers() -> None:
    assert plan(pod("x", init=(SIDE,)), {"side": exited(1), "x": running()}).starts == ["side"]


def test_a_sidecar_is_not_kept_when_all_main_containers_are_done() -> None:
    seen = {"side": running(), "x": exited(0)}
    assert plan(pod("x", init=(SIDE,), policy="OnFailure"), seen).kill_pod


@pytest.mark.parametrize(
    ("policy", "code", "starts"),
    [
        ("Always", 0, ["x"]),
        ("Always", 1, ["x"]),
        ("OnFailure", 0, []),
        ("OnFailure", 1, ["x"]),
        ("Never", 1, []),
    ],
)
def test_the_restart_policy_decides(policy: str, code: int, starts: list[str]) -> None:
    decided = plan(pod("x", "y", policy=policy), {"x": exited(code), "y": running()})
    assert decided.starts == starts
    assert not decided.kill_pod


def test_a_changed_image_kills_and_restarts_whatever_the_policy() -> None:
    decided = plan(pod("x", "y", policy="Never"), {"x": running(image="old"), "y": running()})
    assert decided.kills == [Kill("x", KillReason.CHANGED)]
    restarted = exited(143, restart=True)
    assert plan(pod("x", "y", policy="Never"), {"x": restarted, "y": running()}).starts == ["x"]


def test_a_failed_liveness_probe_restarts_but_for_the_policy_never() -> None:
    seen = {"x": running(probes={ProbeKind.LIVENESS: Result.FAILURE}), "y": running()}
    assert plan(pod("x", "y"), seen).kills == [Kill("x", KillReason.LIVENESS)]
    assert plan(pod("x", "y", policy="Never"), seen).kills == [Kill("x", KillReason.LIVENESS, restart=False)]


def test_the_last_container_to_fail_its_probe_ends_a_pod_that_is_never_restarted() -> None:
    seen = {"x": running(probes={ProbeKind.LIVENESS: Result.FAILURE})}
    assert plan(pod("x", policy="Never"), seen).kill_pod


def test_a_container_that_is_being_killed_is_left_alone_even_after_its_process_ended() -> None:
    for seen in (
        running(stopping=True, probes={ProbeKind.LIVENESS: Result.FAILURE}),
        exited(1, stopping=True),
    ):
        decided = plan(pod("x"), {"x": seen})
        assert (decided.kills, decided.starts, decided.kill_pod) == ([], [], False)
        decided = plan(pod("x", init=(SIDE,)), {"side": seen, "x": running()})
        assert (decided.kills, decided.starts, decided.kill_pod) == ([], [], False)
