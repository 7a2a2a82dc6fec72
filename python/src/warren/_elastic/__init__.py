"""Elastic jobs, whose workers may join and leave, for any training library: this process's generations, its shares of the rows, and the
states of callbacks."""
