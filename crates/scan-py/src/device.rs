//! Arrays in the memory of a device, as Python has them.

use crate::array::{descr, read_numpy, to_numpy};
use crate::dlpack;
use crate::errors::{guard, guard_py};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use scan_core::prelude::{self as core, Array, Resident};
use std::sync::Arc;

/// An array in the memory of a device. It is never written to.
///
/// shape, dtype and device tell what it is; `numpy()` copies it to the host, and so does everything that takes it as an array of NumPy's.
/// Functions on its device read it where it lies. bools and integers of 8 and 16 bits take four bytes an element there.
///
/// errors: `MemoryError` (E0392) where there is no memory for a copy, `DeviceError` (E0523) where the device fails.
///
/// >>> for device in rs.devices()[1:]:
/// ...     x = rs.to_device(np.ones(3), device.name)
/// ...     assert x.shape == (3,) and x.dtype == np.float64 and x.device == device.name
/// ...     assert np.array_equal(x, np.ones(3))
#[pyclass(frozen, module = "rscan")]
pub struct DeviceArray {
    /// Its elements, on a device.
    pub array: Array,
}

impl DeviceArray {
    /// For elements that are on a device.
    pub fn new(array: Array) -> DeviceArray {
        DeviceArray { array }
    }
    fn resident(&self) -> PyResult<&Resident> {
        self.array.data().resident().ok_or_else(|| PyTypeError::new_err("its memory is the host's"))
    }
    /// The same elements, of which the host keeps no copy.
    fn apart(&self) -> PyResult<Array> {
        Ok(Array::on_device(self.resident()?.clone(), self.array.shape()))
    }
    /// A copy on the device.
    fn on_its_own(&self) -> core::Result<Array> {
        let at = self.array.data().resident();
        at.map_or_else(|| Ok(self.array.clone()), |at| Ok(Array::on_device(at.copied()?, self.array.shape())))
    }
    /// The address of its first element, where others may read it there.
    fn address(&self) -> PyResult<Result<u64, &'static str>> {
        let at = self.resident()?;
        let wide = at.dtype.size() >= 4;
        Ok(match at.memory.address() {
            Some(begin) if wide => Ok(begin + 4 * at.at as u64),
            Some(_) => Err("elements of 8 and 16 bits take four bytes there"),
            None => Err("its memory has no address that others can read"),
        })
    }
    fn number(&self) -> i32 {
        self.device().split_once(':').and_then(|d| d.1.parse().ok()).unwrap_or(0)
    }
}

#[pymethods]
impl DeviceArray {
    /// Its extents.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array.shape())
    }
    /// NumPy's dtype of its elements.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        descr(py, self.array.dtype()).into_any()
    }
    /// The device: 'cuda:0', 'wgpu:0'.
    #[getter]
    fn device(&self) -> &'static str {
        self.array.device().unwrap_or("cpu")
    }
    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.array.rank()
    }
    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.array.len()
    }
    /// Bytes of its elements as NumPy has them.
    #[getter]
    fn nbytes(&self) -> usize {
        self.array.len() * self.array.dtype().size()
    }
    /// A copy as an array of NumPy's.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard_py(py, || {
            let array = self.apart()?;
            py.detach(|| array.fetch());
            to_numpy(py, array)
        })
    }
    /// Itself, when it is computed.
    fn block(slf: Py<Self>) -> Py<Self> {
        slf
    }
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(&self, py: Python<'py>, dtype: Option<Bound<'py, PyAny>>, copy: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(pyo3::exceptions::PyValueError::new_err("an array on a device is copied to the host"));
        }
        let array = self.numpy(py)?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }
    /// As the standard of array APIs describes it. What is not copied is not to be written, which takers of DLPack before version 1 are not told:
    /// they get a copy.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // What was written is there for whoever reads it later, on whichever stream.
        drop(stream);
        let own = self.__dlpack_device__()?;
        let to = dl_device.unwrap_or(own);
        if to.0 == dlpack::HOST {
            return if copy == Some(false) { Err(is_copied()) } else { self.numpy(py)?.call_method0("__dlpack__") };
        }
        if to != own {
            return Err(PyBufferError::new_err("an array on a device goes to its own device and to the host alone"));
        }
        let versioned = max_version.is_some_and(|v| v.0 >= 1);
        let copies = copy.unwrap_or(!versioned);
        if !versioned && !copies {
            return Err(PyBufferError::new_err("it is not to be written, which takers of DLPack before version 1 cannot know"));
        }
        // Before anything is copied.
        self.address()?.map_err(PyBufferError::new_err)?;
        let array = if copies { guard(py, || py.detach(|| self.on_its_own()))? } else { self.array.clone() };
        let given = DeviceArray::new(array);
        let address = given.address()?.map_err(PyBufferError::new_err)?;
        dlpack::handed_on(py, given.array, address, own.1, versioned, copies)
    }
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        Ok(if self.resident()?.memory.address().is_some() { (dlpack::CUDA, self.number()) } else { (dlpack::HOST, 0) })
    }
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let address = self.address()?.map_err(PyAttributeError::new_err)?;
        let said = PyDict::new(py);
        said.set_item("shape", self.shape(py)?)?;
        said.set_item("typestr", self.dtype(py).getattr("str")?)?;
        said.set_item("data", (address, true))?;
        said.set_item("strides", py.None())?;
        said.set_item("version", 3)?;
        Ok(said)
    }
    fn __len__(&self) -> PyResult<usize> {
        self.array.shape().first().copied().ok_or_else(|| PyTypeError::new_err("an array without axes has no length"))
    }
    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy(py)?.get_item(index)
    }
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("DeviceArray(shape={}, dtype={}, device='{}')", self.shape(py)?.repr()?, self.array.dtype(), self.device()))
    }
    /// Travels as an array of NumPy's.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let asarray = py.import("numpy")?.getattr("asarray")?;
        Ok((asarray, PyTuple::new(py, [self.numpy(py)?])?))
    }
}

fn is_copied() -> PyErr {
    PyBufferError::new_err("an array on a device is copied to the host")
}

/// An array of NumPy's in the memory of a device.
#[pyfunction]
pub fn to_device(py: Python<'_>, value: &Bound<'_, PyAny>, device: &str) -> PyResult<Option<DeviceArray>> {
    let array = match value.cast::<DeviceArray>() {
        Ok(there) => there.get().array.clone(),
        Err(_) => guard_py(py, || read_numpy(value))?,
    };
    guard(py, || {
        let Some(site) = core::device_site(device)? else { return Ok(None) };
        py.detach(|| array.moved(&*site)).map(|array| Some(DeviceArray::new(array)))
    })
}

/// Bytes that arrays have on devices now.
#[pyfunction]
pub fn device_bytes() -> u64 {
    core::device_bytes()
}

/// A device by its name; `None` for the processor.
///
/// # Errors
/// E0521 where there is none of that name.
pub fn site(py: Python<'_>, name: Option<&str>) -> PyResult<Option<Arc<dyn core::DeviceSite>>> {
    guard(py, || name.map_or(Ok(None), core::device_site))
}
