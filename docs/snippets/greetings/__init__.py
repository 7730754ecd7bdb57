"""A plugin with a hook of its own."""
