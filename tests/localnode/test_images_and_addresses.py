"""Image mappings and pod addresses."""

from pathlib import Path

import pytest

from localnode import LocalNode
from localnode.addresses import AddressesExhausted, AddressPool
from localnode.images import ImageMapError, Images


def test_the_longest_prefix_that_ends_at_a_boundary_wins(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    images = Images([f"localhost/app={tmp_path}", f"localhost/app/sub={tmp_path / 'sub'}", "pause=builtin"])
    for name in ("localhost/app", "localhost/app:dev", "localhost/app@sha256:0", "localhost/app/x:1"):
        found = images.find(name)
        assert found is not None
        assert found.directory == tmp_path
    nested = images.find("localhost/app/sub:2")
    assert nested is not None
    assert nested.directory == tmp_path / "sub"
    assert images.find("localhost/apple:1") is None
    assert images.find("other") is None


def test_programs_come_from_the_image_first_then_from_the_machine(tmp_path: Path) -> None:
    program = tmp_path / "sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    image = Images([f"i={tmp_path}"]).find("i")
    assert image is not None
    assert image.executable(("sh", "-c", "x")) == (str(program), "-c", "x")
    machine = image.executable(("sleep", "1"))
    assert machine is not None
    assert machine[0].endswith("/sleep")
    assert image.executable(("no-such-program",)) is None
    assert image.executable(()) is None


def test_the_builtin_needs_no_command() -> None:
    image = Images(["pause=builtin"]).find("pause:3.10")
    assert image is not None
    argv = image.executable(())
    assert argv is not None
    assert argv[1:] == ("infinity",)


@pytest.mark.parametrize("mapping", ["no-separator", "=x", "i=", "i=/no/such/directory"])
def test_a_mapping_that_cannot_work_is_refused(mapping: str) -> None:
    with pytest.raises(ImageMapError, match=mapping):
        Images([mapping])


def test_relative_directories_count_from_where_the_node_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.chdir(tmp_path)
    node = LocalNode("n", "kubeconfig", "node", images=["app=bin", "pause=builtin"])
    assert node.settings.images == (f"app={tmp_path / 'bin'}", "pause=builtin")
    assert node.settings.kubeconfig == str(tmp_path / "kubeconfig")
    assert node.directory == tmp_path / "node"


def test_addresses_are_distinct_within_the_range_and_not_reused_at_once() -> None:
    pool = AddressPool("127.20.0.0/24")
    first = pool.take()
    pool.release(first)
    others = {pool.take() for _ in range(200)}
    assert len(others) == 200
    assert first not in others
    assert pool.node not in others
    assert all(address.startswith("127.20.0.") for address in others)


def test_a_range_can_be_exhausted_and_recovers() -> None:
    pool = AddressPool("127.20.0.0/28")
    taken = [pool.take() for _ in range(13)]
    with pytest.raises(AddressesExhausted, match=r"127\.20\.0\.0/28"):
        pool.take()
    pool.release(taken[3])
    assert pool.take() == taken[3]


def test_settings_that_cannot_work_are_refused(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{}")
    with pytest.raises(ValueError, match="not within 127"):
        LocalNode("n", kubeconfig, tmp_path / "n", pod_cidr="10.0.0.0/16").start()
    with pytest.raises(ValueError, match="no kubeconfig"):
        LocalNode("n", tmp_path / "none", tmp_path / "n").start()
