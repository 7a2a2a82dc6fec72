"""Data sets with named columns: Parquet, Arrow, CSV.

Data flow: `source` lists the files, and reads their metadata with `formats`. `columns` compares the metadata, and `pieces` divides the rows
(both consist of pure functions, without access to files). `source` then reads this worker's pieces in a thread (`ahead`), and `converter`
turns them into tables of numbers, with `columns`."""
