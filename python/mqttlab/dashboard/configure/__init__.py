"""The page Configure: a scenario or experiment as fields and as text, each following the other, and its start."""
