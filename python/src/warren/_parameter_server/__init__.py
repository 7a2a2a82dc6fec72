"""The parts of warren.parameter_server, which warren.kvstore also uses."""
