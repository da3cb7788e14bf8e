//! rscan's core: symbolic loops, differentiated and run. No Python anywhere.
//!
//! A step is written once, on placeholders; the loop around it is one node of a graph that has a gradient and can be called:
//!
//! ```
//! use scan_core::prelude::*;
//!
//! # fn main() -> Result<()> {
//! // h[t] = tanh(w · h[t-1] + x[t]), loss = Σ h[t]²
//! let (xs, w, h0) = (Var::float("xs", 1), Var::float("w", 0), Var::float("h0", 0));
//! let mut step = LoopBuilder::new(LoopOptions::default())?;
//! let x_t = step.sequence(&xs, &[0], Some("x"))?.remove(0);
//! let h_tm1 = step.state(&h0, &[-1], Some("h"))?.remove(0);
//! let h_t = w.mul(&h_tm1)?.add(&x_t)?.tanh()?;
//! let h = step.finish(&[(Some(0), h_t)], &[], None)?.outputs.remove(0);
//! let loss = h.square()?.sum()?;
//!
//! let slope = grad(Some(&loss), &[w.clone()], &GradOptions::default())?.remove(0).expect("the loss depends on w");
//! let f = Function::new(FunctionSpec { inputs: vec![xs, w, h0], outputs: vec![loss, slope], ..Default::default() })?;
//!
//! let args = |w: f64| [Array::vector(&[0.5, -0.25, 1.0]), Array::scalar(w), Array::scalar(0.1)];
//! let at = |w: f64| f.call(&mut EvalCx::new(), &args(w)).map(|out| (out[0].to_f64_vec()[0], out[1].to_f64_vec()[0]));
//! let eps = 1e-6;
//! let slope = (at(0.7 + eps)?.0 - at(0.7 - eps)?.0) / (2.0 * eps);
//! assert!((at(0.7)?.1 - slope).abs() < 1e-8);
//! # Ok(())
//! # }
//! ```
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
pub mod prelude;
pub mod rewrite;
pub mod scalar;
pub mod scan;
#[cfg(feature = "testing")]
pub mod testing;
pub mod types;
