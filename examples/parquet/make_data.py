"""Writes a folder of Parquet files to train on: flights, and whether they were late.

    python make_data.py FOLDER [ROWS]
"""
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

folder = pathlib.Path(sys.argv[1])
rows = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
carriers = np.array(["Alpha", "Bravo", "Charlie", "Delta"])
for day in range(1, 8):
    rng = np.random.default_rng(day)
    carrier, hour, miles = rng.choice(carriers, rows // 7), rng.integers(5, 23, rows // 7), rng.gamma(2, 400, rows // 7).astype("float32")
    chance = -2 + 0.12 * (hour - 5) + (carrier == "Charlie") + miles / 4000 + 0.5 * (day > 5)
    late = rng.random(rows // 7) < 1 / (1 + np.exp(-chance))
    for name, part in (("train", slice(0, -1000)), ("valid", slice(-1000, None))):
        path = folder / name / f"day={day}" / "part-0.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"carrier": pa.array(carrier[part]).dictionary_encode(), "hour": hour[part],
                                 "miles": pa.array(miles[part], mask=rng.random(len(miles[part])) < 0.05), "late": late[part]}), path)
