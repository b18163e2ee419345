"""The pages: each a function from the store and an address's query to what stands on it."""
