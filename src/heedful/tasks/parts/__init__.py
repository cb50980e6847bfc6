"""Parts that several tasks are put together from: kinds of data, writing, classes and ranking."""
