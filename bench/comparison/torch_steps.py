"""Training steps for python_worker.py, with DistributedDataParallel or on one model alone: forward, backward and the optimizer."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Transformer(nn.Module):
    """Four layers, 3.4 million parameters."""
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


MODELS = {"transformer": Transformer, "resnet18": ResNet18}


def step(name, parallel):
    """Returns a function that trains a model for one step, always on the same batch. With `parallel`, gradients are averaged over all
    ranks."""
    torch.manual_seed(1)
    model = MODELS[name]()
    trained = DistributedDataParallel(model) if parallel else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data, target = model.batch()

    def run():
        optimizer.zero_grad()
        model.loss(trained(data), target).backward()
        optimizer.step()

    return run
