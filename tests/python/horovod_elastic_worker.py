"""A worker of horovod_elastic_test.py: trains with hvd.elastic.

    horovod_elastic_worker.py EPOCHS [EVENT BATCH TASK ...]

The worker with task id TASK acts at this BATCH (counted over all epochs) in its first attempt: `kill` kills it, `term` sends it SIGTERM, `wrong`
raises an error. `late` makes its later processes wait, before they join, until BATCH batches are done. With BATCH 0, `early` kills its
first process before it joins, `joining` kills it in hvd.init after it has joined, and `after` kills it after the training, in any attempt.
The file seen-EPOCH lists the rows of all committed batches."""
import hashlib
import os
import pathlib
import signal
import sys
import time

import torch

import warren.horovod.torch as hvd
from warren.horovod import _job

BATCH, ROWS = 4, 40
TASK, ATTEMPT = os.environ["DMLC_TASK_ID"], os.environ["DMLC_NUM_ATTEMPT"]
EPOCHS = int(sys.argv[1])
EVENTS = [(what, int(batch)) for what, batch, task in zip(sys.argv[2::3], sys.argv[3::3], sys.argv[4::3]) if task == TASK]
ELASTIC = os.environ.get("WARREN_ELASTIC", "1:1") != "1:1"

if ("early", 0) in EVENTS and ATTEMPT == "0":
    os.kill(os.getpid(), signal.SIGKILL)
for what, number in EVENTS:
    while what == "late" and ATTEMPT != "0" and not pathlib.Path(f"batch-{number}").exists():
        time.sleep(.01)
if ("joining", 0) in EVENTS and ATTEMPT == "0":
    _job.Job.add = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
torch.set_num_threads(1)
hvd.init()
torch.manual_seed(1)  # the same model on all ranks; each rank computes the gradients of all rows
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
features = torch.arange(3 * ROWS, dtype=torch.float32).reshape(ROWS, 3).sin()
optimizer = torch.optim.SGD(model.parameters(), lr=.125, momentum=.5)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), num_groups=int(os.environ.get("NUM_GROUPS", "0")))
sampler = hvd.elastic.ElasticSampler(range(ROWS))


def do(number):
    """Carries out this worker's events for this batch, but only in the first attempt and in an elastic job of more than one worker."""
    for what, when in EVENTS:
        if when == number and ATTEMPT == "0" and ELASTIC:
            if what == "wrong":
                raise LookupError("an error of the program")
            if what in ("kill", "term"):
                os.kill(os.getpid(), signal.SIGKILL if what == "kill" else signal.SIGTERM)


@hvd.elastic.run
def train(state):
    """Commits after each batch, and appends the batch's rows to seen-EPOCH."""
    while state.epoch < EPOCHS:
        indices = iter(sampler)
        while batch := [index for _, index in zip(range(BATCH), indices)]:
            optimizer.zero_grad()
            model(features).square().mean().backward()
            do(state.number)
            optimizer.step()
            state.number += 1
            sampler.record_batch(0, BATCH)
            pathlib.Path(f"batch-{state.number}").touch()
            time.sleep(.01)
            state.save()
            with open(f"seen-{state.epoch}", "a", encoding="ascii") as file:
                file.write("".join(f"{index}\n" for index in batch))
            state.check_host_updates()
        state.epoch += 1
        sampler.set_epoch(state.epoch)
        state.commit()
    return "trained"


scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
thing = {"a": [1]}
state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, scheduler=scheduler, thing=thing, epoch=0, number=0)
assert state.thing is thing
resets = []
state.register_reset_callbacks([lambda: resets.append(hvd.size())])
assert train(state) == "trained"
if ("after", 0) in EVENTS:
    os.kill(os.getpid(), signal.SIGKILL)
while "after" in sys.argv:  # the other workers stay in the job until it ends them
    time.sleep(.01)
if ELASTIC:
    assert (os.environ["RANK"], os.environ["WORLD_SIZE"]) == (str(hvd.rank()), str(hvd.size()))
digest = hashlib.sha256(b"".join(one.detach().numpy().tobytes() for one in model.parameters())).hexdigest()
print("model", digest, "after", state.number, "of", hvd.size(), "resets", resets, flush=True)
