"""A rank of bench/torch: a group of the backend "warren" and one of gloo in the same processes, which take turns.

The first argument is what to measure, as JSON. Rank 0 prints a line of JSON for each row: seconds of one call, by backend, each
sample of gloo between two of warren's."""
import json
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import warren.torch  # noqa: F401

SAMPLE_S = 0.02  # what a sample should take
MOST_CALLS = 2000


# --- collectives: a function that makes the call once, for each ---

def allreduce(group, elements, _):
    data = torch.zeros(elements)
    return lambda: dist.all_reduce(data, group=group)


def broadcast(group, elements, _):
    data = torch.zeros(elements)
    return lambda: dist.broadcast(data, 0, group=group)


def all_gather(group, elements, size):
    whole, part = torch.zeros(max(1, elements // size) * size), torch.zeros(max(1, elements // size))
    return lambda: dist.all_gather_into_tensor(whole, part, group=group)


def reduce_scatter(group, elements, size):
    whole, part = torch.zeros(max(1, elements // size) * size), torch.zeros(max(1, elements // size))
    return lambda: dist.reduce_scatter_tensor(part, whole, group=group)


def all_to_all(group, elements, size):
    given, taken = (torch.zeros(max(1, elements // size) * size) for _ in range(2))
    return lambda: dist.all_to_all_single(taken, given, group=group)


# --- trainings: one step, for each ---

class Transformer(nn.Module):
    """Four layers, 3.3 million parameters."""
    WIDTH, TOKENS, LENGTH, BATCH = 256, 512, 64, 4

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(self.TOKENS, self.WIDTH)
        layer = nn.TransformerEncoderLayer(self.WIDTH, nhead=4, dim_feedforward=4 * self.WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=4)
        self.head = nn.Linear(self.WIDTH, self.TOKENS)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)))

    def batch(self):
        tokens = torch.randint(self.TOKENS, (self.BATCH, self.LENGTH))
        return tokens, tokens.roll(-1, 1).flatten()

    def loss(self, output, target):
        return nn.functional.cross_entropy(output.flatten(0, 1), target)


class Block(nn.Module):
    """Two convolutions and a shortcut (He et al., Deep Residual Learning, 2015, figure 2)."""

    def __init__(self, taken, made, stride):
        super().__init__()
        self.path = nn.Sequential(nn.Conv2d(taken, made, 3, stride, 1, bias=False), nn.BatchNorm2d(made), nn.ReLU(),
                                  nn.Conv2d(made, made, 3, 1, 1, bias=False), nn.BatchNorm2d(made))  # fmt: skip
        same = stride == 1 and taken == made
        self.shortcut = nn.Identity() if same else nn.Sequential(nn.Conv2d(taken, made, 1, stride, bias=False), nn.BatchNorm2d(made))

    def forward(self, images):
        return torch.relu(self.path(images) + self.shortcut(images))


class ResNet18(nn.Module):
    """For images of 64 x 64; 11.7 million parameters."""
    BATCH = 2

    def __init__(self):
        super().__init__()
        widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
        blocks = [Block(taken, made, 1 if taken == made else 2) for taken, made in zip(widths, widths[1:])]
        self.layers = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                                    *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))  # fmt: skip

    def forward(self, images):
        return self.layers(images)

    def batch(self):
        return torch.randn(self.BATCH, 3, 64, 64), torch.randint(1000, (self.BATCH,))

    def loss(self, output, target):
        return nn.functional.cross_entropy(output, target)


def step_of(model_class):
    def make(group, _, __):
        torch.manual_seed(1)
        model = model_class()
        parallel = DistributedDataParallel(model, process_group=group)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        data, target = model.batch()

        def step():
            optimizer.zero_grad()
            model.loss(parallel(data), target).backward()
            optimizer.step()

        return step
    return make


def alone(model_class):
    """The step without anybody to wait for."""
    model = model_class()
    data, target = model.batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        model.loss(model(data), target).backward()
        optimizer.step()

    return step


CALLS = {"all_reduce": allreduce, "broadcast": broadcast, "all_gather": all_gather, "reduce_scatter": reduce_scatter,
         "all_to_all": all_to_all, "transformer": step_of(Transformer), "resnet18": step_of(ResNet18)}


class Ranks:
    """The groups, and what all ranks agree on by them."""

    def __init__(self):
        dist.init_process_group("gloo")
        self.size = dist.get_world_size()
        self.groups = {"warren": dist.new_group(backend="warren"), "gloo": dist.group.WORLD}

    def slowest(self, seconds):
        found = torch.tensor([seconds], dtype=torch.float64)
        dist.all_reduce(found, dist.ReduceOp.MAX, group=self.groups["warren"])
        return float(found)

    def block(self, call, count):
        """Seconds of one call, of the slowest rank."""
        dist.barrier(group=self.groups["warren"])
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return self.slowest(time.perf_counter() - begin) / count

    def measure(self, name, elements, samples):
        calls, counts = {}, {}
        for backend, group in self.groups.items():
            try:
                calls[backend] = CALLS[name](group, elements, self.size)
                calls[backend]()
            except RuntimeError as error:
                if "support" not in str(error).lower():
                    raise
                del calls[backend]
                continue
            seconds = self.block(calls[backend], 2)
            counts[backend] = max(1, min(MOST_CALLS, int(SAMPLE_S / seconds)))
        found = {backend: [] for backend in calls}
        for _ in range(samples):
            for backend, call in calls.items():
                found[backend].append(self.block(call, counts[backend]))
        found["warren"].append(self.block(calls["warren"], counts["warren"]))
        if name in ("transformer", "resnet18"):
            step = alone({"transformer": Transformer, "resnet18": ResNet18}[name])
            step()
            found["no communication"] = [self.block(step, counts["warren"]) for _ in range(samples)]
        return found


def main():
    torch.set_num_threads(1)
    ranks = Ranks()
    for name, size, samples in json.loads(sys.argv[1]):
        found = ranks.measure(name, size // 4, samples)
        if dist.get_rank() == 0:
            print(json.dumps({"name": name, "bytes": size, "seconds": found}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
