//! rscan's core: symbolic loops, differentiated and run. No Python anywhere.
//!
//! A step is written once, as a closure on placeholders; the loop around it is one node of a graph that has a gradient and can be called:
//!
//! ```
//! use scan_core::prelude::*;
//!
//! # fn main() -> Result<()> {
//! // h[t] = tanh(w · h[t-1] + x[t]), loss = Σ h[t]²
//! let (xs, w, h0) = (vector("xs"), scalar("w"), scalar("h0"));
//! let out = scan().over("x", &xs).init("h", &h0).run(|s| (&w * s.get("h") + s.get("x")).tanh());
//! let loss = out.rows("h").square().sum();
//!
//! let f = function(&[&xs, &w, &h0], &[&loss, &loss.grad(&w)]).compile()?;
//!
//! let at = |w: f64| {
//!     let out = f.run(&[Array::vector(&[0.5, -0.25, 1.0]), Array::scalar(w), Array::scalar(0.1)])?;
//!     Result::Ok((out[0].to_f64_vec()[0], out[1].to_f64_vec()[0]))
//! };
//! let eps = 1e-6;
//! let slope = (at(0.7 + eps)?.0 - at(0.7 - eps)?.0) / (2.0 * eps);
//! assert!((at(0.7)?.1 - slope).abs() < 1e-8);
//! # Ok(())
//! # }
//! ```
//!
//! Operators keep errors until an expression ends ([`prelude::Var::ok`]). `docs/rust.md` is the guide: sequences, taps, conditions that end a loop,
//! gradients, functions, files. [`prelude`] has all that a program needs.
#![deny(unsafe_code)]

pub mod backend;
pub mod base;
pub mod eval;
pub mod exec;
pub mod expr;
pub mod grad;
pub mod ir;
pub mod kernel;
pub mod lower;
pub mod module;
pub mod ops;
pub mod plan;
pub mod prelude;
pub mod rewrite;
pub mod scalar;
pub mod scan;
#[cfg(feature = "testing")]
pub mod testing;
pub mod types;

/// The programs of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Guide;
/// The program of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
