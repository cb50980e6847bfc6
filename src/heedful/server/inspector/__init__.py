"""HTTP app of the inspector: its web page, and the API of the page under `/api/v1`."""
