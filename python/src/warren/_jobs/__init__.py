"""Jobs started from Python (warren.run, warren.start): dmlc-submit starts the processes, and each of them calls a function of this process,
the driver.

The driver starts dmlc-submit as a child, with the job's token in its environment, and listens. Each process of the job runs
`warren._jobs.worker`, connects to the driver (at the tracker's address, except on Kubernetes and YARN), and both prove the token before
either unpickles anything. The driver sends the pickled function; the process calls it and sends back the result, or the exception and its
traceback, and exits as a script would. The job's output is shown in the terminal or the notebook (`output`). When dmlc-submit has ended,
its exit code and its record of the job (`warren jobs`) determine the outcome: the results in the order of ranks, or the exception of the
process that failed first (`job`)."""
