//! The Python extension.
