"""`theano.version`: the version whose semantics these names have."""

version = full_version = short_version = "1.0.5"
release = True
