"""The commands of `warren`: their table, and those that are written in Python."""
