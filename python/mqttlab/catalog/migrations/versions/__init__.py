"""One module a step, named ``v`` and the schema that it leads to."""
