"""Experiment trackers, fed by the records of a run; none is imported unless it is asked for."""
