"""Per-role patches merge as kubectl's strategic merge does, where that is well defined."""

from prfaas.render.patches import merge


def test_maps_merge_key_by_key_and_null_removes() -> None:
    base = {"spec": {"nodeSelector": {"a": "1", "b": "2"}, "priorityClassName": "high"}}
    patch = {"spec": {"nodeSelector": {"b": "3", "c": "4"}, "priorityClassName": None}}

    assert merge(base, patch) == {"spec": {"nodeSelector": {"a": "1", "b": "3", "c": "4"}}}


def test_containers_merge_by_name_and_new_ones_are_added() -> None:
    base = {"containers": [{"name": "engine", "image": "e:1", "args": ["a", "b"]}]}
    patch = {"containers": [{"name": "engine", "args": ["c"]}, {"name": "log", "image": "l:1"}]}

    assert merge(base, patch) == {
        "containers": [{"name": "engine", "image": "e:1", "args": ["c"]}, {"name": "log", "image": "l:1"}]
    }


def test_environment_entries_are_replaced_whole() -> None:
    base = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    patch = {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}

    assert merge(base, patch)["env"] == [patch["env"][0], {"name": "B", "value": "2"}]


def test_volumes_of_another_kind_replace_the_old_one() -> None:
    base = {"volumes": [{"name": "cache", "emptyDir": {}}]}
    patch = {"volumes": [{"name": "cache", "hostPath": {"path": "/models"}}]}

    assert merge(base, patch) == patch


def test_lists_without_identity_are_replaced() -> None:
    base = {"tolerations": [{"key": "a"}, {"key": "b"}], "command": ["x", "y"]}

    assert merge(base, {"tolerations": [{"key": "c"}], "command": ["z"]}) == {
        "tolerations": [{"key": "c"}],
        "command": ["z"],
    }


def test_an_element_can_be_removed() -> None:
    base = {"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]}

    merged = merge(base, {"volumes": [{"name": "a", "$patch": "delete"}]})

    assert merged == {"volumes": [{"name": "b", "emptyDir": {}}]}


def test_neither_side_is_changed() -> None:
    base = {"containers": [{"name": "engine", "env": [{"name": "A", "value": "1"}]}]}
    patch = {"containers": [{"name": "engine", "env": [{"name": "A", "value": "2"}]}]}
    before = repr((base, patch))

    merge(base, patch)

    assert repr((base, patch)) == before
