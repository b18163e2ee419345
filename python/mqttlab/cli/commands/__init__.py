"""Command lines of the larger commands: options and help, and nothing that takes time to load."""
