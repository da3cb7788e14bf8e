"""`theano.tensor.signal`: not provided; convolutions are in docs/facade.md."""
