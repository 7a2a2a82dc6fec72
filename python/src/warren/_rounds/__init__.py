"""Reports the rounds of training: rank 0 passes them on to dmlc-submit's displays, to Kubeflow's TrainJob and to MLflow
(training.SINKS)."""
