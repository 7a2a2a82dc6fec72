"""A rank of horovod_tensorflow_test.py. Runs the functions named by its arguments, one after the other."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# pylint: disable=wrong-import-position
import keras
import numpy as np
import tensorflow as tf

import warren.horovod.tensorflow as hvd
import warren.horovod.tensorflow.keras as hvd_keras
from refusals import refuses


def same(got, expected):
    expected = np.asarray(expected)
    assert tuple(got.shape) == expected.shape and np.array_equal(np.asarray(got.numpy(), expected.dtype), expected), (
        hvd.rank(), got, expected)


def operations():
    """All operations, eagerly and twice in one tf.function."""
    rank, size = hvd.rank(), hvd.size()
    total = size * (size + 1) // 2

    def everything():
        mine = tf.fill([2, 3], rank + 1)
        kinds = (tf.float16, tf.bfloat16, tf.float32, tf.int32, tf.int64)
        found = [hvd.allreduce(tf.cast(mine, kind), op=hvd.Sum) for kind in kinds]
        found += [hvd.allreduce(mine, op=hvd.Max), hvd.allreduce(tf.cast(mine, tf.float64), prescale_factor=2.0),
                  hvd.allreduce(mine)]
        found += hvd.grouped_allreduce([tf.cast(mine, tf.float32), mine], op=hvd.Sum)
        found += [hvd.allgather(tf.fill([rank, 2], rank)), hvd.broadcast(mine, size - 1),
                  hvd.alltoall(tf.range(size) + 10 * rank)]
        found += hvd.alltoall(tf.repeat(tf.range(size) + 10 * rank, tf.range(size)), tf.range(size))
        found += [hvd.reducescatter(tf.range(size * size + 1.0), op=hvd.Sum), hvd.rank_op(), hvd.size_op(), hvd.local_rank_op()]
        slices = hvd.allreduce(tf.IndexedSlices(tf.fill([1, 2], float(rank)), [rank], [size, 2]), op=hvd.Sum)
        return found + [tf.convert_to_tensor(slices), hvd.broadcast([rank == 0], 0)]

    in_graph = tf.function(everything)
    for found in (everything(), in_graph(), in_graph()):
        whole, one = iter(found), np.ones((2, 3))
        for _ in range(5):
            same(next(whole), one * total)
        same(next(whole), one * size)
        same(next(whole), one * total * 2 / size)
        same(next(whole), np.trunc(one * total / size))
        for _ in range(2):
            same(next(whole), one * total)
        same(next(whole), np.repeat(np.arange(size), np.arange(size))[:, None].repeat(2, 1))
        same(next(whole), one * size)
        same(next(whole), np.arange(size) * 10 + rank)
        same(next(whole), (np.arange(size) * 10 + rank).repeat(rank))
        same(next(whole), np.full(size, rank))
        begin = rank * size + (rank > 0)
        same(next(whole), np.arange(begin, begin + size + (rank == 0)) * size)
        for expected in (rank, size, rank):
            same(next(whole), expected)
        same(next(whole), np.arange(size)[:, None].repeat(2, 1))
        same(next(whole), [True])
    assert hvd.broadcast_object({"rank": rank}, size - 1) == {"rank": size - 1}
    assert hvd.allgather_object("x" * rank) == ["x" * other for other in range(size)]
    variables = [tf.Variable(tf.fill([3], float(rank))), tf.Variable(rank)]
    hvd.broadcast_variables(variables, root_rank=size - 1)
    same(variables[0], [size - 1] * 3)
    same(variables[1], size - 1)
    some = hvd.add_process_set([0, size - 1]) if size > 2 else None
    if some is not None:
        for ask in (lambda: (hvd.size_op(1), hvd.process_set_included_op(1), hvd.size_op(), hvd.process_set_included_op()),):
            for found in (ask(), tf.function(ask)()):
                same(tf.stack(found), [2, int(rank in (0, size - 1)), size, 1])
        refuses(ValueError, "there is no process set 7; those of the job are 0, 1", hvd.size_op, 7)
    if some is not None and some.included():
        same(hvd.allreduce(tf.constant(1), op=hvd.Sum, process_set=some), 2)


def gradients():
    """Gradients through each operation."""
    rank, size = hvd.rank(), hvd.size()
    total = size * (size + 1) / 2

    def gradient_of(function, shape):
        source = tf.ones(shape)
        with tf.GradientTape() as tape:
            tape.watch(source)
            output = tf.reduce_sum(function(source) * (rank + 1.0))
        return tape.gradient(output, source)

    for wrap in (lambda function: function, tf.function):
        same(gradient_of(wrap(lambda source: hvd.allreduce(source, op=hvd.Sum)), [2]), [total] * 2)
        same(gradient_of(wrap(hvd.allgather), [rank + 1, 2]), np.full((rank + 1, 2), total / size))
        same(gradient_of(wrap(lambda source: hvd.broadcast(source, 0)), [2]), [total / size if rank == 0 else 0] * 2)
        same(gradient_of(wrap(hvd.alltoall), [size]), np.arange(1, size + 1))
        some = gradient_of(wrap(lambda source: hvd.alltoall(source, tf.ones([size], tf.int32))[0]), [size + 2])  # two rows stay
        same(some, [*range(1, size + 1), 0, 0])
        same(gradient_of(wrap(lambda source: hvd.reducescatter(source, op=hvd.Sum)), [size]), np.arange(1, size + 1) * size)


def make_model():
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((5,)), keras.layers.Dense(20, activation="tanh"), keras.layers.Dense(1)])


def data():
    generator = np.random.default_rng(1)
    inputs = generator.standard_normal((8 * hvd.size(), 5)).astype("float32")
    return inputs, inputs.sum(axis=1, keepdims=True)


def tapes():
    """A custom training loop in a tf.function learns the same as one process on all rows."""
    inputs, targets = data()

    def train(model, inputs, targets, wrap):
        optimizer = keras.optimizers.SGD(0.1)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(inputs) - targets) ** 2)
            gradients = wrap(tape).gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))

        for _ in range(5):
            step()

    alone = make_model()
    train(alone, inputs, targets, lambda tape: tape)
    for more, tolerance in (({}, 1e-6), ({"gradient_predivide_factor": 2.0}, 1e-6),
                            ({"compression": hvd.Compression.fp16}, 1e-2)):
        together = make_model()
        train(together, inputs[hvd.rank()::hvd.size()], targets[hvd.rank()::hvd.size()],
              lambda tape, more=more: hvd.DistributedGradientTape(tape, **more))
        for one, other in zip(alone.variables, together.variables):
            assert np.allclose(one, other, atol=tolerance), (more, one, other)


def local_variables():
    """The gradients of local variables are not reduced, but divided by the number of ranks, unless `scale_local_gradients` is false."""
    rank, size = hvd.rank(), hvd.size()
    for scales, divisor in ((True, size), (False, 1)):
        local, common = tf.Variable([1.0]), tf.Variable([1.0])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(local + common) * (rank + 1.0)
        tape = hvd.DistributedGradientTape(tape, scale_local_gradients=scales)
        tape.register_local_source(local)
        of_local, of_common = tape.gradient(loss, [local, common])
        same(of_local, [(rank + 1) / divisor])
        same(of_common, [(size + 1) / 2])
        optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), scale_local_gradients=scales)
        optimizer.register_local_var(local)
        optimizer.apply([tf.constant([rank + 1.0]), tf.constant([rank + 1.0])], [local, common])
        same(local, [1 - (rank + 1) / divisor])
        same(common, [1 - (size + 1) / 2])


def fit():
    """Keras: training learns the same as one process on all rows, and models that differ at first become equal."""
    rank, size = hvd.rank(), hvd.size()
    inputs, targets = data()
    alone = make_model()
    alone.compile(keras.optimizers.SGD(0.1), "mse")
    expected = alone.fit(inputs, targets, batch_size=len(inputs), epochs=4, verbose=0).history["loss"]
    model = make_model()
    optimizer = hvd_keras.DistributedOptimizer(keras.optimizers.SGD(0.1))
    assert isinstance(optimizer, keras.optimizers.SGD) and len(optimizer.variables()) == len(optimizer.variables)
    model.compile(optimizer, "mse")
    history = model.fit(inputs[rank::size], targets[rank::size], batch_size=8, epochs=4, verbose=0,
                        callbacks=[hvd_keras.callbacks.MetricAverageCallback()]).history
    assert np.allclose(history["loss"], expected, rtol=1e-4), (history, expected)

    keras.utils.set_random_seed(rank)
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(20), keras.layers.Dense(1)])
    model.compile(hvd_keras.DistributedOptimizer(keras.optimizers.Adam(0.1)), "mse")
    callbacks = [hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
                 hvd_keras.callbacks.LearningRateWarmupCallback(0.1, warmup_epochs=2),
                 hvd_keras.callbacks.LearningRateScheduleCallback(0.1, 0.5, start_epoch=2)]
    history = model.fit(inputs[rank::size], targets[rank::size], batch_size=4, epochs=4, verbose=0, callbacks=callbacks).history
    half = (size + 1) / 2 / size  # halfway from 1 / size to 1
    assert np.allclose(history["lr"], [0.1 * half, 0.1, 0.1, 0.05]), history["lr"]
    for some in (model.variables, model.optimizer.variables):
        digests = hvd.allgather_object([one.numpy().tolist() for one in some])
        assert all(digest == digests[0] for digest in digests)
    path = os.path.join(os.environ["MEETING"], f"{rank}.keras")
    model.save(path)
    again = hvd_keras.load_model(path)
    for one, other in zip(model.optimizer.variables, again.optimizer.variables):
        assert np.array_equal(one, other), (one, other)
    again.fit(inputs[rank::size], targets[rank::size], batch_size=4, epochs=1, verbose=0)
    digests = hvd.allgather_object([one.numpy().tolist() for one in again.variables])
    assert all(digest == digests[0] for digest in digests)


def errors():
    rank, size = hvd.rank(), hvd.size()
    for kind in (hvd.HorovodInternalError, tf.errors.FailedPreconditionError):
        refuses(kind, "for different operations", hvd.allreduce, tf.ones([rank % 2 + 1]))
    refuses(tf.errors.OpError, "for different operations", tf.function(lambda: hvd.allreduce(tf.ones([rank % 2 + 1]))))
    for kind in (ValueError, tf.errors.InvalidArgumentError):
        refuses(kind, "cannot be divided equally", hvd.alltoall, tf.ones([size + 1]))
        refuses(kind, "bool cannot be reduced", hvd.allreduce, tf.constant(True))
    for function in (lambda strings: hvd.broadcast(strings, 0), hvd.allgather):
        refuses(ValueError, "tensors of numbers", function, tf.constant(["hello", "x" * 40]))
    # A rank that traces a function once more than the others, for a batch of another size, still calls the same operations as they do.
    reduced = tf.function(lambda batch: hvd.allreduce(tf.reduce_mean(batch), op=hvd.Sum))
    for rows in (4, 4, 2 if rank == 0 else 4, 4):
        same(reduced(tf.ones([rows])), float(size))
    if size & (size - 1) == 0:
        same(hvd.allreduce(tf.constant([1.0, 1.0] if rank == 0 else [2.0, 2.0]), op=hvd.Adasum), [1.5, 1.5])
    refuses(ImportError, "not for mxnet", hvd.check_extension, "horovod.mxnet", "HOROVOD_WITH_MXNET", __file__, "mpi_lib")
    hvd.check_extension("horovod.tensorflow", "HOROVOD_WITH_TENSORFLOW", __file__, "mpi_lib")
    refuses(NotImplementedError, "Adasum", hvd.DistributedGradientTape, tf.GradientTape(), op=hvd.Adasum)
    refuses(TypeError, "Keras 3", hvd.DistributedOptimizer, object())
    with tf.Graph().as_default():
        refuses(NotImplementedError, "sessions of TensorFlow 1", hvd.allreduce, tf.ones([1]))
    same(hvd.allreduce(tf.ones([1]), op=hvd.Sum), [size])


def elastic():
    """Trains with hvd.elastic. If the environment has KILL=1, worker 0 kills itself in the third epoch of its first attempt."""
    inputs = np.sin(np.arange(64, dtype=np.float32)).reshape(16, 4)
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(1)])
    model.compile(optimizer=hvd_keras.DistributedOptimizer(keras.optimizers.SGD(0.125, momentum=0.5)), loss="mse")
    state = hvd_keras.elastic.KerasState(model, batch=0, epoch=0)
    resets = []
    state.register_reset_callbacks([lambda: resets.append(hvd.size())])

    class Killer(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if (state.epoch, batch, os.environ["DMLC_TASK_ID"], os.environ["DMLC_NUM_ATTEMPT"], os.environ.get("KILL")) == (2, 1, "0", "0", "1"):
                os.kill(os.getpid(), 9)

    @hvd_keras.elastic.run
    def train(state):
        callbacks = [hvd_keras.elastic.UpdateEpochStateCallback(state), hvd_keras.elastic.UpdateBatchStateCallback(state),
                     hvd_keras.elastic.CommitStateCallback(state, 4), Killer()]
        state.model.fit(inputs, inputs.sum(axis=1), batch_size=4, epochs=5 - state.epoch, shuffle=False, verbose=0, callbacks=callbacks)

    train(state)
    print("model", [round(float(one.sum()), 9) for one in model.get_weights()], state.epoch, "resets", resets, flush=True)


def graph_of_several_generations():
    """Runs one graph in generations of 2 workers, of 1, and of 2 again. Rank 0 of the first generation kills itself."""

    @tf.function
    def numbers():
        slices = tf.convert_to_tensor(hvd.allreduce(tf.IndexedSlices(tf.ones([1, 2]), [0], [1, 2])))
        source = tf.ones([2])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(source)
            gathered = hvd.allgather(source)
            scattered = tf.reduce_sum(hvd.reducescatter(source, op=hvd.Sum))
            weighted = tf.reduce_sum(gathered * tf.cast(tf.range(tf.size(gathered)), tf.float32))
        exchanged, _ = hvd.alltoall(tf.repeat(hvd.rank_op(), hvd.size_op()), tf.ones([hvd.size_op()], tf.int32))
        return slices, tape.gradient(weighted, source), tape.gradient(scattered, source), exchanged

    @hvd.elastic.run
    def train(state):
        while state.sizes[-2:] != [1, 2]:
            rank, size = hvd.rank(), hvd.size()
            for got, expected in zip(numbers(), ([[1, 1]], [2 * rank, 2 * rank + 1], [size, size], range(size))):
                same(got, expected)
            if size not in state.sizes[-1:]:
                state.sizes = [*state.sizes, size]
            state.commit()
            if (rank, state.sizes) == (0, [2]):
                os.kill(os.getpid(), 9)

    state = hvd.elastic.TensorFlowState([], sizes=[])
    train(state)
    print("sizes", state.sizes, flush=True)


if __name__ == "__main__":
    hvd.init()
    for function in sys.argv[1:]:
        globals()[function]()
    print("well", flush=True)
