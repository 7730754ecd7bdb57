"""A calculator whose numbers are exact where they can be and whose work is bounded before it is done."""
