"""toolkeel-basics: Small exact tools: calc, datetime, regex, text_utils, json_transform."""
