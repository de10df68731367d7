"""Runs reconcilers for keys and turns their outcomes into when to look again."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from prfaas.controller.keys import Key, Kind
from prfaas.controller.outcomes import Done, Outcome, Terminal, Wait
from prfaas.kube.errors import ApiError, Conflict, Forbidden, Unreachable
from prfaas.kube.lease import LeadershipLost
from prfaas.kube.queue import QueueObserver
from prfaas.telemetry import definitions as d
from prfaas.telemetry.metrics import Metrics

Reconcile = Callable[[Key], Awaitable[Outcome]]

_log = logging.getLogger(__name__)


class TryAgain(Exception):
    """Tells the queue to come back with back-off; the text is the reason."""


class Dispatcher:
    """The handler of the work queue."""

    def __init__(self, reconcilers: Mapping[Kind, Reconcile], *, tables: Reconcile, metrics: Metrics) -> None:
        """`tables` serves the table aspect of both pool kinds."""
        self._reconcilers = reconcilers
        self._tables = tables
        self._metrics = metrics

    async def handle(self, key: Key) -> float | None:
        """Reconcile one key; seconds until it wants to be looked at again. Raises TryAgain for back-off."""
        started = time.monotonic()
        name = "error"
        reconcile = self._tables if key.aspect == "tables" else self._reconcilers[key.kind]
        try:
            outcome = await reconcile(key)
            name = type(outcome).__name__.lower()
            return self._again(key, outcome)
        except LeadershipLost as lost:
            name = "lost"
            _log.info("%s: stopped, %s", key, lost)
            return None
        except ApiError as error:
            raise TryAgain(explain(error)) from error
        finally:
            kind = key.kind if key.aspect == "object" else "Tables"
            self._metrics.count(d.RECONCILES, kind=kind, outcome=name)
            self._metrics.observe(d.RECONCILE_SECONDS, time.monotonic() - started, kind=kind)

    def failed(self, key: Key, error: Exception) -> None:
        """Log a failure as it deserves: what passes by itself in one line, a fault of ours with its trace."""
        if isinstance(error, TryAgain):
            _log.info("%s: again later, %s", key, error)
        elif isinstance(error, TimeoutError):
            _log.warning("%s: took too long, again later", key)
        else:
            _log.error("%s: internal error", key, exc_info=error)

    def _again(self, key: Key, outcome: Outcome) -> float | None:
        if isinstance(outcome, Done):
            return outcome.again_in
        if isinstance(outcome, Wait):
            _log.debug("%s: waits, %s", key, outcome.reason)
            return outcome.again_in
        if isinstance(outcome, Terminal):
            _log.debug("%s: %s", key, outcome.reason)
            return None
        if outcome.after > 0:
            _log.info("%s: again in %.1f s, %s", key, outcome.after, outcome.reason)
            return outcome.after
        raise TryAgain(outcome.reason)


def explain(error: ApiError) -> str:
    """An API error as one line for a log or a condition."""
    if isinstance(error, Conflict):
        return "the object changed meanwhile"
    if isinstance(error, Forbidden):
        return f"not permitted: {error.message}"
    if isinstance(error, Unreachable):
        return f"no answer: {error.message}"
    return str(error)


class Observer(QueueObserver):
    """Exports the queue's depth."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def depth(self, waiting: int) -> None:
        """Keys waiting for a worker."""
        self._metrics.set(d.QUEUE_DEPTH, waiting)
