"""What ``toolkeel demo`` shows: a small workspace, a recorded model, and how each step is told."""
