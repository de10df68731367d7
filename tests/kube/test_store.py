"""The informer's store: objects by key, and indexes that follow every change."""

from hypothesis import given
from hypothesis import strategies as st

from prfaas.kube.resources import Obj
from prfaas.kube.store import Store


def labels(obj: Obj) -> list[str]:
    found: list[str] = obj["labels"]
    return found


def test_objects_are_found_by_key_and_by_every_value_of_an_index() -> None:
    store = Store({"label": labels})
    store.put("a/x", {"n": 1, "labels": ["red", "blue"]})
    store.put("a/y", {"n": 2, "labels": ["red"]})
    assert store["a/x"]["n"] == 1
    assert [o["n"] for o in store.by_index("label", "red")] == [1, 2]
    assert [o["n"] for o in store.by_index("label", "green")] == []


def test_a_replaced_object_leaves_its_old_values() -> None:
    store = Store({"label": labels})
    store.put("x", {"n": 1, "labels": ["red"]})
    old = store.put("x", {"n": 2, "labels": ["blue"]})
    assert old is not None
    assert old["n"] == 1
    assert store.by_index("label", "red") == []
    assert store.drop("x") == {"n": 2, "labels": ["blue"]}
    assert store.drop("x") is None
    assert store.by_index("label", "blue") == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"), st.none() | st.lists(st.sampled_from("rgb"), unique=True, max_size=3)
        )
    )
)
def test_an_index_always_equals_what_a_full_scan_finds(steps: list[tuple[str, list[str] | None]]) -> None:
    store = Store({"label": labels})
    for key, values in steps:
        if values is None:
            store.drop(key)
        else:
            store.put(key, {"key": key, "labels": values})
    for value in "rgb":
        scanned = sorted(o["key"] for o in store.values() if value in o["labels"])
        assert [o["key"] for o in store.by_index("label", value)] == scanned
