"""$(VAR) references in commands, arguments and environment values.

Follows Kubernetes' expansion rules (documentation: "Define Dependent Environment Variables"; source:
third_party/forked/golang/expansion/expand.go): $(NAME) is replaced, $$ is a literal $, an unknown or
unfinished reference stays as written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, *variables: Mapping[str, str]) -> str:
    """`text` with its references replaced from the first of `variables` that has the name."""

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return "$"
        for mapping in variables:
            if name in mapping:
                return mapping[name]
        return match.group(0)

    return _REFERENCE.sub(replace, text)
