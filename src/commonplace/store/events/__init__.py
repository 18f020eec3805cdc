"""The log of a library's events, and the webhooks that they are sent to."""
