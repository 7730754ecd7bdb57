"""One module for each page that docs/generate.py writes."""
