"""Reports the rounds of training: rank 0 passes them on to the displays of dmlc-submit, to Kubeflow's TrainJob and to MLflow
(training.SINKS)."""
