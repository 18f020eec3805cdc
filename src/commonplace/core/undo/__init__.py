"""Recent changes of a person, and the way back from each."""
