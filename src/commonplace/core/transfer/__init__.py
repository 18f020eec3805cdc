"""Import, export, evaluation, deletion of an account."""
