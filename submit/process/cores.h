// Divides the cores of a machine among its workers. Without this, OpenMP would use all cores in each worker.
#pragma once

namespace warren::submit {

/// Threads for each of `workers` workers on a machine with `cores` usable cores: an equal share, at least 1.
int ThreadsOfWorker(int cores, int workers);

}  // namespace warren::submit
