"""Pod addresses of one node, from its range in 127/8: every address there reaches this machine without
set-up.
"""

from __future__ import annotations

import ipaddress


class AddressesExhausted(Exception):
    """Every address of the range is in use."""


class AddressPool:
    """Hands out addresses in turn, so that one that was released is not met again soon (like CNI's
    host-local).
    """

    def __init__(self, cidr: str) -> None:
        self._network = ipaddress.ip_network(cidr)
        self._used: set[str] = set()
        self._next = 2
        self.node = str(self._network[1])
        """The node's own address: the first of the range."""

    def take(self) -> str:
        """A free address; raises AddressesExhausted."""
        size = self._network.num_addresses
        for _ in range(size):
            index, self._next = self._next, self._next + 1
            if self._next >= size - 1:
                self._next = 2
            address = self._network[index]
            # The first and last of each /24 look like network and broadcast addresses to people.
            if address.packed[-1] in (0, 255) or str(address) in self._used:
                continue
            self._used.add(str(address))
            return str(address)
        raise AddressesExhausted(f"no free pod address in {self._network}")

    def reserve(self, address: str) -> None:
        """Mark an address as used, for a pod of an earlier agent."""
        self._used.add(address)

    def release(self, address: str) -> None:
        """Give an address back."""
        self._used.discard(address)
