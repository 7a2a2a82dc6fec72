"""The model of one process, byte for byte, with any number of workers. See docs/explanation/same-model.md."""
