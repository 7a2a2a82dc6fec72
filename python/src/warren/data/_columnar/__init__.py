"""Data sets with named columns: Parquet, Arrow, CSV.

How the data flows: `source` lists the files, and with `formats` reads what they say of themselves; `columns` compares that, and `pieces`
shares it out (both without files, of values alone). `source` then reads this worker's pieces, `ahead` of who uses them, and
`converter` makes tables of numbers of them, with `columns`.
"""
