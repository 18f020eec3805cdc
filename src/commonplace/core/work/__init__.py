"""Tasks, epics, dependencies, planning."""
