"""Files anywhere, for all readers of this package: on disks, in object stores, on web servers.

- Local paths and file:// need the standard library only; so do http:// and https://.
- s3://, gs://, hdfs://, abfs:// are read by pyarrow.
- All others, and every one with `storage_options`, by fsspec, as with pandas and polars.

Names are as the store has them: nothing is percent-decoded, but by http and https, whose names are URLs. A name that exists
is that file, whatever characters it has; only other names with *, ? or [ are patterns.

What is where:

- listing: `find` says which files a name stands for, with size and tag.
- ranges: `Ranges` reads byte ranges of one of them, again and again where the network fails, and checks that it is still the file
  that was listed. `open_arrow` gives the same to pyarrow.
- output: `open_output` writes a file that appears whole or not at all.
- names, retry: what names mean, and what is tried again. Pure functions.
- stores: where files are, a module for each kind of store.
"""
from warren.data._files.listing import File, find
from warren.data._files.names import hint_of_exact, shown
from warren.data._files.output import open_output
from warren.data._files.ranges import Ranges, open_arrow
from warren.data._files.retry import Retry

__all__ = ["File", "Ranges", "Retry", "find", "hint_of_exact", "open_arrow", "open_output", "shown"]
