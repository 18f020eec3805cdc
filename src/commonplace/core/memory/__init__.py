"""Memory for agents: remember, correct, reflect, context packs."""
