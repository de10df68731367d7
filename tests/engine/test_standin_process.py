"""The command `prfaas engine`: starts, serves, ends on SIGTERM, and stays light."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

MAX_RESIDENT_KIB = 60 * 1024
HEAVY = ("pydantic", "numpy", "matplotlib", "kubernetes", "kopf", "prometheus_client", "yaml")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from prfaas.cli.main import main; main()", "engine", *arguments]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running stand-in and its URL."""
    args = command("--port", "0", "--transfer-port", "0", "--time-scale", "1000", "--debug-faults")
    with subprocess.Popen(args, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        line = started.stdout.readline()
        assert "stand-in on 127.0.0.1:" in line
        yield started, "http://" + line.split(" on ")[1].split(",")[0]
        started.kill()


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_process_serves_stays_small_and_ends_on_sigterm(process) -> None:
    started, url = process
    body = b'{"prompt": "%b", "max_tokens": 1}' % (b"word " * 16_000)
    for _ in range(20):
        request = urllib.request.Request(url + "/v1/completions", data=body)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200
    assert resident_kib(started.pid) < MAX_RESIDENT_KIB
    started.send_signal(signal.SIGTERM)
    assert started.wait(timeout=30) == 0


def test_process_dies_on_demand(process) -> None:
    started, url = process
    request = urllib.request.Request(url + "/debug/faults", data=b'{"die": true}')
    with pytest.raises(OSError, match=r"closed|reset"):
        urllib.request.urlopen(request, timeout=60)
    assert started.wait(timeout=30) == -signal.SIGKILL


def test_idle_process_does_next_to_nothing(process) -> None:
    started, _ = process
    before = cpu_seconds(started.pid)
    time.sleep(1.0)
    assert cpu_seconds(started.pid) - before <= 0.02


def test_nothing_heavy_is_imported() -> None:
    code = f"import prfaas.simulate.engine.server, sys; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--curve", "nonsense"), "write tokens:seconds pairs"),
        (("--curve", "10:1,5:2"), "is not above the point before it"),
        (("--role", "boss"), "is none of kv_both, prefill, decode, null"),
        (("--connector", "carrier-pigeon"), "no hand-off dialect"),
        (("--profile", "/nonexistent.yaml"), "No such file"),
        (("--link-bits-per-second", "fast"), "is no rate"),
        (("--host", "256.0.0.1"), "cannot listen"),
    ],
)
def test_bad_options_end_with_status_2_and_a_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    result = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert sentence in result.stderr
