//! Calls in the caller's memory.

use super::Function;
use crate::bail;
use crate::base::Result;
use crate::ir::EvalCx;
use crate::types::lent::lend;
use crate::types::shape::tuple;
use crate::types::{Array, View, ViewMut};

impl Function {
    /// Runs with arguments where they lie, and writes the results into the caller's memory.
    ///
    /// Arguments of 1 KiB or more are not copied, but for functions with ops of users, which may keep what they are given, and on devices. Nothing keeps an
    /// argument's memory after the call. Each result is copied once, from where the engine made it. Where the call fails the memory for results
    /// is as it was, and shared variables too.
    ///
    /// ```
    /// use scan_core::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let (x, y) = (Var::float("x", 1), Var::float("y", 0));
    /// let outputs = vec![x.mul(&y), x.sum()];
    /// let f = Function::new(FunctionSpec { inputs: vec![x, y], outputs, ..Default::default() })?;
    /// let (xs, mut scaled, mut sum) = ([1.0, 2.0, 3.0], [0.0; 3], 0.0);
    /// f.call_into(&[(&xs[..]).into(), (&10.0).into()], &mut [(&mut scaled[..]).into(), (&mut sum).into()])?;
    /// assert_eq!((scaled, sum), ([10.0, 20.0, 30.0], 6.0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Function::call`]; `E0515` where a result does not fit its memory in dtype or shape, or where there is not memory for each.
    pub fn call_into(&self, args: &[View], outs: &mut [ViewMut]) -> Result<()> {
        self.call_into_with(&mut EvalCx::new(), args, outs)
    }

    /// The same, of an evaluation that may be stopped ([`EvalCx::with_poll`]).
    ///
    /// # Errors
    /// As [`Function::call_into`]; what stops it.
    pub fn call_into_with<'a>(&self, cx: &mut EvalCx, args: &[View<'a>], outs: &mut [ViewMut]) -> Result<()> {
        self.fits_dtypes(outs)?;
        let mut run = |args: Vec<Array>| {
            let made = self.call_if(cx, &args, &|made| fits_shapes(made, outs))?;
            outs.iter_mut().zip(&made).for_each(|(out, array)| out.copy_from(array));
            Ok(())
        };
        if self.device().is_some() || self.graph().whole().user_ops {
            return run(args.iter().map(View::copied).collect());
        }
        lend(|loan| run(args.iter().map(|view| view.lent(loan)).collect()))
    }

    /// What can be told before the call.
    fn fits_dtypes(&self, outs: &[ViewMut]) -> Result<()> {
        let n = self.n_outputs();
        if outs.len() != n {
            bail!(Type, "E0515", "the function has {n} results, got memory for {}", outs.len());
        }
        for (i, (&v, out)) in self.graph().results()[..n].iter().zip(outs).enumerate() {
            let ty = self.graph().ty(v);
            if ty.dtype != out.dtype() || ty.rank() != out.shape().len() {
                bail!(Type, "E0515", "result {i} is {ty}, its memory is for {} of shape {}", out.dtype(), tuple(out.shape()));
            }
        }
        Ok(())
    }
}

fn fits_shapes(made: &[Array], outs: &[ViewMut]) -> Result<()> {
    for (i, (array, out)) in made.iter().zip(outs).enumerate() {
        if array.shape() != out.shape() {
            bail!(Type, "E0515", "result {i} has shape {}, its memory has {}", tuple(array.shape()), tuple(out.shape()));
        }
    }
    Ok(())
}
