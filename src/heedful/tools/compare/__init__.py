"""Comparison of several systems on one data set with equal budgets, and its report.

`comparison` checks the systems (`setup`) and runs one process after another (`job`), each of which trains and measures
a system (`measure`). After each, it gathers all numbers (`results`) and writes them as JSON, HTML and Markdown
(`report`).
"""
