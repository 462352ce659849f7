"""SQL for the engines: expressions, measures and statements, in each dialect."""
