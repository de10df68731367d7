"""`prfaas simulate`: JSON keys, options, sweeps, events, traces, and bad input in one line with status 2."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from prfaas.cli.main import main

SAMPLE = Path(__file__).parents[2] / "manifests" / "samples" / "case-study"
QUICK = ("simulate", "--case", "paper", "--requests", "600")


def prfaas(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_json_has_the_documented_keys() -> None:
    got = json.loads(prfaas(*QUICK, "--rate", "2", "--policy", "auto", "--json").output)
    assert set(got) == {
        "requests",
        "seconds",
        "ttft",
        "remoteShare",
        "egressBitsPerSecond",
        "throughput",
        "goodput",
        "unfinished",
        "thresholdMoves",
        "conversions",
        "cpuMicrosPerRequest",
    }
    assert set(got["ttft"]) == {"mean", "p50", "p90", "p99"}
    assert got["requests"] == 600


@pytest.mark.parametrize(
    "extra",
    [
        ("--policy", "static", "--threshold", "19400", "--gain", "40", "--split", "3/5"),
        ("--policy", "earliest-finish", "--link", "10G", "--overlap", "none"),
        ("--policy", "length-blind", "--overlap", "chunk", "--arrivals", "bursty"),
        ("--policy", "auto", "--routers", "5", "--age", "1", "--length-error", "5", "--service-error", "10"),
        ("--gate-order", "shortest-first", "--gate-ageing", "6"),
        ("--roles", "auto", "--event", "at=100s link=6G", "--event", "at=3m rate=1.5"),
        ("--event", "at=60s fail=prfaas-0", "--event", "at=2m restore=prfaas-0"),
        ("--event", "at=60s lengths=0.5", "--event", "at=60s output=256", "--event", "at=90s threshold=9000"),
        ("--duration", "10m", "--seed", "7"),
    ],
)
def test_the_options_run(extra: tuple[str, ...]) -> None:
    got = prfaas(*QUICK, "--rate", "2", *extra)
    assert got.exit_code == 0, got.output
    assert "TTFT" in got.output


def test_manifests_can_be_simulated() -> None:
    got = prfaas("simulate", "-f", SAMPLE, "--rate", "1.5", "--requests", "400", "--json")
    assert got.exit_code == 0, got.output
    assert json.loads(got.output)["unfinished"] == 0


def test_a_sweep_has_one_row_per_value_and_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "sweep.png"
    arguments = (*QUICK, "--rate", "2", "--sweep", "rate=1.5:2.5:0.5", "--json", "--plot", picture)
    got = json.loads(prfaas(*arguments).output)
    assert got["sweep"] == "rate"
    assert [row["rate"] for row in got["rows"]] == [1.5, 2.0, 2.5]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_trace_runs_at_its_own_rate_or_another(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    lines = [
        json.dumps({"timestamp": i * 500, "input_length": 9000, "output_length": 64, "hash_ids": [1, 2, i]})
        for i in range(400)
    ]
    path.write_text("\n".join([*lines, "{broken"]), encoding="utf-8")
    bad = prfaas("simulate", "--case", "paper", "--trace", path)
    assert bad.exit_code == 2
    assert "line 401" in bad.output
    assert bad.output.count("\n") == 1
    arguments = ("simulate", "--case", "paper", "--trace", path, "--skip-bad-lines", "--json")
    own = json.loads(prfaas(*arguments, "--cache", "100G").output)
    assert own["skippedLines"] == 1
    assert own["seconds"] == pytest.approx(199.5)
    half = json.loads(prfaas(*arguments, "--rate", "1").output)
    assert half["seconds"] == pytest.approx(399, rel=0.01)


@pytest.mark.parametrize(
    "extra",
    [
        (),
        ("--rate", "nan"),
        ("--rate", "0"),
        ("--rate", "2", "--split", "3/6"),
        ("--rate", "2", "--split", "8/0"),
        ("--rate", "2", "--split", "three"),
        ("--rate", "2", "--link", "0"),
        ("--rate", "2", "--link", "-5G"),
        ("--rate", "2", "--requests", "0"),
        ("--rate", "2", "--age", "-1"),
        ("--rate", "2", "--routers", "0"),
        ("--rate", "2", "--gain", "900"),
        ("--rate", "2", "--threshold", "-1"),
        ("--rate", "2", "--duration", "soon"),
        ("--rate", "2", "--event", "link=6G"),
        ("--rate", "2", "--event", "at=1s"),
        ("--rate", "2", "--event", "at=1s speed=2"),
        ("--rate", "2", "--event", "at=1s rate=-2"),
        ("--rate", "2", "--event", "at=1s rate=inf"),
        ("--rate", "2", "--event", "at=1s fail=nobody"),
        ("--rate", "2", "--sweep", "rate=2"),
        ("--rate", "2", "--sweep", "rate=3:1:1"),
        ("--rate", "2", "--sweep", "rate=1:2:0"),
        ("--rate", "2", "--sweep", "colour=1:2:1"),
        ("--rate", "2", "--trace", "nowhere"),
    ],
)
def test_bad_options_are_one_clear_line_with_status_2(extra: tuple[str, ...]) -> None:
    got = prfaas("simulate", "--case", "paper", *extra)
    assert got.exit_code == 2
    assert got.output.startswith("prfaas: ")
    assert got.output.count("\n") == 1
