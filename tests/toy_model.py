"""The table of a recipe whose model trains in a moment."""

TOY_MODEL = """[model]
d_model = 16
d_ff = 23
heads = 2
encoder_layers = 1
decoder_layers = 1
"""
