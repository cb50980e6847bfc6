"""A bad cable between two network interfaces that it makes: python cable.py FIRST SECOND SECONDS LOSS

What goes into the interface FIRST comes out of SECOND some seconds later, a share of it never; what goes into SECOND
comes out of FIRST at once. It needs no kernel module, unlike `tc netem`. It ends when one of them is removed.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time
from contextlib import suppress

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000  # of linux/if_tun.h
LONGEST = 65536  # bytes of a frame


def interface(name: str) -> int:
    """Make a network interface; return the file whose reads and writes are the frames of its cable."""
    file = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return file


def carry(first: int, second: int, seconds: float, loss: float) -> None:
    """Carry frames between two interfaces.

    Raises:
        OSError: one of them was removed.
    """
    rng = random.Random(1)
    waiting: list[tuple[float, int, bytes]] = []
    number = 0
    while True:
        patience = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select([first, second], [], [], patience)
        if second in ready:
            send(first, os.read(second, LONGEST))
        if first in ready:
            frame, number = os.read(first, LONGEST), number + 1
            if rng.random() >= loss:
                heapq.heappush(waiting, (time.monotonic() + seconds, number, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            send(second, heapq.heappop(waiting)[2])


def send(file: int, frame: bytes) -> None:
    """Send a frame; an interface that is down loses it."""
    with suppress(OSError):
        os.write(file, frame)


if __name__ == "__main__":
    ends = [interface(name) for name in sys.argv[1:3]]
    print("made", flush=True)
    with suppress(OSError):
        carry(ends[0], ends[1], float(sys.argv[3]), float(sys.argv[4]))
