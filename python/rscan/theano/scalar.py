"""`theano.scalar`: dtypes of scalars."""

from .tensor.elemwise import upcast


class Scalar:
    """A dtype."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def __call__(self, name: str | None = None) -> object:
        from .type import TensorType

        return TensorType(self.dtype, ())(name)


int8: Scalar = Scalar("int8")
int16: Scalar = Scalar("int16")
int32: Scalar = Scalar("int32")
int64: Scalar = Scalar("int64")
float32: Scalar = Scalar("float32")
float64: Scalar = Scalar("float64")
bool_dtypes: tuple[str, ...] = ("bool",)
int_dtypes: tuple[str, ...] = ("int8", "int16", "int32", "int64")
float_dtypes: tuple[str, ...] = ("float32", "float64")
discrete_dtypes: tuple[str, ...] = ("bool", *int_dtypes, "uint8", "uint16", "uint32", "uint64")
continuous_dtypes: tuple[str, ...] = float_dtypes

__all__ = ["Scalar", "upcast"]
