"""The table of `warren`'s commands, and the commands that are written in Python."""
