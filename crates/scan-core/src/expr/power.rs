//! Powers of integers: the elementwise function is defined for every exponent, and a program that asks for `2⁻¹` as an integer is wrong.

use super::Var;
use super::extract::fold;
use super::operators::Operand;
use super::sugar::here;
use crate::base::{Diagnostic, Kind, Result, Span};
use crate::ir::Op;
use crate::ir::op::Assert;
use crate::scalar::ElemOp;
use crate::types::{Array, DType};

const REFUSED: &str = "integers to negative integer powers are not allowed";

impl Var {
    /// `self` to the power of `exponent`, as [`power`], at the caller's line.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// assert_eq!(Var::number(3.0).pow(2).eval()?, Array::scalar(9.0));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn pow(&self, exponent: impl Operand) -> Var {
        let span = here();
        Var::deferred(power(self, &exponent.beside(self.ty().dtype, span), span), span)
    }
}

/// `base` to the power of `exponent`, broadcast, as NumPy has it: where both are integers no exponent may be negative.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, n) = (Var::int(2), Var::int(10));
/// assert_eq!(power(&x, &n, Span::NONE)?.eval()?, Array::scalar(1024i64));
/// assert_eq!(power(&x, &Var::int(-1), Span::NONE).unwrap_err().code, "E0301");
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// Where the types do not fit, and `E0301` for a negative exponent that is known now. What is known only when a function runs is an
/// assertion in front of the power.
pub fn power(base: &Var, exponent: &Var, span: Span) -> Result<Var> {
    Var::all_ok([base, exponent])?;
    let integers = !base.ty().dtype.promote(exponent.ty().dtype).is_float();
    let signed = exponent.ty().dtype.is_signed_int();
    let exponent = if integers && signed { not_negative(exponent, span)? } else { exponent.clone() };
    Var::apply1(Op::Elem(ElemOp::Pow), &[base.clone(), exponent], span)
}

fn not_negative(exponent: &Var, span: Span) -> Result<Var> {
    let Some(known) = fold(exponent) else {
        let zero = Var::constant(Array::zeros(exponent.ty().dtype, &[]), span);
        let fits = Var::apply1(Op::Elem(ElemOp::Ge), &[exponent.clone(), zero], span)?;
        return Var::apply1(Assert { message: REFUSED.into() }, &[exponent.clone(), fits], span);
    };
    if known.cast(DType::I64).as_slice::<i64>().iter().any(|n| *n < 0) {
        let refused = Diagnostic::new(Kind::Value, "E0301", format!("an assertion failed: {REFUSED}")).at(span);
        return Err(refused.help("make the base or the exponent a float"));
    }
    Ok(exponent.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{Function, FunctionSpec};
    use crate::expr::{LoopBuilder, LoopOptions};
    use crate::ir::EvalCx;
    use crate::types::Type;

    fn integers(name: &str, rank: usize) -> Var {
        Var::input(Type::unknown(DType::I64, rank), Some(name), Span::NONE)
    }

    #[test]
    fn negative_exponents_that_are_known_are_refused_where_they_are_written() {
        let x = integers("x", 1);
        let refused = x.pow(Var::int(-1)).ok().unwrap_err();
        assert_eq!(
            (refused.code, refused.title.as_str()),
            ("E0301", "an assertion failed: integers to negative integer powers are not allowed")
        );
        assert!(refused.labels[0].span.place().unwrap().file.ends_with("power.rs"));
        let folded = Var::int(1).sub(Var::int(3));
        assert_eq!(x.pow(&folded).ok().unwrap_err().code, "E0301");
        // Nothing to refuse, and nothing to look at when it runs.
        for fine in [Var::int(2), Var::constant(Array::scalar(3u8), Span::NONE), Var::constant(Array::scalar(-1.0f32), Span::NONE)] {
            let Some((Op::Elem(ElemOp::Pow), ins, _)) = x.pow(&fine).owner().map(|(op, ins, i)| (op.clone(), ins.to_vec(), i)) else {
                panic!("no power")
            };
            assert_eq!(ins, [x.clone(), fine]);
        }
        Var::float("y", 0).pow(Var::int(-1)).ok().unwrap();
    }

    #[test]
    fn exponents_that_are_known_later_are_looked_at_when_it_runs() {
        let (x, n) = (integers("x", 0), integers("n", 1));
        let y = x.pow(&n);
        let f = Function::new(FunctionSpec { inputs: vec![x, n], outputs: vec![y], ..FunctionSpec::default() }).unwrap();
        assert_eq!(f.call(&mut EvalCx::new(), &[Array::scalar(3i64), Array::vector(&[0i64, 2])]).unwrap(), [Array::vector(&[1i64, 9])]);
        let refused = f.call(&mut EvalCx::new(), &[Array::scalar(1i64), Array::vector(&[0i64, -2])]).unwrap_err();
        assert_eq!((refused.code, refused.labels[0].span.place().unwrap().file.ends_with("power.rs")), ("E0301", true));
    }

    #[test]
    fn steps_of_loops_look_at_exponents() {
        let n = integers("n", 1);
        let mut b = LoopBuilder::new(LoopOptions::default()).unwrap();
        let row = b.sequence(&n, &[0], None).unwrap().remove(0);
        let state = b.state(&Var::int(2), &[-1], None).unwrap().remove(0);
        let next = state.pow(&row);
        let out = b.finish(&[(Some(0), next)], &[], None).unwrap().outputs.remove(0);
        let f = Function::new(FunctionSpec { inputs: vec![n], outputs: vec![out], ..FunctionSpec::default() }).unwrap();
        assert_eq!(f.call(&mut EvalCx::new(), &[Array::vector(&[3i64, 2, 0])]).unwrap(), [Array::vector(&[8i64, 64, 1])]);
        assert_eq!(f.call(&mut EvalCx::new(), &[Array::vector(&[3i64, -2, 0])]).unwrap_err().code, "E0301");
    }
}
