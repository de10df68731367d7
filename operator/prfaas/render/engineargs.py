"""What a template's command line says about where its engine listens.

Only what is spelled out is believed: an image's own entry point may say anything, which is for the
router's probes to find out.
"""

from collections.abc import Mapping
from typing import Any

LOOPBACK = ("127.0.0.1", "localhost", "::1")
POD_ADDRESS = "$(POD_IP)"


def option(container: Mapping[str, Any], name: str) -> str | None:
    """The value of an option on the container's command line, None where it is not there."""
    words = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == name:
            return following
        if word.startswith(f"{name}="):
            return word.split("=", 1)[1]
    return None


def engine_host(container: Mapping[str, Any]) -> str:
    """Where the router finds the engine's HTTP server: loopback, unless it listens on the pod address alone.

    SGLang binds its bootstrap server to the same host, so there --host is the pod address and a key keeps
    others out.
    """
    return POD_ADDRESS if option(container, "--host") == POD_ADDRESS else LOOPBACK[0]
