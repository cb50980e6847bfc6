"""Inspector: records the tensors of a model's forward pass over an input, analyses them and shows them on a page.

`capture` records the tensors of a forward pass, `measures` analyses tensors and beam searches, `look` combines both
with the model's outputs, `experiments` contains ablations and minimal pairs, `overview` and `page` build the HTML page,
and `plots` plots with matplotlib.
"""
