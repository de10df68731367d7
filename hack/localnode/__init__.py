"""A node agent that runs the containers of bound pods as plain processes, for development, tests and the
demo.

It does what a kubelet does where the project depends on it, and nothing more: no root, no container engine,
no namespaces, no limits. Each behaviour names the kubelet rule that it follows and has a contract test in
tests/localnode that runs against a real kubelet too. `LocalNode` is what fixtures use; `python -m localnode
--help` is the command line.
"""

from localnode.localnode import LocalNode, LocalNodeError
from localnode.settings import Settings, Timing

__all__ = ["LocalNode", "LocalNodeError", "Settings", "Timing"]
