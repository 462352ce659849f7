"""A study as clients see it: what may be known of it, the errors of a plan over ε, and its one discovery."""
