"""Comparison of several systems on one data set with equal budgets, and its report.

`comparison` checks the systems (`setup`), then trains and measures them one by one (`measure`), each in its own process
(`job`). After each system, it gathers all numbers (`results`) and writes them as JSON, HTML and Markdown (`report`).
"""
