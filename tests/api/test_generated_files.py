"""`prfaas crds`: what is committed is what the types say."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from prfaas.api.conditions import ConditionType, Reason
from prfaas.api.reference import reference
from prfaas.cli.crds import command

ROOT = Path(__file__).parent.parent.parent


def test_the_committed_files_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(command, ["--check"])
    assert result.exit_code == 0, result.output


def test_check_names_what_differs_and_what_is_left_over_and_writes_nothing(tmp_path: Path) -> None:
    CliRunner().invoke(command, ["-o", str(tmp_path)])
    changed, old = tmp_path / "prfaas.io_pdpools.yaml", tmp_path / "prfaas.io_olds.yaml"
    changed.write_text("edited by hand")
    old.write_text("left over")
    result = CliRunner().invoke(command, ["--check", "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert "prfaas.io_pdpools.yaml is not up to date" in result.output
    assert "prfaas.io_olds.yaml is not up to date" in result.output
    assert changed.read_text() == "edited by hand"


def test_writing_removes_definitions_of_kinds_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "prfaas.io_olds.yaml").write_text("left over")
    (tmp_path / "kustomization.yaml").write_text("mine")
    CliRunner().invoke(command, ["-o", str(tmp_path)])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "kustomization.yaml",
        "prfaas.io_memberclusters.yaml",
        "prfaas.io_modelprofiles.yaml",
        "prfaas.io_pdpools.yaml",
        "prfaas.io_prefillroutes.yaml",
        "prfaas.io_prfaaspools.yaml",
    ]


def test_a_second_run_writes_nothing(tmp_path: Path) -> None:
    CliRunner().invoke(command, ["-o", str(tmp_path)])
    assert CliRunner().invoke(command, ["-o", str(tmp_path)]).output == ""


def test_the_reference_is_written_where_told(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "api.md"
    CliRunner().invoke(command, ["-o", str(tmp_path / "crds"), "--reference", str(page)])
    assert page.read_text() == reference()


def test_the_reference_lists_every_condition_and_reason() -> None:
    page = reference()
    assert not [word for word in (*ConditionType, *Reason) if f"| `{word}` |" not in page]
