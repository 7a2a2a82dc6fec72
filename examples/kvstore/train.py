"""Trains a linear model through one of MXNet's key-value stores; each worker has its share of the rows.

    dmlc-submit --num-workers 3 python examples/kvstore/train.py --kv-store dist_sync_mpi
    dmlc-submit --num-workers 3 python examples/kvstore/train.py --kv-store dist_sync
    dmlc-submit --num-workers 3 python examples/kvstore/train.py --kv-store dist_async

With dist_sync_mpi, each worker receives the sums of the gradients and updates the weights itself. With the other types,
servers (threads of the workers) update the weights, and the workers pull them.
"""
import argparse

import numpy as np

from warren import collectives, kvstore

TRUTH = np.array([2.0, -3.0, 0.5, 4.0])
STEPS, BATCH, RATE = 200, 16, 0.05


def gradients(weight, bias, random):
    """Gradients of the mean squared error on a random batch."""
    rows = random.normal(size=(BATCH, len(TRUTH)))
    error = rows @ weight + bias - (rows @ TRUTH + 1)
    return rows.T @ error / BATCH, error.mean(keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kv-store", choices=("dist_sync_mpi", "dist_sync", "dist_async"), default="dist_sync")
    options = parser.parse_args()

    with collectives.context(), kvstore.create(options.kv_store) as kv:
        random = np.random.default_rng(kv.rank)
        names, values = ["weight", "bias"], [random.normal(size=len(TRUTH)), np.zeros(1)]
        sgd = kvstore.SGD(RATE, momentum=0.5, rescale_grad=1 / kv.num_workers)
        on_servers = kv.is_capable("optimizer")
        if on_servers:
            kv.set_optimizer(sgd)
        kv.broadcast(names, values, values)  # all start with worker 0's values
        states = [sgd.create_state(name, value) for name, value in zip(names, values)]
        for _ in range(STEPS):
            found = list(gradients(*values, random))
            if on_servers:
                kv.pushpull(names, found, values)
            else:
                kv.pushpull(names, found)
                for name, value, gradient, state in zip(names, values, found, states):
                    sgd.update(name, value, gradient, state)
        kv.barrier()
        if on_servers:
            kv.pull(names, values)
        print(f"worker {kv.rank} of {kv.num_workers}, {kv.type}: weight {np.round(values[0], 2)}, bias {np.round(values[1], 2)}")


if __name__ == "__main__":
    main()
