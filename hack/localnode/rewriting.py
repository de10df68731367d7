"""What a container without mount and network namespaces needs rewritten in its command and environment.

A process of the local node sees the machine's files and the machine's loopback. Two rewrites make a
container's command and environment right nevertheless:

* a mountPath, wherever it begins a path in the text, becomes the real directory of the volume;
* `127.0.0.1` becomes the pod's own address, which is a loopback address too, so that containers of one pod
  meet there and those of two pods do not.

Both happen once, after $(VAR) expansion. Values that the node itself injects are exempt, also where a
command refers to them. Text inside files (ConfigMaps) is never rewritten, nor is `0.0.0.0`: a server that
binds it takes the port on the whole machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_LOOPBACK = re.compile(r"(?<![\w.])127\.0\.0\.1(?![\w.]|\.\d)")


class Rewriter:
    """Rewrites text of one container."""

    def __init__(self, mounts: Mapping[str, str], pod_ip: str) -> None:
        """`mounts` maps each mountPath to the directory or file that stands for it."""
        self._mounts = {path.rstrip("/"): real for path, real in mounts.items()}
        self._pod_ip = pod_ip
        longest_first = sorted(self._mounts, key=len, reverse=True)
        alternatives = "|".join(re.escape(path) for path in longest_first if path)
        self._paths = re.compile(rf"(?<![\w.\-/])({alternatives})(?![\w.\-])") if alternatives else None

    def paths(self, text: str) -> str:
        """`text` with mount paths replaced."""
        if self._paths is None:
            return text
        return self._paths.sub(lambda match: self._mounts[match.group(1)], text)

    def everything(self, text: str) -> str:
        """`text` with mount paths and the loopback address replaced."""
        return _LOOPBACK.sub(self._pod_ip, self.paths(text))
