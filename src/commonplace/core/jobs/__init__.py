"""Background jobs: worker, leases, retries."""
