"""Whole reports: many tables out of few measured sets of cells, so that none pays for another.

axes         a column with its cells, and the levels of a hierarchy
allocation   which sets of columns are measured, and with which part of ε
fit          all tables from the noisy cells, exactly, so that they agree
noise        how far the noise of a table can reach
design       the integers of a report, and their noise
tables       what is asked, as combinations of cells
conditions   which cells a WHERE admits
hierarchies  columns that belong to each other, as counties to states
reader       from questions to tables
planner      from tables to a plan: at ε, or within an error
plan         what a report costs and how near it will be; its release
earlier      reports that were released before, and tables of them
report       the released tables, and their files
rows         rows that reproduce the tables
"""
