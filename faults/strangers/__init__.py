"""What strangers may send: model folders, pickles and texts that are made to do harm."""
