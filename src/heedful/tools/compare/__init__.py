"""Comparison of several systems on one data set with equal budgets, and its report.

`comparison` checks the systems and lets one process after another train and measure them (`process`, `work`). After
each system it gathers all numbers in a `report` and writes that as JSON, HTML and Markdown.
"""
