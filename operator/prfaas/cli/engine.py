"""`prfaas engine`: serve the engine stand-in."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

if TYPE_CHECKING:
    from prfaas.model.kv import KvLaw
    from prfaas.simulate.engine.config import EngineConfig, Speed


@click.command()
@click.option("--dialect", type=click.Choice(["vllm", "sglang"]), default="vllm", show_default=True)
@click.option(
    "--version", "version_text", default="", help="Engine version; 0.22.0 (vLLM) or 0.5.9 (SGLang)."
)
@click.option("--connector", default="", help="nixl or mooncake; the engine's usual one if left out.")
@click.option(
    "--role", default="", help="kv_both, prefill, decode or null; kv_both for vLLM, null for SGLang."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="HTTP address.")
@click.option("--port", type=click.IntRange(0, 65535), default=8100, show_default=True)
@click.option("--transfer-host", default="127.0.0.1", show_default=True, help="Address that peers dial.")
@click.option(
    "--transfer-port", type=click.IntRange(-1, 65535), default=-1, help="5600 or 8998; 0: any free."
)
@click.option("--served-model", multiple=True, help="Model name; more are aliases.  [default: model]")
@click.option("--max-model-len", type=click.IntRange(16), default=262_144, show_default=True)
@click.option("--profile", type=click.Path(path_type=Path), help="ModelProfile YAML for speed and KV size.")
@click.option("--hardware", default="", help="Hardware of the profile; the first if left out.")
@click.option("--curve", default="", help="Prefill seconds by tokens: 1024:0.44,8192:0.72.")
@click.option("--kv-fixed-bytes", type=click.IntRange(0), help="KV bytes of every sequence.")
@click.option("--kv-bytes-per-token", type=click.IntRange(0), help="KV bytes per token.")
@click.option(
    "--kv-snapshot-tokens", type=click.IntRange(1), help="Distance of stored copies of the recurrent state."
)
@click.option("--prefill-concurrency", type=click.IntRange(1, 64))
@click.option("--decode-slots", type=click.IntRange(1, 65_536))
@click.option("--step-seconds", type=click.FloatRange(0, 60), help="Seconds of a decode step.")
@click.option("--block-tokens", type=click.IntRange(1, 4096), default=16, show_default=True)
@click.option("--kv-capacity-tokens", type=click.IntRange(16), default=1_000_000, show_default=True)
@click.option("--time-scale", type=click.FloatRange(0.001, 1e6), default=1.0, show_default=True)
@click.option("--byte-scale", type=click.FloatRange(1, 1e12), default=1.0, show_default=True)
@click.option(
    "--link-bits-per-second", default="0", help="Egress of KV, undivided: 10G.  [default: unlimited]"
)
@click.option(
    "--lease-seconds", type=click.FloatRange(0.01), help="Wall seconds; the version's own if left out."
)
@click.option("--handshake-seconds", type=click.FloatRange(0), default=0.0, show_default=True)
@click.option("--transfer-timeout-seconds", type=click.FloatRange(0.01), default=60.0, show_default=True)
@click.option("--bootstrap-timeout-seconds", type=click.FloatRange(0.01), default=300.0, show_default=True)
@click.option(
    "--load-failure-policy", type=click.Choice(["fail", "recompute"]), default="fail", show_default=True
)
@click.option("--prompt-tokens-details/--no-prompt-tokens-details", default=True, show_default=True)
@click.option("--default-output-tokens", type=click.IntRange(1), default=64, show_default=True)
@click.option("--api-key", default="", help="Bearer token that calls must carry; probes need none.")
@click.option("--debug-faults", is_flag=True, help="Serve /debug/faults and /debug/state.")
def command(**options: Any) -> None:
    """Serve the engine stand-in: vLLM (NIXL) or SGLang as routers and operators see them.

    It waits as long as a measured engine would and moves real bytes, but computes nothing.
    """
    import uvloop

    from prfaas.simulate.engine.server import run

    try:
        config = _config(options)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    try:
        uvloop.run(run(config, announce=click.echo))
    except OSError as error:
        raise click.UsageError(f"cannot listen: {error}") from error


def _config(options: dict[str, Any]) -> "EngineConfig":
    """The configuration that the options name. Raises ValueError with a sentence."""
    from prfaas.api.values import parse_rate
    from prfaas.engines import find
    from prfaas.simulate.engine.config import EngineConfig, Role

    engine = options.pop("dialect")
    version = options.pop("version_text") or ("0.22.0" if engine == "vllm" else "0.5.9")
    dialect = find(engine, version, options.pop("connector"))
    role: Role = options.pop("role") or ("kv_both" if engine == "vllm" else "null")
    if role not in get_args(Role):
        raise ValueError(f"--role {role} is none of {', '.join(get_args(Role))}")
    port, lease = options.pop("transfer_port"), options.pop("lease_seconds")
    speed, law = _physics(options)
    names = options.pop("served_model")
    return EngineConfig(
        dialect=dialect,
        version_text=version,
        role=role,
        transfer_port=dialect.facts.transfer_port if port == -1 else port,
        lease_seconds=dialect.facts.lease.seconds if lease is None else lease,
        lease_renewed=dialect.facts.lease.renewed,
        speed=speed,
        law=law,
        served_models=names or ("model",),
        link_bits_per_second=float(parse_rate(options.pop("link_bits_per_second"))),
        **options,
    )


def _physics(options: dict[str, Any]) -> "tuple[Speed, KvLaw]":
    """Speed and KV law: the profile's, or the default's, with what the options override."""
    from dataclasses import replace

    from msgspec.structs import replace as replace_field

    from prfaas.model.curves import LatencyCurve
    from prfaas.model.kv import KvLaw, fixed_and_linear
    from prfaas.simulate.engine.config import EngineConfig
    from prfaas.simulate.engine.profile import read_profile

    profile, hardware, curve = options.pop("profile"), options.pop("hardware"), options.pop("curve")
    speed, law = EngineConfig().speed, EngineConfig().law
    if profile is not None:
        speed, law = read_profile(profile, hardware)
    if curve:
        speed = replace(speed, curve=LatencyCurve(_points(curve)))
    if concurrency := options.pop("prefill_concurrency"):
        speed = replace(speed, prefill_concurrency=concurrency)
    if slots := options.pop("decode_slots"):
        speed = replace(speed, decode_slots=slots)
    if (step := options.pop("step_seconds")) is not None:
        speed = replace(speed, steps=((1, step),))
    fixed, per_token = options.pop("kv_fixed_bytes"), options.pop("kv_bytes_per_token")
    if fixed is not None or per_token is not None:
        law = KvLaw(fixed_and_linear(fixed or 0, per_token or 0))
    if snapshot := options.pop("kv_snapshot_tokens"):
        groups = [
            replace_field(g, snapshot_tokens=snapshot) if g.bytes_per_sequence else g for g in law.groups
        ]
        law = KvLaw(groups, wire_copies=law.wire_copies, prefix_block_tokens=options["block_tokens"])
    return speed, law


def _points(text: str) -> list[tuple[float, float]]:
    """`1024:0.44,8192:0.72` as pairs."""
    try:
        pairs = [part.split(":") for part in text.split(",")]
        return [(float(tokens), float(seconds)) for tokens, seconds in pairs]
    except ValueError as error:
        raise ValueError(f"--curve {text}: write tokens:seconds pairs such as 1024:0.44,8192:0.72") from error
