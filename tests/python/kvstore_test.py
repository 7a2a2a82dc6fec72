"""warren.kvstore: MXNet's key-value stores, with NumPy, PyTorch, and the MXNet of the Python that WARREN_MXNET_PYTHON names."""
import os
import re
import subprocess
import sys
import textwrap
import unittest

import forking
from collectives_jobs import BOTH_WAYS, ENVIRONMENT, PYTHON, JobTest, submit

# MXNet 1.9.1, its last release, needs a NumPy older than 1.24: python -m venv env; env/bin/pip install mxnet 'numpy<1.24'.
MXNET_PYTHON = os.environ.get("WARREN_MXNET_PYTHON", PYTHON)
SOON_S = 10.0  # limit for survivors to notice a death on a busy machine


def has(python, package):
    return subprocess.run([python, "-c", f"import {package}"], stderr=subprocess.DEVNULL, check=False).returncode == 0


WITHOUT_MXNET = None if has(MXNET_PYTHON, "mxnet") else f"SKIPPED: {MXNET_PYTHON} has no MXNet; see WARREN_MXNET_PYTHON"
WITHOUT_TORCH = None if has(PYTHON, "torch") else f"SKIPPED: {PYTHON} has no PyTorch; apt-get install python3-torch"
for why in filter(None, (WITHOUT_MXNET, WITHOUT_TORCH)):
    print(why, file=sys.stderr)

HEAD = """
import random
from warren import kvstore
me, size = world.rank, world.size
total = size * (size + 1) // 2

class StandIn:
    # Has of MXNet's arrays what the store uses.
    def __init__(self, values):
        self._values = np.array(values, "float32")
    shape = property(lambda self: self._values.shape)
    def asnumpy(self):
        return self._values.copy()
    def __setitem__(self, where, values):
        assert isinstance(values, np.ndarray)
        self._values[where] = values
"""

MXNET = """
import sys
import numpy as np
import mxnet as mx
from warren import kvstore
from warren import collectives

def trained(kv, rows):
    mx.random.seed(1)
    net = mx.gluon.nn.Dense(1, in_units=3)
    net.initialize(mx.init.Normal(1))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05, "momentum": 0.9}, kvstore=kv)
    data = np.random.RandomState(0).standard_normal((5, 8, 3)).astype("float32")
    for batch in data[:, rows]:
        inputs = mx.nd.array(batch)
        with mx.autograd.record():
            loss = ((net(inputs) - inputs.sum(axis=1, keepdims=True)) ** 2).sum()
        loss.backward()
        trainer.step(8)
    return net.weight.data().asnumpy()

alone = trained(None, slice(None))
for name in ("dist_sync_mpi", "dist_sync"):
    kv = kvstore.create(name)
    assert isinstance(kv, mx.kvstore.KVStoreBase)
    got = trained(kv, slice(kv.rank, None, kv.num_workers))
    assert np.allclose(alone, got, rtol=1e-4), (name, alone, got)
    kv.barrier()
    kv.close()
with kvstore.create("dist_async") as kv:
    got = trained(kv, slice(kv.rank, None, kv.num_workers))
    assert np.isfinite(got).all()
    kv.barrier()
    one, other = mx.nd.ones((2, 3)), mx.nd.ones((2, 3)) * 2
    kv.set_optimizer(mx.optimizer.Adam(learning_rate=0.1))
    kv.init("w", one)
    kv.push("w", [one, other])
    kv.pull("w", out=[one, other])
    assert (one.asnumpy() == other.asnumpy()).all() and (one.asnumpy() < 1).all(), one
    try:
        kv.push("w", one.tostype("row_sparse"))
        raise SystemExit("not refused")
    except TypeError as error:
        assert "dense arrays are expected, not row_sparse" in str(error), error
    kv.barrier()
print("well", flush=True)
"""

KILLED = """
import os, signal, sys, time
import numpy as np
from warren import kvstore
kv = kvstore.create(sys.argv[1])
if sys.argv[1] != "dist_sync_mpi":
    kv.init([0, 1, 2], [np.zeros(1000)] * 3)
kv.set_optimizer(kvstore.SGD()) if sys.argv[1] == "dist_async" else None
try:
    for step in range(1_000_000):
        values = [(np.arange(1000) == kv.rank).astype(float) for _ in range(3)]
        kv.pushpull([0, 1, 2], values)
        if kv.rank == 1 and step >= 20 and values[0][[0, 2]].all():  # the others are under way
            print(f"killed at {time.time()}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
except RuntimeError as error:
    print(f"knows at {time.time()}: {error}", flush=True)
"""


class KVStore(JobTest):
    HEAD = HEAD

    @property
    def python(self):
        return [forking.python(PYTHON, "numpy" if WITHOUT_TORCH else "torch")]

    def test_allreduce_stores_sum_over_workers_and_devices(self):
        code = """
            kv = kvstore.create("dist_sync_mpi")
            assert (kv.type, kv.rank, kv.num_workers, kv.is_capable("optimizer")) == ("dist_sync_mpi", me, size, False)
            one = np.full((2, 3), me + 1.0)
            kv.pushpull("w", one)                                        # in place
            assert (one == total).all()
            devices = [np.full(4, me + 1), np.full(4, 10 * (me + 1))]
            out = [np.zeros(4, int), np.zeros(4)]
            kv.pushpull(3, devices, out, priority=-3)
            assert all((array == 11 * total).all() for array in out) and (devices[0] == me + 1).all()
            kv.pushpull(3, devices)
            assert all((array == 11 * total).all() for array in devices)
            keys, values = ["a", "b", 7], [np.full(3, me + i, "float32") for i in range(3)]
            kv.pushpull(keys, values)                                    # many at once
            assert [array[0] for array in values] == [sum(rank + i for rank in range(size)) for i in range(3)]
            strided = np.full((2, 4), me + 1.0)[:, ::2]
            kv.pushpull("strided", strided, out=strided)
            assert (strided == total).all()
            value, out = np.full(3, me), np.zeros(3, int)
            kv.broadcast("v", value, out)
            assert (out == 0).all() and (value == me).all()
            kv.broadcast(["v", "u"], [value, value], [out, [out.copy(), value]], root_rank=size - 1)
            assert (out == size - 1).all() and (value == size - 1).all()
            value = np.full(3, me)
            kv.broadcast("w", value, size - 1)                           # as MXNet's design has it
            assert (value == size - 1).all()
            kv.barrier()
            kv.close()
            """
        self.expect(1, code)
        self.expect(3, code)

    def test_workers_may_reduce_keys_in_different_orders(self):
        self.expect(2, """
            import threading
            kv = kvstore.create("dist_sync_mpi")
            values = {key: np.full(5, me + key) for key in range(10)}
            threads = [threading.Thread(target=kv.pushpull, args=(key, values[key])) for key in random.sample(range(10), 10)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert all((values[key] == 2 * key + 1).all() for key in range(10)), values
            kv.close()
            """)

    def test_keys_of_one_call_may_come_in_different_orders(self):
        self.expect(2, """
            kv = kvstore.create("dist_sync_mpi")
            for step in range(20):
                keys = random.sample(range(10), 10)
                values = [np.full(5, me + key) for key in keys]
                kv.pushpull(keys, values)
                assert all((value == 2 * key + 1).all() for key, value in zip(keys, values)), values
            kv.close()
            """)

    def test_workers_that_wait_for_each_other_are_told_so(self):
        for calls in ("kv.pushpull('pq'[me], one), kv.pushpull('qp'[me], one)", "kv.pushpull('p', one) if me else kv.barrier()",
                      "kv.broadcast('w', one) if me else kv.pushpull('w', one)",
                      "kv.pushpull(['a', 'p'], [one, one.copy()]) if me else kv.pushpull(['a', 'q'], [one, one.copy()])"):
            said = self.expect(2, f"""
                kv = kvstore.create("dist_sync_mpi")
                one = np.ones(2)
                kv.pushpull("before", one)
                refuses(RuntimeError, f"^rank {{me}} waits in .*, and rank {{1 - me}} in .*: neither can go on",
                        lambda: ({calls}))
                print("told", me)
                """)
            self.assertEqual(said.count("told"), 2, said)

    def test_a_worker_that_is_late_is_waited_for(self):
        self.expect(3, """
            import threading
            kv = kvstore.create("dist_sync_mpi")
            def step(key):
                value = np.full(2, me + 1.0)
                kv.pushpull(key, value)
                assert (value == total).all(), value
            step("w")
            for late in range(size):                       # the others are stuck meanwhile, and the main thread of one starts what they wait for
                if me == late:
                    time.sleep(3.5)
                step(late)
            threads = [threading.Thread(target=step, args=(key,)) for key in (10, 11)]
            for thread in threads[::1 if me else -1]:
                thread.start()
                time.sleep(2.5)
            for thread in threads:
                thread.join()
            kv.barrier()
            kv.close()
            """)

    def test_local_stores_need_no_job(self):
        code = textwrap.dedent("""
            import threading
            import numpy as np
            from warren import kvstore
            for name in ("local", "device", "local_allreduce_device"):
                with kvstore.create(name) as kv:
                    assert (kv.type, kv.rank, kv.num_workers, kv.is_capable("optimizer")) == (name, 0, 1, True)
                    kv.init("w", np.full((2, 3), 7.0))
                    out = [np.zeros((2, 3)), np.zeros((2, 3), int)]
                    kv.pull("w", out)
                    assert all((array == 7).all() for array in out)
                    kv.push("w", [np.ones((2, 3)), np.full((2, 3), 2.0)])        # added up over the devices
                    kv.pull("w", out)
                    assert all((array == 3).all() for array in out)
                    kv.set_optimizer(kvstore.SGD(0.5, momentum=0.5))
                    value = np.ones((2, 3))
                    for _ in range(2):
                        kv.pushpull("w", np.ones((2, 3)), value)
                    assert (value == 3 - 0.5 - 0.75).all(), value
                    kv.set_updater(lambda key, pushed, stored: stored.__iadd__(pushed))
                    threads = [threading.Thread(target=kv.push, args=("w", np.ones((2, 3)))) for _ in range(10)]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join()
                    kv.pull("w", value)
                    assert (value == 11.75).all(), value
                    kv.broadcast([1, 2], [np.ones(2), np.ones(1)], [out[0][0, :2], np.zeros(1)])
                    kv.barrier()
                    for call in (lambda: kv.push("v", value), lambda: kv.init("w", value), lambda: kv.push("w", np.ones(2)),
                                 lambda: kv.pull("w", np.ones(2)), lambda: kv.pull("w")):
                        try:
                            call()
                            raise SystemExit("not refused")
                        except ValueError:
                            pass
            print("well")
            """)
        done = subprocess.run([PYTHON, "-W", "error", "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "well\n", ""))
        status, said = submit(2, PYTHON, "-c", code)
        self.assertEqual((status, said.count("] well")), (0, 2), said)
        warning = "the key-value store 'local' is local to this process: the 2 workers of the job train separately"
        self.assertEqual(said.count(warning), 2, said)
        of_mpirun = {**ENVIRONMENT, "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
        done = subprocess.run([PYTHON, "-c", code], env=of_mpirun, capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr.count(warning)), ("well\n", 1), done.stderr)

    def test_methods_that_a_store_does_not_have_are_refused_by_name(self):
        self.expect(1, """
            mpi, sync = kvstore.create("dist_sync_mpi"), kvstore.create("dist_sync")
            for name in ("init", "push", "pull", "set_optimizer", "set_updater"):
                refuses(NotImplementedError, f"^the key-value store 'dist_sync_mpi' has no {name}: .*take 'dist_sync' or ",
                        getattr(mpi, name), "w", np.ones(1))
            for store in (mpi, sync):
                for name in ("row_sparse_pull", "set_gradient_compression", "save_optimizer_states", "load_optimizer_states"):
                    refuses(NotImplementedError, f"^the key-value store '{store.type}' has no {name}", getattr(store, name), "w")
            os.environ["MXNET_KVSTORE_BIGARRAY_BOUND"] = "1e6"
            refuses(ValueError, "^MXNET_KVSTORE_BIGARRAY_BOUND in the environment is '1e6', expected a number", kvstore.create, "dist")
            refuses(ValueError, "no key-value store 'nccl' here, only local, .*dist_sync_mpi, .*MXNet's", kvstore.create, "nccl")
            refuses(ValueError, "capability", mpi.is_capable, "sparse")
            for role, servers in (("server", "1"), ("scheduler", "1"), ("worker", "2")):
                os.environ.update(DMLC_ROLE=role, DMLC_NUM_SERVER=servers)
                refuses(RuntimeError, f"a {role} of a job with {servers} servers.*without --num-servers", kvstore.create, "dist")
            """)

    def test_what_makes_no_sense_is_refused_and_ends_nothing(self):
        self.expect(2, """
            kv = kvstore.create("dist_sync")
            kv.init("w", np.zeros((2, 3)))
            refuses(ValueError, "'w' is in the store already", kv.init, "w", np.zeros(1))
            refuses(ValueError, "rank 0 has .*2,.* and rank 1 .*3,", kv.init, "v", np.zeros(2 + me))
            refuses(ValueError, "push: key 3 is not in the store; call init", kv.push, 3, np.zeros(1))
            refuses(ValueError, "pull: key 3 is not in the store; call init", kv.pull, 3, np.zeros(1))
            refuses(ValueError, r"'w' has the shape \\(2, 3\\) .*float64, not \\(3, 2\\)", kv.push, "w", np.zeros((3, 2)))
            refuses(ValueError, r"float64, not \\(2, 3\\) and float32", kv.push, "w", np.zeros((2, 3), "float32"))
            refuses(ValueError, "its output", kv.pull, "w", np.zeros(6))
            refuses(ValueError, "`out`", kv.pull, "w")
            refuses(TypeError, "keys are str or int", kv.push, 1.5, np.zeros(1))
            refuses(TypeError, "not dict", kv.push, "w", {})
            refuses(ValueError, "2 keys takes a list of as many", kv.push, ["w", "w"], [np.zeros((2, 3))])
            refuses(ValueError, "one device has", kv.push, "w", [np.zeros((2, 3)), np.zeros(3)])
            refuses(TypeError, "create_state", kv.set_optimizer, 0.1)
            refuses(ValueError, "no updater; call set_optimizer", kvstore.create("dist_async").push, "w", np.zeros(1))
            refuses(ValueError, "take 'dist_sync_mpi'", kv.broadcast, "u", np.zeros(1), np.zeros(1), root_rank=1)
            out = np.zeros((2, 3))
            kv.pushpull("w", np.ones((2, 3)), out)
            assert (out == size).all()
            kv.close()
            """)

    def test_synchronous_servers_store_the_sum_of_all_workers(self):
        code = """
            for bound in ("1000000", "4"):                               # on one server each, and spread
                os.environ["MXNET_KVSTORE_BIGARRAY_BOUND"] = bound
                with kvstore.create("dist_sync") as kv:
                    assert kv.is_capable("optimizer")
                    value = np.full((3, 5), me + 1, "float32")
                    out = np.zeros((3, 5), "float32")
                    kv.broadcast("w", value, out)
                    assert (out == 1).all()
                    for step in range(1, 20):
                        if random.random() < 0.3:
                            time.sleep(0.002)                            # workers are at different steps
                        kv.push("w", [value * step, value * step])
                        kv.pull("w", out)
                        assert (out == 2 * total * step).all(), (me, step, out)
                    for step in range(5):                                # all of one's pushes come before one's pull
                        pushed = value + step
                        kv.push("w", pushed)
                        pushed[:] = -1                                   # a copy was taken
                    kv.pull("w", [out, value])
                    assert (out == total + 4 * size).all() and (value == out).all(), out
                    keys = list(range(20))
                    kv.init(keys, [np.full(i, float(i)) for i in keys])
                    outs = [np.zeros(i) for i in keys]
                    kv.pushpull(keys, [np.full(i, float(me + i)) for i in keys], outs)
                    assert all((out == sum(rank + i for rank in range(size))).all() for i, out in enumerate(outs))
                    scalar = np.array(2.0)
                    kv.init("scalar", scalar)
                    kv.pushpull("scalar", scalar)
                    assert scalar == 2.0 * size
                    kv.barrier()
            """
        self.expect(1, code)
        for env in BOTH_WAYS:
            self.expect(3, code, **env)

    def test_synchronous_training_by_an_optimizer_on_servers_is_that_of_one_process(self):
        self.expect(3, """
            targets = np.random.default_rng(0).standard_normal((10, size, 7))
            for bound in ("1000000", "2"):
                os.environ["MXNET_KVSTORE_BIGARRAY_BOUND"] = bound
                alone, optimizer = np.zeros(7), kvstore.SGD(0.05, momentum=0.9, wd=0.01)
                state = optimizer.create_state("w", alone)
                with kvstore.create("dist") as kv:
                    kv.set_optimizer(kvstore.SGD(0.05, momentum=0.9, wd=0.01))
                    weight = np.zeros(7)
                    kv.init("w", weight)
                    for step in targets:
                        gradients = weight - step
                        kv.pushpull("w", gradients[me], out=weight)
                        optimizer.update("w", alone, gradients[0] + gradients[1] + gradients[2], state)
                        assert np.allclose(weight, alone, rtol=1e-12), (weight, alone)
                        assert (world.allgather(weight).reshape(size, -1) == weight).all()
            plain = np.ones(2)
            sgd = kvstore.SGD(0.5, rescale_grad=2)
            sgd.update(0, plain, np.ones(2), sgd.create_state(0, plain))
            assert plain.tolist() == [0, 0]
            """)

    def test_asynchronous_servers_apply_each_push_and_lose_none(self):
        code = """
            kv = kvstore.create("dist_async")
            def add(key, pushed, stored):
                stored += pushed
            kv.set_updater(add)
            sizes = [1, 1000, 50_000, 1_200_000]                         # the last is spread
            kv.init(list(range(4)), [np.zeros(n, int) for n in sizes])
            sent = np.zeros(4, int)
            for _ in range(30):
                key, value = random.randrange(4), random.randrange(100)
                if random.random() < 0.7:
                    kv.push(key, np.full(sizes[key], value))
                    sent[key] += value
                else:
                    out = np.zeros(sizes[key], int)
                    kv.pull(key, out)
                    assert out.min() >= sent[key]                        # all of one's own, at least
            outs = [np.zeros(n, int) for n in sizes]
            kv.pull(list(range(4)), outs)                                # behind one's own pushes
            kv.barrier()
            kv.pull(list(range(4)), outs)
            for out, expected in zip(outs, world.allreduce(sent)):
                assert (out == expected).all(), (out, expected)
            kv.close()
            """
        self.expect(1, code)
        for env in BOTH_WAYS:
            self.expect(3, code, **env)

    def test_an_updater_meets_all_pushes_after_it_with_whole_values_or_flat_parts(self):
        self.expect(2, """
            os.environ["MXNET_KVSTORE_BIGARRAY_BOUND"] = "10"
            for name in ("dist_async", "dist_sync"):
                with kvstore.create(name) as kv:
                    shapes = set()
                    def subtract(key, pushed, stored):
                        shapes.add((key, pushed.shape, stored.shape))
                        stored -= pushed
                    keys, whole, spread = list(range(8)), np.zeros((3, 3)), np.zeros((3, 5))
                    kv.init(keys + ["spread"], [whole] * 8 + [spread])
                    if me == 0:
                        time.sleep(0.3)                                  # the other waits for this one
                    kv.set_updater(subtract)
                    kv.push(keys + ["spread"], [whole + 1] * 8 + [spread + 1])
                    outs = [whole.copy() for _ in keys] + [spread.copy()]
                    kv.pull(keys + ["spread"], outs)
                    kv.barrier()
                    kv.pull(keys + ["spread"], outs)
                    assert all((out == -size).all() for out in outs), outs
                    assert ("spread", (8 - me,), (8 - me,)) in shapes and len(shapes) > 1, shapes
                    assert all(shape[1:] == ((3, 3), (3, 3)) for shape in shapes if shape[0] != "spread"), shapes
            """)

    def test_an_updater_that_fails_is_told_to_the_workers_of_the_push(self):
        self.expect(2, """
            def fails(key, pushed, stored):
                if pushed[0] > 1:
                    raise ValueError("too large")
                stored[:] = pushed
            for name in ("dist_sync", "dist_async"):
                kv = kvstore.create(name)
                kv.set_updater(fails)
                kv.init("w", np.zeros(3))
                out = np.zeros(3)
                kv.push("w", np.full(3, 3.0))
                refuses(RuntimeError, "^rank [01]: the updater of key 'w' failed: ValueError: too large$", kv.pull, "w", out)
                kv.barrier()
                kv.push("w", np.full(3, 0.5))
                kv.pull("w", out)
                assert (out == (1.0 if name == "dist_sync" else 0.5)).all(), out
                kv.close()
            """)

    @unittest.skipIf(WITHOUT_TORCH, WITHOUT_TORCH)
    def test_tensors_and_optimizers_of_pytorch(self):
        self.expect(2, """
            import torch
            for name in ("dist_sync_mpi", "dist_sync"):
                kv = kvstore.create(name)
                parameter = torch.nn.Parameter(torch.full((2, 2), me + 1.0))
                kv.broadcast("w", parameter, parameter)
                assert (parameter == 1).all()
                kv.pushpull("w", torch.full((2, 2), me + 1.0), parameter)
                assert (parameter == 3).all()
                kv.pushpull("w", [torch.ones(2, 2), torch.ones(2, 2)], [parameter, np.zeros((2, 2))])
                assert (parameter == 4).all()
                refuses(TypeError, "torch.bfloat16", kv.pushpull, "w", torch.ones(2, 2).bfloat16())
                refuses(TypeError, "dense tensor", kv.pushpull, "w", torch.ones(2, 2).to_sparse())
                kv.close()
            kv = kvstore.create("dist_sync")
            kv.set_optimizer(kvstore.TorchOptimizer(torch.optim.Adam, lr=0.1))
            weight, alone = torch.zeros(5), torch.nn.Parameter(torch.zeros(5))
            adam = torch.optim.Adam([alone], lr=0.1)
            kv.init("w", weight)
            for step in range(5):
                gradient = torch.arange(5.0) - step
                kv.pushpull("w", gradient * (me + 1), weight)
                alone.grad = gradient * total
                adam.step()
                assert torch.allclose(weight, alone), (weight, alone)
            kv.close()
            """)

    def test_arrays_with_asnumpy_as_a_stand_in_for_mxnets(self):
        self.expect(2, """
            for name in ("dist_sync_mpi", "dist_sync"):
                kv = kvstore.create(name)
                one, other = StandIn([[me, 1, 2]]), StandIn([[0, 0, 0]])
                kv.broadcast("w", one, other)
                assert other.asnumpy().tolist() == [[0, 1, 2]]
                kv.pushpull("w", [one, StandIn([[1, 1, 1]])], out=[one, other])
                assert one.asnumpy().tolist() == other.asnumpy().tolist() == [[3, 4, 6]], one.asnumpy()
                kv.close()
            """)

    @unittest.skipIf(WITHOUT_MXNET, WITHOUT_MXNET)
    def test_mxnets_trainer_over_these_stores_gives_the_model_of_one_process(self):
        code, said = submit(2, MXNET_PYTHON, "-W", "ignore", "-c", MXNET)
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("well"), 2, said)

    def test_a_worker_that_is_killed_is_named_to_those_who_wait(self):
        for name in ("dist_sync_mpi", "dist_sync", "dist_async"):
            for env in BOTH_WAYS:
                with self.subTest(name=name, **env):
                    # The shell outlives the killed worker, so dmlc-submit does not end the others.
                    _, said = submit(3, "/bin/sh", "-c", '"$@"; true', "sh", *self.python, "-c", KILLED, name, env=env)
                    killed = float(re.search(r"killed at ([\d.]+)", said)[1])
                    known = re.findall(r"knows at ([\d.]+): (.*)", said)
                    self.assertEqual(len(known), 2, said)
                    for when, text in known:
                        self.assertIn("rank 1", text)
                        self.assertLess(float(when) - killed, SOON_S)


if __name__ == "__main__":
    unittest.main()
