"""Background jobs: worker, leases, retries, progress."""
