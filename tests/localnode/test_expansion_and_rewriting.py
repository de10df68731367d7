"""$(VAR) references, and what stands in for mounts and network namespaces."""

import pytest

from localnode.environment import build_launch
from localnode.expansion import expand
from localnode.pod import Manifest, parse_pod
from localnode.podstatus import Addresses
from localnode.rewriting import Rewriter


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$(A)", "1"),
        ("x$(A)$(B)y", "x12y"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(NO)", "$(NO)"),
        ("$(A", "$(A"),
        ("$A $", "$A $"),
        ("$()", "$()"),
        ("$(A)(B)", "1(B)"),
        ("cost$$", "cost$"),
    ],
)
def test_references_follow_the_rules_of_kubernetes(text: str, result: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == result


MOUNTS = {"/etc/app": "/real/1", "/etc/app/sub": "/real/2", "/data/": "/real/3"}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("/etc/app", "/real/1"),
        ("/etc/app/x.yaml", "/real/1/x.yaml"),
        ("/etc/app/sub/y", "/real/2/y"),
        ("--file=/etc/app/x,/data/z", "--file=/real/1/x,/real/3/z"),
        ("cat /etc/app/x;ls '/data'", "cat /real/1/x;ls '/real/3'"),
        ("/etc/apple", "/etc/apple"),
        ("/etc/app.d", "/etc/app.d"),
        ("/opt/etc/app", "/opt/etc/app"),
        ("http://h/data/x", "http://h/data/x"),
    ],
)
def test_mount_paths_are_replaced_where_a_path_begins(text: str, result: str) -> None:
    assert Rewriter(MOUNTS, "127.1.0.9").paths(text) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("http://127.0.0.1:8100/x", "http://127.1.0.9:8100/x"),
        ("127.0.0.1", "127.1.0.9"),
        ("a=127.0.0.1,b", "a=127.1.0.9,b"),
        ("127.0.0.10", "127.0.0.10"),
        ("1127.0.0.1", "1127.0.0.1"),
        ("127.0.0.1.example", "127.0.0.1.example"),
        ("0.0.0.0:80", "0.0.0.0:80"),
    ],
)
def test_the_loopback_address_becomes_the_address_of_the_pod(text: str, result: str) -> None:
    assert Rewriter({}, "127.1.0.9").everything(text) == result


class Known:
    """Objects of a namespace."""

    def config_map(self, name: str) -> Manifest | None:
        """One ConfigMap."""
        return {"data": {"url": "http://127.0.0.1:1", "file": "/etc/app/x"}} if name == "known" else None

    def secret(self, _name: str) -> Manifest | None:
        """No Secret."""
        return None


def test_what_the_node_injects_is_never_rewritten_even_where_a_command_refers_to_it() -> None:
    key = {"valueFrom": {"configMapKeyRef": {"name": "known", "key": "url"}}}
    container = {
        "name": "c",
        "image": "i",
        "command": ["run", "--api=$(KUBERNETES_SERVICE_HOST)", "--engine=http://127.0.0.1:8100"],
        "args": ["$(COPY)", "/etc/app/$(NAME)"],
        "env": [
            {"name": "COPY", "value": "$(KUBERNETES_SERVICE_HOST):127.0.0.1"},
            {"name": "NAME", "value": "n"},
            {"name": "URL", **key},
        ],
        "envFrom": [{"configMapRef": {"name": "known"}}],
    }
    meta = {"name": "p", "namespace": "n", "uid": "u"}
    pod = parse_pod({"metadata": meta, "spec": {"containers": [container]}})
    launch = build_launch(
        pod,
        pod.main[0],
        Known(),
        Addresses("127.1.0.1", "127.1.0.9"),
        Rewriter(MOUNTS, "127.1.0.9"),
        {"KUBERNETES_SERVICE_HOST": "127.0.0.1"},
    )
    assert launch.argv == (
        "run",
        "--api=127.0.0.1",
        "--engine=http://127.1.0.9:8100",
        "127.0.0.1:127.1.0.9",
        "/real/1/n",
    )
    assert launch.env["KUBERNETES_SERVICE_HOST"] == "127.0.0.1"
    assert launch.env["COPY"] == "127.0.0.1:127.1.0.9"
    # What comes from a ConfigMap may mean another machine: only its paths are the container's own.
    assert launch.env["URL"] == "http://127.0.0.1:1"
    assert launch.env["file"] == "/real/1/x"
