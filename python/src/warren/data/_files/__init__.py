"""File access for all readers of this package: local disks, object stores, web servers.

- Local paths and file:// need only the standard library; so do http:// and https://.
- s3://, gs:// (gcs://), hdfs:// (viewfs://) and abfs:// (abfss://) are read by pyarrow.
- All other schemes are read by fsspec; if `storage_options` are given, all schemes are, as in pandas.

Names are used exactly as in the store; nothing is percent-decoded. For http and https, names are URLs. A name that exists stands for that
file, whatever characters it has; only other names with *, ? or [ are patterns.

Modules:

- listing: `find` returns the files that a name stands for, with size and tag; `as_seen_here` replaces the tag by this host's; `in_full`
  expands a leading ~.
- ranges: `Ranges` reads byte ranges of a file, retries if the network fails, and checks that the file is still the one that was listed.
  `open_arrow` opens a file for pyarrow, and `read_whole` reads a small file at once.
- output: `open_output` writes a file that appears complete or not at all; `remove` removes one.
- parts: the files into which several workers write their rows.
- names: the meaning of names. Pure functions.
- retry: the rules for retrying an operation after an error.
- stores: a module for each kind of store."""
from warren.data._files.listing import File, as_seen_here, find, in_full
from warren.data._files.names import hint_of_exact, on_disk, shown
from warren.data._files.output import open_output, remove
from warren.data._files.parts import existing, part_name
from warren.data._files.ranges import Ranges, open_arrow, read_whole
from warren.data._files.retry import Retry

__all__ = ["File", "Ranges", "Retry", "as_seen_here", "existing", "find", "hint_of_exact", "in_full", "on_disk", "open_arrow",
           "open_output", "part_name", "read_whole", "remove", "shown"]
