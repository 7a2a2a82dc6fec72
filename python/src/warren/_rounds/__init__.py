"""Reports of the rounds of a training: rank 0 tells those who watch the job, Kubeflow's TrainJob and MLflow (training.SINKS)."""
