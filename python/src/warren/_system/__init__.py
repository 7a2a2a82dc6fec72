"""The operating system: file locks, and text that is safe to print on terminals."""
