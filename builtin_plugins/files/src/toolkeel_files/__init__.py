"""toolkeel-files: File tools confined to the workspace folders: read, write, edit, list, search."""
