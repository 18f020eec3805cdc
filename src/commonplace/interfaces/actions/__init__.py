"""Input and output shapes of every action, shared by MCP, REST, CLI and web."""
