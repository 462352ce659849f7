"""Private questions over HTTP: the custodian keeps the data; analysts ask and never touch a row."""
