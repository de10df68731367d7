"""Failures on demand: what `POST /debug/faults` sets and the rest of the stand-in obeys."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Literal, get_args

Answer = Literal["ok", "refuse", "stall", "500", "reset"]
Transfer = Literal["ok", "cut", "stall", "fail"]
Params = Literal["ok", "drop", "partial"]


@dataclass
class Faults:
    """Current faults; all fields keep their value until set again."""

    answer: Answer = "ok"
    """Generating calls: refuse (503), stall (no answer), 500, reset (connection closed without an answer)."""
    count: int = -1
    """How many generating calls `answer` still hits; -1 is all."""
    transfer: Transfer = "ok"
    """cut: connections are reset and none accepted; stall: no more bytes; fail: each read is refused."""
    slowdown: float = 1.0
    """Factor on prefill times."""
    params: Params = "ok"
    """What becomes of kv_transfer_params in prefill answers (vLLM)."""
    die: bool = False
    """True: the process kills itself at once."""
    healthy: bool = True
    """False: /health answers 503."""

    def __post_init__(self) -> None:
        """Begin with bytes flowing."""
        self._flowing = asyncio.Event()
        self._flowing.set()

    async def flow(self) -> None:
        """Wait while transfers are stalled."""
        await self._flowing.wait()

    def show(self) -> dict[str, object]:
        """All current values."""
        return asdict(self)

    def next_answer(self) -> Answer:
        """The fault for one generating call; uses up `count`."""
        if self.answer == "ok" or self.count == 0:
            return "ok"
        if self.count > 0:
            self.count -= 1
        return self.answer

    def set(self, change: Mapping[str, object]) -> None:
        """Apply a change. Raises ValueError with a sentence when a name or value is unknown."""
        kinds: dict[str, tuple[object, ...]] = {
            "answer": get_args(Answer),
            "transfer": get_args(Transfer),
            "params": get_args(Params),
        }
        for name, value in change.items():
            if name not in {f.name for f in fields(self)}:
                raise ValueError(f"unknown fault {name}; known are {', '.join(f.name for f in fields(self))}")
            if name in kinds and value not in kinds[name]:
                raise ValueError(f"{name} must be one of {', '.join(map(str, kinds[name]))}")
            if name == "slowdown" and (
                not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0
            ):
                raise ValueError("slowdown must be a number, 0 or more")
            if name == "count" and (not isinstance(value, int) or isinstance(value, bool)):
                raise ValueError("count must be a whole number")
            if name in ("healthy", "die") and not isinstance(value, bool):
                raise ValueError(f"{name} must be true or false")
        for name, value in change.items():
            setattr(self, name, value)
        if self.transfer == "stall":
            self._flowing.clear()
        else:
            self._flowing.set()
