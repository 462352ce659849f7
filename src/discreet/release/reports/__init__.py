"""Reports: many tables from few measured sets of cells, at one cost.

axes        a column with its cells, and the levels of a hierarchy
allocation  which sets of columns are measured, and with which share of ε
fit         all tables from the noisy cells, exactly, so that they agree; and their error bounds
design      the integers of a report, and their noise
tables      the requested tables, as combinations of cells
conditions  which cells a WHERE admits
reader      from questions to tables; nested columns, such as counties in states
planner     from tables to a plan: at ε, or within an error
plan        the cost and the errors of a report, and its release
earlier     reports that were released before, and their tables
report      the released tables, and their files
rows        rows that reproduce the tables
"""
