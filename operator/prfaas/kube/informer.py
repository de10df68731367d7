"""A local copy of a collection that follows the API server: list, then watch, for ever.

What a plain watch gets wrong and this does not: a deletion that happened while the watch was down is
noticed by comparing lists and reported like any other; an object deleted and made again under the same name
is reported as a deletion and an addition; an event seen twice is handled once; a watch that has fallen
silent is not mistaken for a quiet collection (`last_contact` grows old, bookmarks keep it young).
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Literal

from prfaas.kube.backoff import backoff_seconds
from prfaas.kube.client import PAGE, WATCH_SILENCE_SECONDS, ApiClient, WatchEvent
from prfaas.kube.errors import ApiError, Gone, Malformed, ServerError, TooManyRequests, Unreachable
from prfaas.kube.resources import Obj, Resource, key_of, version_of
from prfaas.kube.store import IndexFunction, Store

Change = Literal["ADDED", "MODIFIED", "DELETED"]
Handler = Callable[[Change, Obj | None, Obj | None], None]
"""Called as (change, old, new); synchronous and quick. An exception is logged and goes no further."""

RETRY_BASE_SECONDS = 0.5
RETRY_CAP_SECONDS = 10.0
QUICK_SECONDS = 1.0
"""A watch that ended sooner counts as a failure, so that a broken server is not hammered."""

_log = logging.getLogger(__name__)


def drop_managed_fields(obj: Obj) -> Obj:
    """The default transform: field ownership is half of an object's size, and nobody reads it."""
    obj["metadata"].pop("managedFields", None)
    return obj


class Informer:
    """Cache of one resource, by namespace and selectors."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        on_change: Handler | None = None,
        on_health: Callable[[bool], None] | None = None,
        transform: Callable[[Obj], Obj] = drop_managed_fields,
        indexes: Mapping[str, IndexFunction] | None = None,
        page: int = PAGE,
        retry_cap_seconds: float = RETRY_CAP_SECONDS,
    ) -> None:
        """`on_health` is called when `healthy` changes; like `on_change`, synchronous and quick."""
        self.resource = resource
        self.store = Store(indexes)
        self.synced = asyncio.Event()
        """Set after the first complete list."""
        self.last_contact = float("-inf")
        """time.monotonic() when the server last said something."""
        self.last_error: ApiError | None = None
        """Why list or watch failed last; None while it works."""
        self.relists = 0
        self._client = client
        self._namespace = namespace
        self._labels, self._fields = label_selector, field_selector
        self._on_change = on_change
        self._on_health, self._was_healthy = on_health, False
        self._transform = transform
        self._page = page
        self._retry_cap = retry_cap_seconds
        self._version = ""
        self._failures = 0
        self._nudged = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Run in a task of its own until `stop`."""
        if self._task is None:
            self._task = asyncio.create_task(self.run(), name=f"informer {self.resource.plural}")

    async def stop(self) -> None:
        """End the task made by `start`; the store stays as it is."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    @property
    def healthy(self) -> bool:
        """Whether the store is complete and the last list or watch went well."""
        return self.synced.is_set() and self.last_error is None

    def silent_seconds(self) -> float:
        """Time since the server last said something; infinite before the first answer."""
        return time.monotonic() - self.last_contact

    async def run(self) -> None:
        """Follow the collection until cancelled. Errors are retried for ever, with growing pauses."""
        while True:
            started, failed = time.monotonic(), False
            try:
                if not self._version:
                    await self._relist()
                await self._watch()
            except ApiError as error:
                self._note(error, lasted=time.monotonic() - started)
                failed = not isinstance(error, Gone)
            except Exception as error:
                # An object without what every object has: the copy is not current, and says so.
                self._note(Malformed(f"{type(error).__name__}: {error}"), lasted=0.0)
                failed = True
            if time.monotonic() - started >= QUICK_SECONDS:
                self._failures = 0
            else:
                failed = True
            if failed:
                self._failures += 1
                await self._pause()

    async def use(self, client: ApiClient) -> None:
        """Go on with another client for the same server (new credentials), from where it stands."""
        running = self._task is not None
        await self.stop()
        self._client = client
        if running:
            self.start()

    def nudge(self) -> None:
        """Try again now instead of after the pause: the server is known to be back."""
        self._nudged.set()

    def learn(self, obj: Obj) -> None:
        """Take in the answer to one of our own writes at once, without telling the handler.

        The watch's echo of it is no news then. `obj` must be one that the selectors match. An answer that the
        watch has overtaken teaches nothing: what the watch has passed and not kept is gone again.
        """
        obj = self._transform(obj)
        known = self.store.get(key_of(obj))
        seen = int(self._version or 0) if known is None else version_of(known)
        if seen < version_of(obj):
            self.store.put(key_of(obj), obj)

    def _note(self, error: ApiError, *, lasted: float) -> None:
        self.last_error = error
        self._tell_health()
        too_new = any(cause.get("reason") == "ResourceVersionTooLarge" for cause in error.causes())
        passing = isinstance(error, Unreachable | TooManyRequests | ServerError) or error.status >= 500
        if too_new or not passing:
            self._version = ""
        expected = isinstance(error, Gone) or lasted >= WATCH_SILENCE_SECONDS[0]
        if self._failures in (0, 5):
            level = logging.DEBUG if expected else logging.WARNING
            _log.log(level, "informer %s: %s", self.resource.plural, error)

    async def _pause(self) -> None:
        self._nudged.clear()
        seconds = backoff_seconds(
            self._failures, base_seconds=RETRY_BASE_SECONDS, cap_seconds=self._retry_cap
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._nudged.wait()

    async def _relist(self) -> None:
        listed = await self._client.list(
            self.resource,
            namespace=self._namespace,
            label_selector=self._labels,
            field_selector=self._fields,
            limit=self._page,
            transform=self._transform,
        )
        self._contact()
        self.relists += 1
        fresh = {key_of(obj): obj for obj in listed.items}
        version = int(listed.resource_version)
        for key, obj in list(self.store.items()):
            if key not in fresh and version_of(obj) <= version:
                self._delete(key)
        for key, obj in fresh.items():
            self._put(key, obj)
        self._version = listed.resource_version
        self.synced.set()
        self._tell_health()

    async def _watch(self) -> None:
        events = self._client.watch(
            self.resource,
            namespace=self._namespace,
            label_selector=self._labels,
            field_selector=self._fields,
            resource_version=self._version,
            on_open=self._contact,
        )
        async with aclosing(events):
            async for event in events:
                self._contact()
                self._take(event)

    def _take(self, event: WatchEvent) -> None:
        self._version = event.object["metadata"]["resourceVersion"]
        if event.type == "BOOKMARK":
            return
        obj = self._transform(event.object)
        key = key_of(obj)
        if event.type == "DELETED":
            known = self.store.get(key)
            if known is not None and known["metadata"].get("uid") == obj["metadata"].get("uid"):
                self._delete(key, final=obj)
        else:
            self._put(key, obj)

    def _contact(self) -> None:
        self.last_contact = time.monotonic()
        self.last_error = None
        self._tell_health()

    def _tell_health(self) -> None:
        if self.healthy != self._was_healthy:
            self._was_healthy = self.healthy
            if self._on_health is not None:
                self._on_health(self.healthy)

    def _put(self, key: str, obj: Obj) -> None:
        known = self.store.get(key)
        if known is not None:
            if version_of(known) >= version_of(obj):
                return
            if known["metadata"].get("uid") != obj["metadata"].get("uid"):
                self._delete(key)
        old = self.store.put(key, obj)
        self._emit("ADDED" if old is None else "MODIFIED", old, obj)

    def _delete(self, key: str, *, final: Obj | None = None) -> None:
        """`final` is the last state that a watch reports; after a relist only the last known one is there."""
        old = self.store.drop(key)
        if old is not None:
            self._emit("DELETED", final or old, None)

    def _emit(self, change: Change, old: Obj | None, new: Obj | None) -> None:
        try:
            if self._on_change is not None:
                self._on_change(change, old, new)
        except Exception:
            _log.exception("the handler of %s %s failed", self.resource.plural, change)
