"""Models of other toolkits: their files read, their weights brought into ours, and ours into theirs."""
