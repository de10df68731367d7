"""Who may send prefill work: peers that show a key of the file, or one whose hash the table has."""

import hashlib
from pathlib import Path

from prfaas.router.keys import Keys

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
