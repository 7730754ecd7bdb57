"""What ``text_utils`` does to texts, one module for each kind of change."""
