//! A graph back to expressions.
