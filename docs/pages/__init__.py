"""What docs/generate.py writes with: one module for each page of the reference, and what they share."""
