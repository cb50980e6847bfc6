"""Looking inside: everything that a model computes for a text, and the page that shows it.

`capture` keeps the tensors of a pass, `measures` says what is in them, `look` puts both together with what the model
says, `experiments` changes something and looks again, `overview` and `page` show it, and `pictures` draws.
"""
