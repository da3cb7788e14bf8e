"""What is noted along a training: numbers by name and step, as arrays, a table, a plot, and for TensorBoard."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["History"]


class History:
    """Numbers by name and step.

    writer: anything with `add_scalar(tag, value, step)`, as TensorBoard's writers have it; it gets each number.

    errors: `ValueError` of `note` for what is no number.

    >>> from rscan.interop.history import History
    >>> history = History()
    >>> for step in range(3):
    ...     history.note(step, loss=0.5**step)
    >>> history["loss"]
    array([1.  , 0.5 , 0.25])
    """

    def __init__(self, writer: Any = None) -> None:
        self.writer: Any = writer
        self._noted: dict[str, list[tuple[int, float]]] = {}

    def note(self, step: int, **values: Any) -> None:
        """Notes numbers, arrays of one element among them, for a step; a step may come again with other names.

        errors: `ValueError` for what is no number.
        """
        for name, value in values.items():
            array = np.asarray(value)
            if array.size != 1 or array.dtype.kind not in "biuf":
                raise ValueError(f"`{name}` of step {step} is no number, but {array.dtype} of shape {array.shape}")
            self._noted.setdefault(name, []).append((int(step), array.item()))
            if self.writer is not None:
                self.writer.add_scalar(name, array.item(), int(step))

    @property
    def names(self) -> list[str]:
        """The names, in the order in which they came."""
        return list(self._noted)

    def __getitem__(self, name: str) -> np.ndarray:
        """The numbers of a name, in the order in which they were noted."""
        return np.array([value for _, value in self._noted[name]])

    def steps(self, name: str) -> np.ndarray:
        """The steps for which a name was noted.

        errors: `KeyError` for a name that was not noted.
        """
        return np.array([step for step, _ in self._noted[name]], "int64")

    def __len__(self) -> int:
        return len({step for noted in self._noted.values() for step, _ in noted})

    def __repr__(self) -> str:
        return f"History({len(self)} steps of {', '.join(self.names) or 'nothing'})"

    def __getstate__(self) -> dict[str, Any]:
        return {"writer": None, "_noted": self._noted}  # a writer has an open file

    def to_dataframe(self) -> Any:
        """A table of pandas with a row per step and a column per name; NaN where a step has no number.

        errors: `ImportError` without pandas.
        """
        import pandas

        columns = {name: pandas.Series(dict(noted), dtype=float) for name, noted in self._noted.items()}
        return pandas.DataFrame(columns).sort_index().rename_axis("step")

    def plot(self, *names: str, ax: Any = None) -> Any:
        """Draws names, all by default, over the steps; returns the axes of Matplotlib. Shows and writes nothing.

        errors: `ImportError` without Matplotlib, `KeyError` for a name that was not noted.
        """
        import matplotlib.pyplot

        ax = matplotlib.pyplot.subplots()[1] if ax is None else ax
        for name in names or self.names:
            ax.plot(self.steps(name), self[name], label=name)
        ax.set_xlabel("step")
        ax.legend()
        return ax
