"""Batch normalization with the mean and variance over the batches of all ranks."""
from typing import Any, Tuple

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from warren.horovod._job import size
from warren.horovod._named import ReduceOp
from warren.horovod.torch._ops import allreduce_async_, synchronize


def _sum_over_ranks(tensor: Tensor, name: str) -> Tensor:
    return synchronize(allreduce_async_(tensor, None, f"sync_batch_norm.{name}", ReduceOp.Sum))


class _Normalize(torch.autograd.Function):  # type: ignore[misc]
    """Normalizes a batch per channel (the second dimension). Computes the mean first, and then the variance of the centered values: this
    takes two sums over the ranks, but avoids differences of large numbers. For 16-bit floats, computes in float32, which can represent the
    counts."""

    @staticmethod
    def forward(ctx: Any, batch: Tensor, weight: Any, bias: Any, eps: float) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        dtype, batch = batch.dtype, _wide(batch)
        axes = [axis for axis in range(batch.dim()) if axis != 1]
        count = batch.numel() // batch.shape[1]
        totals = _sum_over_ranks(torch.cat([batch.sum(axes), batch.new_tensor([count])]), "mean")
        total_count = totals[-1]
        mean = totals[:-1] / total_count
        centered = batch - _per_channel(mean, batch)
        variance = _sum_over_ranks((centered * centered).sum(axes), "variance") / total_count
        inverse = torch.rsqrt(variance + eps)
        normalized = centered * _per_channel(inverse, batch)
        ctx.save_for_backward(normalized, inverse, weight, total_count)
        ctx.mark_non_differentiable(mean, variance, total_count)
        output = normalized if weight is None else normalized * _per_channel(weight, batch) + _per_channel(bias, batch)
        return (output.clone() if weight is None else output).to(dtype), mean, variance, total_count

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Any) -> Tuple[Any, ...]:
        normalized, inverse, weight, total_count = ctx.saved_tensors
        dtype, gradient = gradient.dtype, _wide(gradient)
        axes = [axis for axis in range(gradient.dim()) if axis != 1]
        of_bias, of_weight = gradient.sum(axes), (gradient * normalized).sum(axes)
        sums = _sum_over_ranks(torch.cat([of_bias, of_weight]), "gradient") / total_count
        mean_gradient, mean_product = sums.chunk(2)
        scale = inverse if weight is None else inverse * weight
        of_batch = (gradient - _per_channel(mean_gradient, gradient) - normalized * _per_channel(mean_product, gradient)) * \
            _per_channel(scale, gradient)
        if weight is None:
            return of_batch.to(dtype), None, None, None
        return of_batch.to(dtype), of_weight.to(weight.dtype), of_bias.to(weight.dtype), None


def _wide(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _per_channel(values: Tensor, batch: Tensor) -> Tensor:
    return values.view(1, -1, *[1] * (batch.dim() - 2))


class SyncBatchNorm(_BatchNorm):  # type: ignore[misc]
    """Replaces torch.nn.BatchNorm1d, 2d and 3d. In training, and without running statistics also in evaluation, it normalizes over the
    batches of all ranks together."""

    def _check_input_dim(self, batch: Tensor) -> None:
        if batch.dim() < 2:
            raise ValueError(f"SyncBatchNorm: a batch must have at least 2 dimensions, but this one has {batch.dim()}")

    def forward(self, batch: Tensor) -> Tensor:
        self._check_input_dim(batch)
        if size() == 1 or not (self.training or not self.track_running_stats):
            return super().forward(batch)
        output, mean, variance, count = _Normalize.apply(batch, self.weight, self.bias, self.eps)
        if self.training and self.track_running_stats:
            self._track(mean, variance * count / (count - 1))
        return output

    def _track(self, mean: Tensor, variance: Tensor) -> None:
        with torch.no_grad():
            self.num_batches_tracked += 1
            part = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked)
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), part)
            self.running_var.lerp_(variance.to(self.running_var.dtype), part)
