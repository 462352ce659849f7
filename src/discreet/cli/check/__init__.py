"""`discreet check`: how study.toml fits the data, for the custodian alone."""
