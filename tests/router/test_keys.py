"""Who may send prefill work: peers that show a key of the file, or one whose hash the table has."""

import hashlib
from pathlib import Path

import msgspec
from tests.router.conftest import Fleet, prompt, until

from prfaas.router.keys import RECHECK_SECONDS, Keys

KEY = "5f1d" * 16


def test_without_a_file_or_the_wish_for_a_key_the_network_is_trusted() -> None:
    assert Keys(None).accepts(None, 0.0)


def test_a_key_that_is_required_but_not_known_yet_lets_nobody_in() -> None:
    keys = Keys(None, required=True)
    assert not keys.accepts(None, 0.0)
    assert not keys.accepts("", 0.0)
    assert not keys.accepts(KEY, 0.0)


def test_the_hash_of_a_key_in_the_table_lets_its_owner_in_and_nobody_else() -> None:
    keys = Keys(None, required=True)
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    keys.follow([digest])
    assert keys.accepts(KEY, 0.0)
    assert not keys.accepts(digest, 0.0), "knowing the hash must not be enough"
    assert not keys.accepts(KEY[:-1], 0.0)


def test_a_hash_that_leaves_the_table_locks_its_owner_out() -> None:
    keys = Keys(None, required=True)
    keys.follow([hashlib.sha256(KEY.encode()).hexdigest()])
    keys.follow([])
    assert not keys.accepts(KEY, 0.0)


def test_a_key_of_the_file_is_accepted_beside_those_of_the_table(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("mine\n")
    keys = Keys(file)
    keys.follow([hashlib.sha256(KEY.encode()).hexdigest()])
    assert keys.own(0.0) == b"mine"
    assert keys.accepts("mine", 0.0)
    assert keys.accepts(KEY, 0.0)
    assert not keys.accepts("other", 0.0)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("one")
    keys = Keys(path)
    assert keys.accepts("one", 0.0)
    path.write_text("three")
    assert keys.accepts("three", RECHECK_SECONDS)
    assert not keys.accepts("one", RECHECK_SECONDS)
    path.unlink()
    assert keys.accepts("three", 2 * RECHECK_SECONDS)


def test_a_directory_holds_a_key_in_each_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("two")
    (tmp_path / "..data").write_text("hidden")
    keys = Keys(tmp_path)
    assert [keys.accepts(key, 0.0) for key in ("one", "two", "hidden")] == [True, True, False]


async def test_a_remote_serves_only_pools_whose_key_its_table_knows(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    decode = await fleet.add("d", pool="pd", role="decode", key_file=tmp_path / "key")
    remote = await fleet.add("r", pool="far", role="prefill", config={"require_key": True})
    fleet.publish()
    await until(lambda: remote.router.counters.gate["unauthorized"] > 0)
    _, headers, _ = await fleet.post(decode, {"model": "m", "prompt": prompt(1000)})
    assert headers["x-prfaas-reason"] == "NoRemoteReady"
    table = msgspec.structs.replace(
        remote.router.tables.topology, generation=99, key_hashes=(hashlib.sha256(b"secret").hexdigest(),)
    )
    remote.router.tables.offer_topology(msgspec.json.encode(table), remote.router.now())
    await until(lambda: decode.router.peers.get("uid-r").reachable)
    _, headers, _ = await fleet.post(decode, {"model": "m", "prompt": prompt(1000, 2)})
    assert headers["x-prfaas-path"] == "remote"
    assert all("x-prfaas-key" not in seen.headers for seen in remote.engine.calls())
