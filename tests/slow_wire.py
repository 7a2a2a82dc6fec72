"""A stand-in for tc's netem on kernels without it: an Ethernet switch between TAP devices that delays each frame and
drops some.

    slow_wire.py --ports 3 --delay-ms 2 --loss 0.01

makes port0, port1, port2 in the network namespace it runs in (they may be moved to others), prints a line, and forwards
until it is killed or a port disappears. Every run drops the same frames, counted in the order in which they arrive."""

import argparse
import fcntl
import heapq
import os
import random
import select
import struct
import time

TUNSETIFF = 0x400454CA
IFF_TAP = 2
IFF_NO_PI = 0x1000
MOST_BYTES = 65536


def open_port(number):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", f"port{number}".encode(), IFF_TAP | IFF_NO_PI))
    return fd


class Switch:
    def __init__(self, ports, delay_s, loss):
        self.ports = ports
        self.delay_s = delay_s
        self.loss = loss
        self.random = random.Random(1)
        self.port_of = {}  # the port of each source address seen so far
        self.waiting = []  # (time, sequence number, port, frame)
        self.taken = 0

    def take(self, port):
        """Reads all frames that have arrived at a port, and queues those that are not dropped."""
        while True:
            try:
                frame = os.read(port, MOST_BYTES)
            except OSError:  # nothing more, or the device is down
                return
            to, source = frame[:6], frame[6:12]
            self.port_of[source] = port
            if self.random.random() < self.loss:
                continue
            known = self.port_of.get(to)
            for other in [known] if known else self.ports:
                if other != port:
                    self.taken += 1
                    heapq.heappush(self.waiting, (time.monotonic() + self.delay_s, self.taken, other, frame))

    def give(self):
        """Sends the frames that are due. Returns the milliseconds until the next frame is due, or None if no frame waits."""
        while self.waiting:
            wait_s = self.waiting[0][0] - time.monotonic()
            if wait_s > 0:
                return wait_s * 1000
            _, _, port, frame = heapq.heappop(self.waiting)
            try:
                os.write(port, frame)
            except OSError:  # the device is down, or its queue is full: the frame is lost, as on a wire
                pass
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ports", type=int, required=True)
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--loss", type=float, default=0, help="share of frames, 0 to 1")
    options = parser.parse_args()
    ports = [open_port(number) for number in range(options.ports)]
    switch = Switch(ports, options.delay_ms / 1000, options.loss)
    poller = select.poll()
    for port in ports:
        poller.register(port, select.POLLIN)
    print("ready", flush=True)
    while True:
        for port, events in poller.poll(switch.give()):
            if not events & select.POLLIN:
                return  # the namespace is gone; the parent may have died without stopping this process
            switch.take(port)


if __name__ == "__main__":
    main()
