"""Runs XGBoost's own tracker (2.1 and later) for one job, and prints the lines that bootstrap-workers looks for.

xgboost_tracker.py --num-workers N --host-ip ADDRESS"""
import argparse

from xgboost.tracker import RabitTracker

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--num-workers", type=int, required=True)
parser.add_argument("--host-ip", required=True)
arguments = parser.parse_args()
tracker = RabitTracker(n_workers=arguments.num_workers, host_ip=arguments.host_ip)
tracker.start()
found = tracker.worker_args()
print("DMLC_TRACKER_ENV_START")
print(f"DMLC_TRACKER_URI={found['dmlc_tracker_uri']}")
print(f"DMLC_TRACKER_PORT={found['dmlc_tracker_port']}")
print("DMLC_TRACKER_ENV_END", flush=True)
tracker.wait_for()
