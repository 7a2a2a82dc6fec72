"""Creates the data sets of bench/loading, bench/reproducible and bench/elastic: Parquet files with float32 features and a label. With 28
features they have the shape of HIGGS. rows.py FOLDER ROWS FILES FEATURES"""
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

folder, (rows, files, features) = pathlib.Path(sys.argv[1]), map(int, sys.argv[2:])
folder.mkdir(parents=True)
for number in range(files):
    rng = np.random.default_rng(number)
    count = rows // files
    values = rng.standard_normal((count, features)).astype("float32")
    label = (values[:, 0] + values[:, 1] * values[:, 2] + rng.standard_normal(count) > 0).astype("int8")
    pq.write_table(pa.table({**{f"f{at}": values[:, at] for at in range(features)}, "y": label}), folder / f"part-{number}.parquet",
                   row_group_size=max(5000, 3_500_000 // features))
