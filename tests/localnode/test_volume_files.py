"""Files of volumes are replaced in one step."""

import os
from pathlib import Path

from localnode.volumes import File
from localnode.volumewriter import write_volume


def test_files_and_directories_of_a_volume_are_written(tmp_path: Path) -> None:
    assert write_volume(tmp_path, {"a": File(b"1", 0o600), "deep/er/b": File(b"2", 0o644)})
    assert (tmp_path / "a").read_bytes() == b"1"
    assert (tmp_path / "deep/er/b").read_bytes() == b"2"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_equal_content_changes_nothing(tmp_path: Path) -> None:
    files = {"a": File(b"1", 0o644)}
    write_volume(tmp_path, files)
    before = (tmp_path / "..data").readlink()
    assert not write_volume(tmp_path, files)
    assert (tmp_path / "..data").readlink() == before


def test_new_content_replaces_all_files_at_once_and_leaves_nothing_behind(tmp_path: Path) -> None:
    write_volume(tmp_path, {"a": File(b"1", 0o644), "gone": File(b"x", 0o644)})
    opened = (tmp_path / "a").open("rb")
    assert write_volume(tmp_path, {"a": File(b"2", 0o644), "new": File(b"y", 0o644)})
    with opened:
        assert opened.read() == b"1"
    assert (tmp_path / "a").read_bytes() == b"2"
    assert (tmp_path / "new").read_bytes() == b"y"
    assert not os.path.lexists(tmp_path / "gone")
    assert len([entry for entry in tmp_path.iterdir() if entry.is_dir() and not entry.is_symlink()]) == 1


def test_an_empty_volume_is_an_empty_directory(tmp_path: Path) -> None:
    write_volume(tmp_path / "v", {})
    assert [p.name for p in (tmp_path / "v").iterdir() if not p.name.startswith("..")] == []
