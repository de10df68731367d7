"""What requests are expected to look like: distributions of lengths, part of a ModelProfile."""

from typing import Annotated, ClassVar

from pydantic import Field

from prfaas.api.base import ApiModel, Rule
from prfaas.api.constraints import ListMap
from prfaas.api.fields import DecimalString, Tokens


class LogNormal(ApiModel):
    """A log-normal distribution of lengths, cut to bounds."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.minTokens < self.maxTokens",
            message="minTokens must be below maxTokens.",
            holds=lambda d: d.min_tokens < d.max_tokens,
            path=".minTokens",
        ),
    )

    mu: DecimalString
    """Mean of the logarithm of the length in tokens, such as "9.9"."""
    sigma: DecimalString
    """Standard deviation of the logarithm, such as "1"."""
    min_tokens: Tokens = 1
    """Shortest length; the distribution is cut there."""
    max_tokens: Tokens = 131_072
    """Longest length; the distribution is cut there."""


class HistogramBucket(ApiModel):
    """One bucket of lengths."""

    up_to_tokens: Tokens
    """Longest length of the bucket, included."""
    weight: Annotated[int, Field(ge=0, le=1_000_000_000)]
    """Share of prompts in the bucket, relative to the sum of all weights."""


class Lengths(ApiModel):
    """A distribution of lengths in tokens: exactly one of the fields."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.logNormal) != (has(self.histogram) && size(self.histogram) > 0)",
            message="Give the lengths as exactly one of logNormal and histogram.",
            holds=lambda d: (d.log_normal is not None) != bool(d.histogram),
        ),
        Rule(
            cel="!has(self.histogram) || size(self.histogram) == 0 || self.histogram.exists(b, b.weight > 0)",
            message="A histogram whose weights are all zero says nothing: give at least one bucket a weight.",
            holds=lambda d: not d.histogram or any(b.weight for b in d.histogram),
            path=".histogram",
        ),
    )

    log_normal: LogNormal | None = None
    """A log-normal distribution."""
    histogram: Annotated[
        tuple[HistogramBucket, ...],
        Field(max_length=64),
        ListMap("upToTokens"),
    ] = ()
    """Counts by length. Inside a bucket, lengths are taken as evenly spread."""


class Workload(ApiModel):
    """What requests are expected to look like, used until real ones have been seen."""

    uncached: Lengths
    """Lengths of the part of prompts that no cache holds: what is compared with the threshold."""
    total: Lengths | None = None
    """Lengths of whole prompts; left out, nothing is taken to be cached."""
    output_tokens: Annotated[int, Field(ge=1, le=1_048_576)] = 512
    """Mean number of tokens that are generated."""
    requests_per_second: DecimalString | None = None
    """Expected rate of requests, used for plans that name none."""
