"""Alembic's entry: performs the steps on the connection that the caller has opened, in the caller's transaction."""

from alembic import context

from mqttlab.catalog.tables import METADATA

# SQLite cannot change most of a table in place: it is made again (batch).
context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True)
context.run_migrations()
