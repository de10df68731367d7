"""`prfaas plan` and `prfaas compare`: what they print, their JSON keys, and bad input in one line with
status 2."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from prfaas.cli.main import main

SAMPLE = Path(__file__).parents[2] / "manifests" / "samples" / "case-study"


def prfaas(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_the_papers_tables_come_with_the_error_of_each_cell() -> None:
    got = json.loads(prfaas("plan", "--case", "paper", "--json").output)
    assert got["maxErrorPercent"] < 3
    assert set(got["interpolants"]) == {"log-log", "linear", "quadratic", "pchip"}
    keys = {"table", "column", "row", "paper", "model", "unit", "errorPercent", "calibrated", "note"}
    assert all(set(cell) == keys for cell in got["cells"])
    text = prfaas("plan", "--case", "paper")
    assert text.exit_code == 0
    assert "largest error of the predicted cells" in text.output


def test_the_models_table_says_what_is_calibrated() -> None:
    got = json.loads(prfaas("plan", "--case", "models", "--json").output)
    assert all(got["timesRiseWithLength"].values())
    assert sum(cell["calibrated"] for cell in got["cells"]) == 24


def test_a_plan_of_manifests_has_the_documented_keys() -> None:
    got = json.loads(prfaas("plan", "-f", SAMPLE, "--rate", "2", "--json").output)
    (plan,) = got["plans"]
    assert set(plan) == {
        "name",
        "best",
        "bestPaperForm",
        "rate",
        "rateSource",
        "threshold",
        "ttft",
        "egressBitsPerSecond",
        "cost",
        "shadowPrices",
        "current",
    }
    assert (plan["best"]["prefillInstances"], plan["best"]["decodeInstances"]) == (3, 5)
    assert plan["best"]["lambdaMax"] == pytest.approx(3.15, abs=0.02)
    assert plan["rate"] == 2


def test_a_plan_reads_without_json_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "plan.png"
    got = prfaas("plan", "-f", SAMPLE, "--link", "6G", "--plot", picture)
    assert got.exit_code == 0
    assert "limited by" in got.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def edited(folder: Path, old: str, new: str) -> Path:
    target = folder / "edited"
    shutil.copytree(SAMPLE, target)
    found = False
    for path in target.glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        found |= old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
    assert found
    return target


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{tokens: 8192, duration: 720ms}", "{tokens: 8192, duration: 100ms}", "durations of points"),
        ('sigma: "1"', 'sigma: "0"', "sigma"),
        ("minTokens: 128,", "minTokens: 200000,", "minTokens"),
        ("duration: 440ms", "duration: 0s", "duration"),
        ("duration: 440ms", "duration: soon", "duration"),
        ("hardware: H200", "hardware: B300", "B300"),
        ("kind: ModelProfile", "kind: ModelProfil", "ModelProfil"),
        ("outputTokens: 1024", "outputTokens: -5", "outputTokens"),
        ("maxBatch: 20", "maxBatch: 0", "maxBatch"),
        ("apiVersion: prfaas.io/v1alpha1", "apiVersion: prfaas.io/v1", "v1alpha1"),
    ],
)
def test_a_bad_manifest_is_one_clear_line_with_status_2(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    got = prfaas("plan", "-f", edited(tmp_path, old, new))
    assert got.exit_code == 2
    assert says in got.output
    assert got.output.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("plan", "-f", SAMPLE, "--case", "paper"),
        ("plan", "-f", "nowhere"),
        ("plan", "-f", SAMPLE, "--rate", "nan"),
        ("plan", "-f", SAMPLE, "--rate", "0"),
        ("plan", "-f", SAMPLE, "--rate", "-3"),
        ("plan", "-f", SAMPLE, "--link", "fast"),
        ("compare", SAMPLE, "nowhere"),
        ("compare", SAMPLE, SAMPLE, "--rate", "inf"),
    ],
)
def test_bad_options_are_one_clear_line_with_status_2(arguments: tuple[object, ...]) -> None:
    got = prfaas(*arguments)
    assert got.exit_code == 2
    assert got.output.startswith("prfaas: ")
    assert got.output.count("\n") == 1


def test_nothing_is_written_when_the_input_is_bad(tmp_path: Path) -> None:
    picture = tmp_path / "plan.png"
    assert prfaas("plan", "-f", "nowhere", "--plot", picture).exit_code == 2
    assert not picture.exists()


def test_compare_says_what_two_more_instances_bring(tmp_path: Path) -> None:
    target = tmp_path / "after"
    shutil.copytree(SAMPLE, target)
    pool = target / "prfaaspool.yaml"
    text = pool.read_text(encoding="utf-8")
    assert "instances: 4" in text
    pool.write_text(text.replace("instances: 4", "instances: 6"), encoding="utf-8")
    got = json.loads(prfaas("compare", SAMPLE, target, "--json").output)
    (figures,) = got["routes"].values()
    assert figures["lambdaMax"]["changePercent"] == pytest.approx(29.6, abs=1)
    assert figures["ttftMean"]["changePercent"] < -20
    same = json.loads(prfaas("compare", SAMPLE, SAMPLE, "--json").output)
    assert all(f["changePercent"] in (0, None) for f in next(iter(same["routes"].values())).values())


def test_compare_makes_a_table_for_a_pull_request() -> None:
    got = prfaas("compare", SAMPLE, SAMPLE, "--markdown")
    assert got.exit_code == 0
    assert "| | before | after | change |" in got.output


def test_compare_says_what_another_split_would_carry_as_written(tmp_path: Path) -> None:
    target = tmp_path / "after"
    shutil.copytree(SAMPLE, target)
    pool = target / "pdpool.yaml"
    pool.write_text(pool.read_text().replace("manual: {prefill: 3}", "manual: {prefill: 6}"))
    lines = json.loads(prfaas("compare", SAMPLE, target, "--json").output)["routes"]["case-study"]
    assert lines["writtenPrefillInstances"] == {"before": 3, "after": 6, "changePercent": 100.0}
    assert lines["writtenLambdaMax"]["after"] < lines["writtenLambdaMax"]["before"]
    assert lines["lambdaMax"]["changePercent"] == 0
