"""What study.toml does to the data, for the custodian alone: counted, proposed for, shown."""
