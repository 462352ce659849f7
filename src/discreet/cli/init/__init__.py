"""`discreet init`: a first study.toml, from the names and types of columns and from what a
custodian answers.
"""
