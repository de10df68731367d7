"""The volumes of one pod on disk: made before its first container, refreshed while it runs."""

from __future__ import annotations

from pathlib import Path

from localnode.objects import ObjectSource, PodObjects, PodTokens
from localnode.pod import Container, Pod
from localnode.podstatus import Addresses
from localnode.volumes import (
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
        for volume in volumes:
            files = volume_files(pod, volume, self._objects, tokens, addresses)
            if changes(volume):
                write_volume(self._directory / volume["name"], files)
            else:
                (self._directory / volume["name"]).mkdir(parents=True, exist_ok=True)
        empty = {v["name"] for v in volumes if "emptyDir" in v}
        for container in pod.containers():
            for name, sub_path in sub_directories(container, empty):
                (self._directory / name / sub_path).mkdir(parents=True, exist_ok=True)
        self.made = True

    def mounts(self, container: Container) -> dict[str, str]:
        """Real path by mountPath."""
        return mounts(container, self._directory)

    @staticmethod
    def changing(pod: Pod) -> bool:
        """Whether any volume of the pod needs refreshing."""
        return any(changes(v) for v in pod.manifest["spec"].get("volumes") or ())
