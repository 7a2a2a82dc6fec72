"""Passes each rank's data around a ring while every rank computes on the part it holds; no rank ever holds all the data.

    dmlc-submit --num-workers 3 python examples/collectives/ring.py
"""
import numpy as np

from warren import collectives


def main() -> None:
    with collectives.context() as world:
        own = np.array([world.rank, world.rank + 0.5])
        visitor, nearest = own.copy(), np.full(2, np.inf)
        for _ in range(world.size - 1):
            arrived = np.empty_like(visitor)
            world.sendrecv(visitor, (world.rank + 1) % world.size, arrived, (world.rank - 1) % world.size)
            visitor = arrived
            distances = np.abs(own[:, None] - visitor[None, :]).min(axis=1)
            nearest = np.minimum(nearest, distances)
        all_nearest = world.gather(nearest, root=0)
        if all_nearest is not None:
            print("distances to the nearest point of another rank:", *all_nearest)


if __name__ == "__main__":
    main()
