"""toolkeel-cli: The command toolkeel."""
