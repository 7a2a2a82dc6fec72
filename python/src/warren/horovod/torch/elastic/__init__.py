"""`hvd.elastic` for PyTorch: see warren.horovod._elastic, and docs/how-to/elastic.md."""
import copy
import random
from typing import Any, Callable, Dict, Iterator, List, Sized, Tuple

import torch

from warren.horovod._elastic import ObjectState, run
from warren.horovod._job import rank, size
from warren.horovod._objects import broadcast_object
from warren.horovod.torch._state import broadcast_optimizer_state, broadcast_parameters

__all__ = ["ElasticSampler", "TorchState", "run"]


class ElasticSampler(torch.utils.data.Sampler):  # type: ignore[misc]
    """Distributes the indices of a data set among the ranks. After a change of ranks during an epoch, it distributes only the indices that
    have not been processed yet. All ranks get the same number of indices; up to size - 1 indices are repeated for this.

    Make it part of a TorchState. Call `record_batch` after each batch, and `set_epoch` at the end of each epoch. The length of `dataset`
    must not change, and `seed` must be the same on all ranks."""

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:  # pylint: disable=super-init-not-called
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch, of which no index has been processed. To be called at the end of the previous epoch."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:  # pylint: disable=unused-argument
        """Records that each rank has processed a batch of this size."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> Dict[str, int]:
        """The epoch, and the number of its indices that have been processed."""
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: Dict[str, int]) -> None:
        """Continues from a state that `state_dict` has returned."""
        self.epoch, self.processed_num = state_dict["epoch"], state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Distributes the remaining indices among the current ranks."""
        self.num_replicas, self.rank = size(), rank()
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(indices)
        self.remaining_indices = indices[self.processed_num:]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        indices = self.remaining_indices
        while 0 < len(indices) < self.total_size:
            indices = indices + indices[:self.total_size - len(indices)]
        return iter(indices[self.rank::self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples


class _Handled:
    """A PyTorch object that is saved and restored by means of its `state_dict`."""

    def __init__(self, value: Any, copy_to_all: Callable[[Any], Any]) -> None:
        self.value, self._copy_to_all = value, copy_to_all
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        self.value.load_state_dict(copy.deepcopy(self._saved))

    def sync(self) -> None:
        self._copy_to_all(self.value)
        self.save()


def _copy_state(value: Any) -> None:
    value.load_state_dict(broadcast_object(value.state_dict()))


#: Classes, each with the function that copies an object's state from rank 0 to all ranks.
_KINDS: List[Tuple[type, Callable[[Any], Any]]] = [
    (torch.nn.Module, lambda model: broadcast_parameters(model.state_dict(), 0)),
    (torch.optim.Optimizer, lambda optimizer: broadcast_optimizer_state(optimizer, 0)),
]


class TorchState(ObjectState):
    """The state of a training run: a model, an optimizer, and any objects given by name, such as further models and optimizers, ElasticSamplers
    and other objects with a `state_dict`, and Python objects. All of them are attributes: `TorchState(model, optimizer, sampler=sampler, epoch=0)`
    has the attribute `epoch`."""

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any) -> None:
        self._handled: Dict[str, _Handled] = {}
        objects = {}
        for name, value in {**kwargs, "model": model, "optimizer": optimizer}.items():
            found = [copy_to_all for kind, copy_to_all in _KINDS if isinstance(value, kind)]
            if not found and hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
                found = [_copy_state]  # such as a learning rate scheduler
            if found:
                self._handled[name] = _Handled(value, found[0])
                super().__setattr__(name, value)
            else:
                objects[name] = value
        super().__init__(broadcast_object, rank, **objects)

    def save(self) -> None:
        """Saves the states of all objects."""
        for one in self._handled.values():
            one.save()
        super().save()

    def restore(self) -> None:
        """Returns to the saved states."""
        for one in self._handled.values():
            one.restore()
        super().restore()

    def sync(self) -> None:
        """Copies the states of rank 0 to all ranks."""
        for one in self._handled.values():
            one.sync()
        super().sync()

    def reset(self) -> None:
        """Makes the samplers distribute their remaining indices among the current ranks."""
        for one in self._handled.values():
            if isinstance(one.value, ElasticSampler):
                one.value.reset()

    def __setattr__(self, name: str, value: Any) -> None:
        handled = self.__dict__.get("_handled", {}).get(name)
        if handled is not None:
            handled.value = value
            handled.save()
        super().__setattr__(name, value)
