"""`theano.gof.null_type`."""


class NullType:
    """The type of a gradient that is not defined."""

    def __init__(self, why_null: str = "(no explanation given)") -> None:
        self.why_null = why_null
