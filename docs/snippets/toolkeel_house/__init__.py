"""A plugin that adds a command."""
