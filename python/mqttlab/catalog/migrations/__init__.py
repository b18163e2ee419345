"""The steps from each schema of the catalog to the next, as Alembic performs them; they come with the wheel."""
