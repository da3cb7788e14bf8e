"""`theano.scalar`: dtypes of scalars."""

from .tensor.elemwise import upcast


class Scalar:
    """A dtype."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def __call__(self, name: str | None = None) -> object:
        from .type import TensorType

        return TensorType(self.dtype, ())(name)


int8, int16, int32, int64 = Scalar("int8"), Scalar("int16"), Scalar("int32"), Scalar("int64")
float32, float64 = Scalar("float32"), Scalar("float64")
bool_dtypes, int_dtypes, float_dtypes = ("bool",), ("int8", "int16", "int32", "int64"), ("float32", "float64")
discrete_dtypes, continuous_dtypes = ("bool", *int_dtypes, "uint8", "uint16", "uint32", "uint64"), float_dtypes

__all__ = ["Scalar", "upcast"]
