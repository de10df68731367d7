"""ModelProfile: the numbers of a model that thresholds, splits and predictions are computed from."""

from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel

from prfaas.api.base import ApiModel, Resource, Rule, Status
from prfaas.api.constraints import ListMap, Spelled
from prfaas.api.fields import DecimalString, Duration, Name, Quantity, Tokens, Within
from prfaas.api.workload import Workload

PointTime = Annotated[Duration, Within("1us", "24h")]


def _fits(kind: str, *, needed: tuple[str, ...], refused: tuple[str, ...]) -> Rule:
    """A group of `kind` has the fields (by attribute) in `needed` and none of those in `refused`."""
    terms = [f"has(self.{to_camel(f)})" for f in needed] + [f"!has(self.{to_camel(f)})" for f in refused]
    wanted, unwanted = " and ".join(map(to_camel, needed)), ", ".join(map(to_camel, refused))

    def holds(group: "CacheGroup") -> bool:
        given = [getattr(group, field) is not None for field in needed]
        taboo = [getattr(group, field) is not None for field in refused]
        return group.kind != kind or (all(given) and not any(taboo))

    return Rule(
        cel=f"self.kind != '{kind}' || ({' && '.join(terms)})",
        message=f"A group of kind {kind} needs {wanted} and takes no {unwanted}.",
        holds=holds,
    )


class CacheGroup(ApiModel):
    """One KV cache group: layers that keep the same kind of state."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        _fits(
            "Full",
            needed=("bytes_per_token",),
            refused=("bytes_per_sequence", "window_tokens", "snapshot_tokens"),
        ),
        _fits(
            "Window",
            needed=("bytes_per_token", "window_tokens"),
            refused=("bytes_per_sequence", "snapshot_tokens"),
        ),
        _fits("Recurrent", needed=("bytes_per_sequence",), refused=("bytes_per_token", "window_tokens")),
    )

    name: Name
    """Name of the group, unique in the profile."""
    kind: Literal["Full", "Window", "Recurrent"]
    """How the state grows. Full: with every token. Window: with every token up to windowTokens, then no more.
    Recurrent: not at all; it ships whole with every hand-off, and a prefix hit counts only up to a stored
    snapshot."""
    bytes_per_token: Quantity | None = None
    """Bytes per token of all layers of the group together. Full and Window only."""
    bytes_per_sequence: Quantity | None = None
    """Bytes of one sequence's state, whatever its length. Recurrent only."""
    window_tokens: Tokens | None = None
    """Tokens of the window. Window only."""
    block_tokens: Annotated[int, Field(ge=1, le=65_536)] = 1
    """Tokens per block; the group's size rounds up to whole blocks. 1 means no rounding."""
    snapshot_tokens: Tokens | None = None
    """Distance in tokens between stored snapshots of the state. Recurrent only; left out, no snapshot is kept
    and a prefix never hits."""


class KvCache(ApiModel):
    """Size of the KV cache that prefill makes: groups, or the short form fixedBytes and bytesPerToken."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="(has(self.groups) && size(self.groups) > 0) != (has(self.fixedBytes) || "
            "has(self.bytesPerToken))",
            message="Describe the KV cache either by groups or by the short form fixedBytes and "
            "bytesPerToken.",
            holds=lambda k: bool(k.groups) != (k.fixed_bytes is not None or k.bytes_per_token is not None),
        ),
    )

    dtype: Literal["BF16", "FP16", "FP32", "FP8", "INT8", "FP4"] = "BF16"
    """Number format of the cache: BF16, FP16, FP32, FP8, INT8 or FP4. Both sides of a hand-off must have the
    same."""
    groups: Annotated[
        tuple[CacheGroup, ...],
        Field(max_length=8),
        ListMap("name"),
    ] = ()
    """KV cache groups; the size of a sequence is the sum over them."""
    fixed_bytes: Quantity | None = None
    """Short form: bytes that every sequence has whatever its length, as recurrent state. Excludes groups."""
    bytes_per_token: Quantity | None = None
    """Short form: bytes per token. Excludes groups."""
    wire_copies: Annotated[int, Field(ge=1, le=64)] = 1
    """How many copies of the cache cross the wire, as with tensor-parallel ranks that hold the same heads."""
    prefix_block_tokens: Annotated[int, Field(ge=1, le=65_536)] = 16
    """Tokens per block of the engines' prefix cache: only whole blocks of a prefix can be reused."""


class PrefillPoint(ApiModel):
    """One measured point of a prefill curve."""

    tokens: Tokens
    """Uncached tokens of one prompt."""
    duration: PointTime
    """Time to prefill them alone on one instance."""


def _grows(pairs: list[tuple[int, float]]) -> bool:
    times = [time for _, time in sorted(pairs)]
    return all(a <= b for a, b in pairwise(times))


class PrefillNumbers(ApiModel):
    """Prefill on one instance of this hardware."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.points.all(a, self.points.all(b, "
            "a.tokens >= b.tokens || duration(a.duration) <= duration(b.duration)))",
            message="A longer prompt cannot take less time: durations of points must not fall as tokens "
            "grow.",
            holds=lambda p: _grows([(q.tokens, q.duration.seconds) for q in p.points]),
            path=".points",
        ),
        Rule(
            cel="!has(self.batchOverhead) || has(self.batchTokens)",
            message="batchOverhead is the fixed cost of a batch: set batchTokens as well.",
            holds=lambda p: p.batch_overhead is None or p.batch_tokens is not None,
        ),
    )

    points: Annotated[
        tuple[PrefillPoint, ...],
        Field(min_length=2, max_length=64),
        ListMap("tokens"),
    ]
    """Measured times by length. Between points, and above the last, the curve is a straight line in log-log;
    below the first it is a straight line through the first two."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 1
    """Prompts that one instance prefills at the same time without slowing each other."""
    batch_tokens: Tokens | None = None
    """Tokens that are prefilled together at most; left out, prompts are not batched."""
    batch_overhead: Annotated[Duration, Within("0s", "1m")] | None = None
    """Fixed time of one batch, paid once however many prompts it holds. Needs batchTokens."""


class DecodeStep(ApiModel):
    """One measured point of decode."""

    batch: Annotated[int, Field(ge=1, le=65_536)]
    """Sequences decoded together."""
    duration: Annotated[Duration, Within("1us", "1m")]
    """Time of one step."""


class DecodeNumbers(ApiModel):
    """Decode on one instance of this hardware."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.steps.all(a, self.steps.all(b, "
            "a.batch >= b.batch || duration(a.duration) <= duration(b.duration)))",
            message="A larger batch cannot take less time: durations of steps must not fall as batch grows.",
            holds=lambda d: _grows([(s.batch, s.duration.seconds) for s in d.steps]),
            path=".steps",
        ),
    )

    max_batch: Annotated[int, Field(ge=1, le=65_536)]
    """Most sequences that one instance decodes at the same time."""
    kv_capacity: Quantity | None = None
    """Bytes of KV cache that one instance can hold; left out, memory is taken never to limit the batch."""
    steps: Annotated[
        tuple[DecodeStep, ...],
        Field(min_length=1, max_length=64),
        ListMap("batch"),
    ]
    """Measured time of one step by batch; straight lines between, constant outside."""


class Hardware(ApiModel):
    """Numbers of one instance on one kind of hardware."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.prefill) || has(self.decode)",
            message="Give the hardware numbers for prefill, for decode, or for both.",
            holds=lambda h: h.prefill is not None or h.decode is not None,
        ),
    )

    name: Annotated[
        str,
        Field(min_length=1, max_length=63),
        Spelled(
            r"^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$",
            "Use letters, digits, '-', '_' and '.', starting and ending with a letter or digit.",
        ),
    ]
    """Name that pools refer to as their hardware, such as H200."""
    prefill: PrefillNumbers | None = None
    """Prefill times. Needed by pools that prefill on this hardware."""
    decode: DecodeNumbers | None = None
    """Decode times. Needed by pools that decode on this hardware."""
    price_per_hour: DecimalString | None = None
    """Price of one instance for one hour, in the profile's currency."""


class ModelProfileSpec(ApiModel):
    """The numbers of one model."""

    model: Annotated[str, Field(max_length=253)] = ""
    """The model's name, for people."""
    kv_cache: KvCache
    """Size of the KV cache."""
    hardware: Annotated[
        tuple[Hardware, ...],
        Field(min_length=1, max_length=8),
        ListMap("name"),
    ]
    """Times by kind of hardware."""
    workload: Workload | None = None
    """What requests look like, until real ones have been seen. Left out, thresholds that are computed start
    at the first measured lengths."""
    currency: Annotated[
        str,
        Field(min_length=3, max_length=3),
        Spelled(r"^[A-Z]{3}$", "Write the currency as three capital letters, such as USD."),
    ] = "USD"
    """Currency of every price that is used with this profile: three capital letters."""

    def hardware_named(self, name: str) -> Hardware | None:
        """The hardware of that name, or None."""
        return next((h for h in self.hardware if h.name == name), None)


class ModelProfileStatus(Status):
    """What is known of a profile."""

    pools: Annotated[int, Field(ge=0)] = 0
    """Number of pools that use this profile."""


class ModelProfile(Resource):
    """The numbers of a model: KV cache sizes, prefill and decode times by hardware, and the expected
    workload."""

    PLURAL: ClassVar[str] = "modelprofiles"
    SHORT_NAME: ClassVar[str] = "mp"

    kind: str = "ModelProfile"
    """Name of this type."""
    spec: ModelProfileSpec
    """The numbers."""
    status: ModelProfileStatus = Field(default_factory=ModelProfileStatus)
    """What is observed; written by the operator alone."""
