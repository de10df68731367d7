"""The volumes of one pod on disk: made before its first container, refreshed while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from localnode.objects import ObjectSource, PodObjects, PodTokens
from localnode.pod import Container, Pod
from localnode.podstatus import Addresses
from localnode.volumes import (
    File,
    MountError,
    changes,
    mounts,
    sub_directories,
    token_sources,
    volume_files,
    volume_references,
)
from localnode.volumewriter import write_volume
from prfaas.kube.errors import ApiError


class PodVolumes:
    """Volumes of a pod under `directory`."""

    def __init__(self, directory: Path, objects: PodObjects, source: ObjectSource) -> None:
        self._directory = directory
        self._objects = objects
        self._tokens = PodTokens(source.client)
        self._empty: set[str] = set()
        self.made = False
        """Whether all volumes have been made once."""

    async def make(self, pod: Pod, addresses: Addresses) -> None:
        """Make or refresh all volumes; raises MountError."""
        volumes = pod.manifest["spec"].get("volumes") or ()
        try:
            await self._objects.load(*volume_references(pod))
            tokens = await self._tokens.get(pod, token_sources(pod))
        except ApiError as error:
            raise MountError(str(error)) from error
        contents = {
            volume["name"]: volume_files(pod, volume, self._objects, tokens, addresses)
            for volume in volumes
            if changes(volume)
        }
        self._empty = {v["name"] for v in volumes if not changes(v)}
        await asyncio.to_thread(self._write, contents, self._empty)
        self.made = True

    def make_sub_paths(self, container: Container) -> None:
        """Make the directories that a container's subPath names, when it starts and not before."""
        for name in sub_directories(container, self._empty):
            (self._directory / name).mkdir(parents=True, exist_ok=True)

    def mounts(self, container: Container) -> dict[str, str]:
        """Real path by mountPath."""
        return mounts(container, self._directory)

    def _write(self, contents: Mapping[str, Mapping[str, File]], directories: Iterable[str]) -> None:
        for name, files in contents.items():
            write_volume(self._directory / name, files)
        for name in directories:
            (self._directory / name).mkdir(parents=True, exist_ok=True)

    @staticmethod
    def changing(pod: Pod) -> bool:
        """Whether any volume of the pod needs refreshing."""
        return any(changes(v) for v in pod.manifest["spec"].get("volumes") or ())
