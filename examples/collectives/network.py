"""A small network trained on all ranks' data. Each layer's gradient is submitted by name as soon as it is ready, and is averaged over the
ranks while the next one is computed. Ranks have different numbers of batches; a rank that runs out of batches joins.

    dmlc-submit --num-workers 3 python examples/collectives/network.py
    WARREN_TIMELINE=trace.json dmlc-submit --num-workers 3 python examples/collectives/network.py   # open in ui.perfetto.dev
"""
import numpy as np

from warren import collectives
from warren.collectives import Op

SIZES = (8, 32, 32, 1)
BATCH, EPOCHS, RATE = 64, 40, 0.05


def data_of(rank):
    """The data of a rank: rank + 1 batches of a random regression problem."""
    random = np.random.default_rng(rank)
    rows = random.normal(size=(BATCH * (rank + 1), SIZES[0]))
    return rows, np.sin(rows[:, :1]) + rows[:, 1:2] * rows[:, 2:3]


def backward(weights, rows, target, give):
    """Passes each layer's gradient to `give`, last layer first, and returns the loss."""
    layers = [rows]
    for weight in weights[:-1]:
        layers.append(np.tanh(layers[-1] @ weight))
    error = layers[-1] @ weights[-1] - target
    slope = 2 * error / len(rows)
    for i in reversed(range(len(weights))):
        give(f"layer {i}", layers[i].T @ slope)
        slope = slope @ weights[i].T * (1 - layers[i] ** 2)
    return float((error ** 2).mean())


def main():
    with collectives.context() as world, world.coordinator() as named:
        random = np.random.default_rng(0)
        weights = [random.normal(size=shape) / shape[0] ** 0.5 for shape in zip(SIZES, SIZES[1:])]
        rows, target = data_of(world.rank)
        losses = []
        for _ in range(EPOCHS):
            for begin in range(0, len(rows), BATCH):
                handles = {}
                loss = backward(weights, rows[begin:begin + BATCH], target[begin:begin + BATCH],
                                lambda name, gradient: handles.update({name: named.allreduce(name, gradient, Op.AVG)}))
                for i, weight in enumerate(weights):
                    weight -= RATE * handles[f"layer {i}"].wait()
            losses.append(loss)
            last = named.join()                         # the other ranks finish their remaining batches
            for weight in weights:
                world.broadcast(weight, root=last)      # the last rank to join has seen all sums
        if world.rank == 0:
            print(f"loss {losses[0]:.3f}, after {EPOCHS} epochs {losses[-1]:.3f}")
        same = world.allgather(weights[0].sum())
        assert (same == same[0]).all()


if __name__ == "__main__":
    main()
