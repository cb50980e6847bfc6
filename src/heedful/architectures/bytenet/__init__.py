"""ByteNet: dilated convolutions, as encoder-decoder, and its encoder or decoder alone."""
