"""The commands of toolkeel, one module for each or for a family."""
