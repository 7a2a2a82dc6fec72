"""Elastic jobs, whose workers may come and go, for the trainings of any library: this process's generations, its shares of the rows, and the
states of callbacks."""
