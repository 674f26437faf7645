"""The engine room: how requests become rows. `engine` batches and writes them, `decision` decides, all else serves the two."""
