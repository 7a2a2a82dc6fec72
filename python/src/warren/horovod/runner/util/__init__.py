"""`horovod.runner.util`, as far as Horovod's own tests need it."""
