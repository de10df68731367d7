"""Starting without a management cluster, and with a bad command line."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.controller.process import OperatorProcess

PROGRAM = "from prfaas.cli.main import main; main()"


def kubeconfig(path: Path) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "c", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


async def test_without_a_management_cluster_it_is_alive_but_not_ready_and_leaves_when_asked(
    tmp_path: Path, eventually: Any
) -> None:
    operator = OperatorProcess(kubeconfig(tmp_path / "kubeconfig"), tmp_path / "log")
    try:
        await eventually(lambda: operator.get("/livez")[0] == 200, 40)
        status, text = operator.get("/readyz")
        assert (status, text) == (503, "the management cluster has not been listed yet")
        assert operator.process.poll() is None
    finally:
        operator.stop()


def refused(*arguments: str) -> str:
    command = [sys.executable, "-c", PROGRAM, "operator", "--router-image=x", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 2, run.stderr
    return run.stderr


def test_bad_input_is_one_clear_line_and_status_two(tmp_path: Path) -> None:
    assert "No such file" in refused(f"--kubeconfig={tmp_path / 'absent'}")
    broken = tmp_path / "broken"
    broken.write_text("}{")
    assert "Error: " in refused(f"--kubeconfig={broken}")
    good = kubeconfig(tmp_path / "good")
    assert "no host:port" in refused(f"--kubeconfig={good}", "--metrics=8080")
    assert "Traceback" not in refused(f"--kubeconfig={good}", "--resync=0")
