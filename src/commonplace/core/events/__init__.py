"""Events of a library: listed, streamed, and sent to webhooks."""
