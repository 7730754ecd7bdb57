"""Moments, time zones and durations, as people write them."""
