"""What the server answers beside GraphQL: its health, its metrics and a page for whoever opens it in a browser."""
