"""The operating system: file locks, forked processes, and text that is safe to print on terminals."""
