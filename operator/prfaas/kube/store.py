"""What an informer knows: objects by key, with indexes kept up to date on each change."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prfaas.kube.resources import Obj

IndexFunction = Callable[[Obj], Iterable[str]]
"""Index values of an object, for example the owner's uid."""


class Store(Mapping[str, Obj]):
    """Objects by `namespace/name` (`name` for cluster-scoped ones). Callers must not change them."""

    def __init__(self, indexes: Mapping[str, IndexFunction] | None = None) -> None:
        self._objects: dict[str, Obj] = {}
        self._functions = dict(indexes or {})
        self._indexes: dict[str, dict[str, set[str]]] = {name: {} for name in self._functions}

    def __getitem__(self, key: str) -> Obj:
        return self._objects[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def by_index(self, index: str, value: str) -> list[Obj]:
        """Objects with this index value, ordered by key."""
        return [self._objects[key] for key in sorted(self._indexes[index].get(value, ()))]

    def put(self, key: str, obj: Obj) -> Obj | None:
        """Store an object; returns the one it replaces."""
        old = self._objects.get(key)
        if old is not None:
            self._unindex(key, old)
        self._objects[key] = obj
        for name, function in self._functions.items():
            for value in function(obj):
                self._indexes[name].setdefault(value, set()).add(key)
        return old

    def drop(self, key: str) -> Obj | None:
        """Remove an object; returns it if it was there."""
        old = self._objects.pop(key, None)
        if old is not None:
            self._unindex(key, old)
        return old

    def _unindex(self, key: str, obj: Obj) -> None:
        for name, function in self._functions.items():
            index = self._indexes[name]
            for value in function(obj):
                keys = index.get(value)
                if keys is not None:
                    keys.discard(key)
                    if not keys:
                        del index[value]
