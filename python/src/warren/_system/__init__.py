"""The operating system: locks on files, and text for terminals."""
