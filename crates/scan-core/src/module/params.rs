//! Weights alone: arrays by name, in a safetensors file without anything else.

use super::container::{self, from_bytes};
use super::file;
use crate::base::Result;
use crate::types::Array;
use std::collections::BTreeMap;
use std::path::Path;

/// Writes arrays by name to a file that any reader of safetensors reads.
///
/// ```
/// use scan_core::prelude::*;
///
/// let params = std::collections::BTreeMap::from([("w".to_string(), Array::vector(&[1.0, 2.0]))]);
/// let path = std::env::temp_dir().join(format!("saved-{}.safetensors", std::process::id()));
/// save_params(&path, &params)?;
/// assert_eq!(load_params(&path)?, params);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// `E0921` where it cannot be written; `E0926` for a name that the format keeps for itself; `E0906` where names take too much of the file.
pub fn save_params(path: impl AsRef<Path>, params: &BTreeMap<String, Array>) -> Result<()> {
    file::write(path.as_ref(), &params_to_bytes(params)?)
}

/// The bytes of such a file.
///
/// ```
/// use scan_core::prelude::*;
///
/// let params = std::collections::BTreeMap::from([("w".to_string(), Array::vector(&[1.0, 2.0]))]);
/// assert_eq!(params_from_bytes(&params_to_bytes(&params)?)?, params);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// As [`save_params`].
pub fn params_to_bytes(params: &BTreeMap<String, Array>) -> Result<Vec<u8>> {
    if params.contains_key(super::METADATA) {
        crate::bail!(Value, "E0926", "no tensor can be called `{}`", super::METADATA);
    }
    let tensors: Vec<(String, Array)> = params.iter().map(|(name, array)| (name.clone(), array.clone())).collect();
    container::to_bytes(&[], &tensors)
}

/// Reads arrays by name: from a file of weights that any tool has written, or from a module's file.
///
/// ```
/// use scan_core::prelude::*;
///
/// let params = std::collections::BTreeMap::from([("w".to_string(), Array::vector(&[1.0, 2.0]))]);
/// let path = std::env::temp_dir().join(format!("loaded-{}.safetensors", std::process::id()));
/// save_params(&path, &params)?;
/// assert_eq!(load_params(&path)?, params);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// `E0921` where it cannot be read; `E0922` where it is no whole safetensors file, or holds a dtype that rscan does not have.
pub fn load_params(path: impl AsRef<Path>) -> Result<BTreeMap<String, Array>> {
    Ok(file::read(path.as_ref(), false)?.0.tensors.into_iter().collect())
}

/// The same from the bytes of a file.
///
/// ```
/// use scan_core::prelude::*;
///
/// let params = std::collections::BTreeMap::from([("w".to_string(), Array::vector(&[1.0, 2.0]))]);
/// assert_eq!(params_from_bytes(&params_to_bytes(&params)?)?, params);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// As [`load_params`].
pub fn params_from_bytes(bytes: &[u8]) -> Result<BTreeMap<String, Array>> {
    Ok(from_bytes(bytes, false)?.tensors.into_iter().collect())
}
