"""`theano.misc`: nothing of it is provided."""
