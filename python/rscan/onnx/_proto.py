"""Models as messages of the package `onnx`: the only module that imports it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._native import __version__
from ._model import Model
from ._writer import IR_VERSION, OPSET, Body, Node, Port

try:
    import onnx
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("rscan.onnx writes files with the package `onnx`: pip install onnx", name="onnx") from error

_TENSOR = {name: onnx.helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in ("bool", "float32", "float64")}
_TENSOR |= {f"{u}int{bits}": onnx.helper.np_dtype_to_tensor_dtype(np.dtype(f"{u}int{bits}")) for u in ("", "u") for bits in (8, 16, 32, 64)}


def proto(model: Model) -> Any:
    """The message of a model, checked."""
    graph = _graph(model.graph, model.name)
    graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in model.constants.items())
    graph.doc_string = model.doc
    made = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="rscan",
        producer_version=__version__,
    )
    onnx.checker.check_model(made)
    return made


def _graph(body: Body, name: str) -> Any:
    return onnx.helper.make_graph([_node(n) for n in body.nodes], name, list(map(_port, body.inputs)), list(map(_port, body.outputs)))


def _port(port: Port) -> Any:
    return onnx.helper.make_tensor_value_info(port.name, _TENSOR[port.dtype], port.shape)


def _node(node: Node) -> Any:
    attributes = {key: _attribute(key, value, node) for key, value in node.attributes.items()}
    return onnx.helper.make_node(node.op, node.inputs, node.outputs, doc_string=node.place or None, **attributes)


def _attribute(key: str, value: Any, node: Node) -> Any:
    if isinstance(value, Body):
        return _graph(value, f"{node.outputs[0] if node.outputs else node.op}_{key}")
    return _TENSOR[value] if key == "to" else value
