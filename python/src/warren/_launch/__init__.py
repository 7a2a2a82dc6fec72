"""Joining and leaving the job of a launcher: dmlc-submit, mpirun, srun or torchrun."""
