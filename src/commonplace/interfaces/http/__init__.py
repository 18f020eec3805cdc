"""In front of every HTTP request: connections, host check, authentication, limits."""
