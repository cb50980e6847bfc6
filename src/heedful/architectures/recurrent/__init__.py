"""Recurrent models: LSTM, GRU and Elman networks, with and without attention."""
