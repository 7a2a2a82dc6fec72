"""Operations on TensorFlow tensors. Eager tensors are viewed as NumPy arrays without a copy, and a result is copied once. In a graph,
tf.py_function does the same, under names fixed when the graph is built, in the order in which the operations were added."""
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

from warren.collectives import Array
from warren.horovod import _arrays
from warren.horovod._errors import HorovodInternalError
from warren.horovod._job import ProcessSet, global_process_set, local_rank, local_size, process_set_of, rank
from warren.horovod._named import ReduceOp, op_of
from warren.horovod._session import session
from warren.horovod.tensorflow._compression import Compression


class OperationError(HorovodInternalError, tf.errors.FailedPreconditionError):  # type: ignore[misc]
    """A HorovodInternalError that is also an error of TensorFlow, as raised by its operations."""

    def __init__(self, message: str) -> None:
        tf.errors.FailedPreconditionError.__init__(self, None, None, message)


class ArgumentError(ValueError, tf.errors.InvalidArgumentError):  # type: ignore[misc]
    """A ValueError that is also an error of TensorFlow, as raised by its operations."""

    def __init__(self, message: str) -> None:
        tf.errors.InvalidArgumentError.__init__(self, None, None, message)


def _number_in_graph() -> Tuple[str, int]:
    """Returns the name of the function being traced, and its number of operations so far. Since the count starts anew in each trace, a rank
    that traces a function once more than the other ranks, for another shape, uses the same names."""
    graph = tf.compat.v1.get_default_graph()
    number = getattr(graph, "_warren_operations", 0)
    graph._warren_operations = number + 1
    return getattr(graph, "name", "function"), number


def name_of(kind: str, given: Optional[str], process_set: ProcessSet) -> str:
    """The name of an operation. If no name is given, operations are counted: in a graph, when the graph is built."""
    if given or tf.executing_eagerly():
        return process_set.named(kind).name_of(kind, given)
    function, number = _number_in_graph()
    return f"{kind}.{function}.{number}"


def _array(tensor: Any) -> Array:
    """The tensor's memory as an array, without a copy if TensorFlow exposes it."""
    if tensor.dtype == tf.string:
        raise ValueError("warren.horovod takes tensors of numbers, but this one has strings; hvd.broadcast_object and "
                         "hvd.allgather_object take anything")
    try:
        return np.asarray(memoryview(tensor))
    except (TypeError, ValueError, BufferError):
        return np.ascontiguousarray(tensor.numpy())


def run(function: Callable[..., Sequence[Array]], tensors: Sequence[Any], dtypes: Sequence[Any],
        shapes: Sequence[Any]) -> List[Any]:
    """Calls the function, which takes and returns arrays, now or, in a graph, when the graph runs."""

    def on_eager(*eager: Any) -> List[Any]:
        try:
            return [tf.convert_to_tensor(array) for array in function(*(_array(tensor) for tensor in eager))]
        except HorovodInternalError as error:
            raise OperationError(str(error)) from error
        except ValueError as error:
            raise ArgumentError(str(error)) from error

    if tf.executing_eagerly():
        return on_eager(*tensors)
    results = _in_order(lambda: tf.py_function(on_eager, tensors, list(dtypes)))
    for result, shape in zip(results, shapes):
        result.set_shape(shape)
    return results


def _in_order(make: Callable[[], Any]) -> List[Any]:
    """Returns the outputs of an operation that runs after the previous one in this graph. A rank that waits in an operation blocks a
    thread, so ranks that each wait in a different one could deadlock. TensorFlow itself orders operations in functions, but not in their
    gradients."""
    graph = tf.compat.v1.get_default_graph()
    if not graph.building_function:
        raise NotImplementedError("warren.horovod works eagerly and in tf.function, not in graphs for sessions of TensorFlow 1")
    before = getattr(graph, "_warren_last", None)
    with tf.control_dependencies([] if before is None else [before]):
        made = make()
    results = list(made) if isinstance(made, (list, tuple)) else [made]
    graph._warren_last = results[0].op
    return results


def dtypes_of(tensors: Sequence[Any]) -> List[Any]:
    return [tensor.dtype for tensor in tensors]


def _unknown_rows(tensor: Any) -> Any:
    return tf.TensorShape([None]).concatenate(tensor.shape[1:])


def _tensors(values: Sequence[Any]) -> List[Any]:
    return [tf.convert_to_tensor(value) for value in values]


def _now(function: Callable[[], Optional[int]]) -> Any:
    """Returns the function's result. In a graph of an elastic job, the function is called each time the graph runs, because a change of
    ranks changes ranks and sizes but keeps the graph."""
    if session() is None or tf.executing_eagerly():
        return function() or 0
    return _scalar(lambda: function() or 0)


def divided_by_size(gradient: Any, process_set: ProcessSet) -> Any:
    """Divides a gradient, dense or tf.IndexedSlices, by the number of ranks."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(divided_by_size(gradient.values, process_set), gradient.indices, gradient.dense_shape)
    return gradient / tf.cast(_now(process_set.size), gradient.dtype)


# --- reductions ---

def _allreduce(tensors: Sequence[Any], name: str, op: ReduceOp, before: float, after: float,
               process_set: ProcessSet) -> List[Any]:
    """Reduces the tensors; their gradients are reduced in the same way."""

    @tf.custom_gradient  # type: ignore[misc]
    def reduced(*sources: Any) -> Tuple[Any, Callable[..., Any]]:
        outputs = run(lambda *arrays: _arrays.allreduce(arrays, name, op, before, after, process_set).wait(), sources,
                      dtypes_of(sources), [source.shape for source in sources])

        def gradient(*gradients: Any) -> List[Any]:
            return _allreduce(gradients, f"{name}.gradient", op, before, after, process_set)

        return outputs, gradient

    return list(reduced(*tensors))


def allreduce(tensor: Any, average: Optional[bool] = None, device_dense: str = "", device_sparse: str = "",
              compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, name: Optional[str] = None, process_set: ProcessSet = global_process_set,
              ignore_name_scope: bool = False) -> Any:
    """Returns the reduction of a tensor over all ranks, the average by default. For tf.IndexedSlices this is the concatenation of the
    slices of all ranks, divided by the number of ranks for an average."""
    return grouped_allreduce([tensor], average, device_dense, device_sparse, compression, op, prescale_factor, postscale_factor,
                             process_set, ignore_name_scope, name)[0]


def grouped_allreduce(tensors: Sequence[Any], average: Optional[bool] = None,
                      device_dense: str = "", device_sparse: str = "",
                      compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
                      postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
                      ignore_name_scope: bool = False, name: Optional[str] = None) -> List[Any]:
    """Like `allreduce`, for several tensors, which are reduced together."""
    chosen = op_of(op, average)
    results: List[Any] = [None] * len(tensors)
    for index, tensor in enumerate(tensors):
        if isinstance(tensor, tf.IndexedSlices):
            if (prescale_factor, postscale_factor) != (1.0, 1.0):
                raise NotImplementedError(
                    "allreduce of tf.IndexedSlices: prescale_factor and postscale_factor are only for dense tensors")
            results[index] = _allreduce_slices(tensor, chosen, f"{name}.{index}" if name else None, process_set)
    dense = [index for index, result in enumerate(results) if result is None]
    if dense:
        compressed, contexts = zip(*(compression.compress(tf.convert_to_tensor(tensors[index])) for index in dense))
        whole = name_of("allreduce" if len(tensors) == 1 else "grouped_allreduce", name, process_set)
        reduced = _allreduce(compressed, whole, chosen, prescale_factor, postscale_factor, process_set)
        for index, tensor, context in zip(dense, reduced, contexts):
            results[index] = compression.decompress(tensor, context)
    return results


def _allreduce_slices(slices: Any, op: ReduceOp, name: Optional[str], process_set: ProcessSet) -> Any:
    if op not in (ReduceOp.Sum, ReduceOp.Average):
        raise NotImplementedError(f"allreduce of tf.IndexedSlices: they can only be summed or averaged, not {op.name}")
    values, indices = grouped_allgather([slices.values, slices.indices], f"slices.{name}" if name else None,
                                        process_set=process_set)
    if op == ReduceOp.Average:
        values = divided_by_size(values, process_set)
    return tf.IndexedSlices(values, indices, slices.dense_shape)


def _reducescatter(tensors: Sequence[Any], name: str, op: int, before: float, after: float, process_set: ProcessSet) -> List[Any]:
    @tf.custom_gradient  # type: ignore[misc]
    def reduced(*sources: Any) -> Tuple[Any, Callable[..., Any]]:
        outputs = run(lambda *arrays: _arrays.reducescatter(arrays, name, op, before, after, process_set).wait(), sources,
                      dtypes_of(sources), [_unknown_rows(source) for source in sources])

        def gradient(*gradients: Any) -> List[Any]:
            num_added = _now(process_set.size) if op == ReduceOp.Sum else 1
            return _allgather([one * tf.cast(before * after, one.dtype) * tf.cast(num_added, one.dtype) for one in gradients],
                              f"{name}.gradient", process_set)

        return outputs, gradient

    return list(reduced(*tensors))


def reducescatter(tensor: Any, device_dense: str = "", compression: Any = Compression.none, op: int = ReduceOp.Average,
                  name: Optional[str] = None, process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False,
                  prescale_factor: float = 1.0, postscale_factor: float = 1.0) -> Any:
    """Returns this rank's share of the rows of a reduction; if the shares cannot be equal, the first ranks get one row more."""
    return grouped_reducescatter([tensor], device_dense, compression, op, name, process_set, ignore_name_scope, prescale_factor,
                                 postscale_factor)[0]


def grouped_reducescatter(tensors: Sequence[Any], device_dense: str = "",
                          compression: Any = Compression.none, op: int = ReduceOp.Average, name: Optional[str] = None,
                          process_set: ProcessSet = global_process_set,
                          ignore_name_scope: bool = False,
                          prescale_factor: float = 1.0, postscale_factor: float = 1.0) -> List[Any]:
    """Like `reducescatter`, for several tensors, which are reduced together."""
    compressed, contexts = zip(*(compression.compress(tensor) for tensor in _tensors(tensors)))
    whole = name_of("reducescatter" if len(tensors) == 1 else "grouped_reducescatter", name, process_set)
    reduced = _reducescatter(compressed, whole, op, prescale_factor, postscale_factor, process_set)
    return [compression.decompress(tensor, context) for tensor, context in zip(reduced, contexts)]


# --- operations that only move data ---

def _allgather(tensors: Sequence[Any], name: str, process_set: ProcessSet) -> List[Any]:
    """Gathers rows. A rank's gradient is the average of the result's gradient over all ranks, at this rank's rows."""

    @tf.custom_gradient  # type: ignore[misc]
    def gathered(*sources: Any) -> Tuple[Any, Callable[..., Any]]:
        outputs = run(lambda *arrays: _arrays.allgather(arrays, name, process_set).wait(), sources, dtypes_of(sources),
                      [_unknown_rows(source) for source in sources])

        def gradient(*gradients: Any) -> List[Any]:
            reduced = _allreduce(gradients, f"{name}.gradient", ReduceOp.Average, 1.0, 1.0, process_set)
            mine = tf.stack([tf.shape(source)[0] for source in sources])
            rows = _allgather([mine[tf.newaxis]], f"{name}.gradient.rows", process_set)[0]
            begins = tf.reduce_sum(rows[:_now(process_set.rank)], axis=0)
            return [one[begins[i]:begins[i] + mine[i]] for i, one in enumerate(reduced)]

        return outputs, gradient

    return list(gathered(*tensors))


def allgather(tensor: Any, name: Optional[str] = None, ignore_name_scope: bool = False,
              process_set: ProcessSet = global_process_set) -> Any:
    """Returns the rows of all ranks, concatenated; ranks may pass different numbers of rows."""
    return _allgather(_tensors([tensor]), name_of("allgather", name, process_set), process_set)[0]


def grouped_allgather(tensors: Sequence[Any], name: Optional[str] = None,
                      ignore_name_scope: bool = False,
                      process_set: ProcessSet = global_process_set) -> List[Any]:
    """Like `allgather`, for several tensors, which are gathered together."""
    return _allgather(_tensors(tensors), name_of("grouped_allgather", name, process_set), process_set)


def broadcast(tensor: Any, root_rank: int, name: Optional[str] = None,
              ignore_name_scope: bool = False, process_set: ProcessSet = global_process_set) -> Any:
    """Returns the root's tensor. The gradient of the root's tensor is the average of the gradients of all ranks; on the other ranks, it is
    zero."""
    whole = name_of("broadcast", name, process_set)

    @tf.custom_gradient  # type: ignore[misc]
    def sent(source: Any) -> Tuple[Any, Callable[..., Any]]:
        (output,) = run(lambda array: [_arrays.broadcast(array, whole, root_rank, process_set).wait()], [source], [source.dtype],
                        [source.shape])

        def of_root(array: Array) -> List[Array]:
            # Not reduced in the graph: on ranks other than the root, its result is not used, and TensorFlow would remove the reduction.
            (reduced,) = _arrays.allreduce([array], f"{whole}.gradient", ReduceOp.Average, 1.0, 1.0, process_set).wait()
            return [reduced if rank() == root_rank else np.zeros_like(reduced)]

        def gradient(one: Any) -> Any:
            return run(of_root, [one], [one.dtype], [one.shape])[0]

        return output, gradient

    return sent(tf.convert_to_tensor(tensor))


def broadcast_(variables: Sequence[Any], root_rank: int, name: Optional[str] = None,
               process_set: ProcessSet = global_process_set) -> List[Any]:
    """Copies the root's variables to all ranks."""
    whole = name_of("broadcast_variables", name, process_set)
    values = _tensors(variables)

    def send(*arrays: Array) -> List[Array]:
        sending = [_arrays.broadcast(array, f"{whole}.{index}", root_rank, process_set) for index, array in enumerate(arrays)]
        return [one.wait() for one in sending]

    sent = run(send, values, dtypes_of(values), [value.shape for value in values]) if values else []
    for variable, value in zip(variables, sent):
        variable.assign(value)
    return list(variables)


def broadcast_variables(variables: Any, root_rank: int, process_set: ProcessSet = global_process_set,
                        inplace: bool = False) -> None:
    """Copies the root's variables to all ranks."""
    broadcast_(list(variables), root_rank, process_set=process_set)


def alltoall(tensor: Any, splits: Any = None, name: Optional[str] = None,
             ignore_name_scope: bool = False, process_set: ProcessSet = global_process_set) -> Any:
    """Sends splits[r] rows to each rank r. Returns the received rows, in rank order and, if there are `splits`, also the number of rows
    from each rank. Gradients are sent back to the ranks from which the rows came."""
    whole = name_of("alltoall", name, process_set)

    @tf.custom_gradient  # type: ignore[misc]
    def exchanged(source: Any, *counts: Any) -> Tuple[Any, Callable[..., Any]]:
        output, received = run(
            lambda array, *given: _arrays.alltoall(array, given[0] if given else None, whole, process_set).wait(),
            [source, *counts],
            [source.dtype, tf.int32], [_unknown_rows(source), tf.TensorShape([process_set.size() if session() is None else None])])

        def gradient(one: Any, _: Any) -> List[Any]:
            back = alltoall(one, received, f"{name or whole}.gradient", process_set=process_set)[0]
            missing = tf.shape(source)[:1] - tf.shape(back)[:1]  # rows that the splits did not send
            zeros = tf.zeros(tf.concat([missing, tf.shape(back)[1:]], 0), back.dtype)
            return [tf.concat([back, zeros], 0), *(None for _ in counts)]

        return (output, received), gradient

    given = [] if splits is None else [tf.convert_to_tensor(splits)]
    output, received = exchanged(tf.convert_to_tensor(tensor), *given)
    return output if splits is None else (output, received)


# --- this rank's numbers, read when a graph runs ---

def _scalar(function: Callable[[], int]) -> Any:
    return run(lambda: [np.array(function(), np.int32)], [], [tf.int32], [tf.TensorShape([])])[0]


def rank_op(name: Optional[str] = None) -> Any:
    return _scalar(rank)


def local_rank_op(name: Optional[str] = None) -> Any:
    return _scalar(local_rank)


def size_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    """The number of ranks of the process set, by default of the whole job."""
    return _scalar(lambda: process_set_of(process_set_id).size() or 0)


def process_set_included_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    """1 if this rank is in the process set, else 0."""
    return _scalar(lambda: int(bool(process_set_of(process_set_id).included())))


def local_size_op(name: Optional[str] = None) -> Any:
    return _scalar(local_size)
