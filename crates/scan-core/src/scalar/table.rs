//! The macro that turns the rows into an op, and what it makes of each row at run time.

use super::ElemOp;
use crate::types::DType;

/// How the dtypes of the inputs give the dtype computed in and that of the result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rule {
    /// Promote; the result has that dtype. Bools become int8 where the row says nothing of them.
    Same,
    /// Promote, then to a float; the result has that dtype.
    Float,
    /// Promote; the result is bool.
    Bool,
    /// Truth values in and out: a number is true unless it is 0.
    Logic,
    /// Promote; integers (and bools where the row says so) only.
    Int,
    /// A truth value and two inputs that promote.
    Where,
}

impl Rule {
    /// The rule in a few words, for documentation.
    pub fn doc(self) -> &'static str {
        match self {
            Rule::Same => "the promoted dtype",
            Rule::Float => "the promoted dtype as a float",
            Rule::Bool => "bool",
            Rule::Logic => "bool, from truth values",
            Rule::Int => "the promoted integer dtype",
            Rule::Where => "the promoted dtype of the last two inputs",
        }
    }
}

/// What a row does with bools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bools {
    /// It has a formula for them.
    Own,
    /// They are computed as int8 (or float, by the rule).
    Widen,
    /// They are refused.
    Refuse,
}

/// A row of the elementwise table at run time.
///
/// ```
/// use scan_core::prelude::*;
///
/// let tanh: &Row = ELEMENTWISE.iter().find(|row| row.name == "tanh").unwrap();
/// assert_eq!((tanh.args, tanh.differentiable), (&["x"][..], true));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The op.
    pub op: ElemOp,
    /// Its name in Python, in the text form and in messages.
    pub name: &'static str,
    /// Names of its inputs.
    pub args: &'static [&'static str],
    /// What it computes; the first line stands alone.
    pub doc: &'static str,
    /// How dtypes give dtypes.
    pub rule: Rule,
    /// What it does with bools.
    pub bools: Bools,
    /// Where it is defined, in words.
    pub domain: &'static str,
    /// Largest error of a float result, in units in the last place of the result's dtype.
    pub ulp: f64,
    /// Inputs at which value and gradient are tested; exact in f32.
    pub tests: &'static [&'static [f64]],
    /// True where a cotangent can flow to some input (a function flat almost everywhere has none).
    pub differentiable: bool,
}

impl Row {
    /// Number of inputs.
    pub fn arity(&self) -> usize {
        self.args.len()
    }
    /// The dtype computed in, where inputs of these dtypes are accepted (for `where`: of the last two).
    pub fn operand(&self, dtypes: impl IntoIterator<Item = DType>) -> Option<DType> {
        let skip = if self.rule == Rule::Where { 1 } else { 0 };
        let promoted = dtypes.into_iter().skip(skip).reduce(DType::promote)?;
        let dtype = match (self.rule, promoted, self.bools) {
            (Rule::Float, ..) => promoted.to_float(),
            (Rule::Logic, ..) => DType::Bool,
            (Rule::Int, DType::F32 | DType::F64, _) | (_, DType::Bool, Bools::Refuse) => return None,
            (_, DType::Bool, Bools::Widen) => DType::I8,
            _ => promoted,
        };
        Some(dtype)
    }
    /// The dtype of the result, given the dtype computed in.
    pub fn result(&self, operand: DType) -> DType {
        if matches!(self.rule, Rule::Bool | Rule::Logic) { DType::Bool } else { operand }
    }
}

/// What a row gives on floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<V, B> {
    /// A number.
    Number(V),
    /// A truth value.
    Truth(B),
}

/// `r#where` as `where`.
pub(super) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// The result type of a formula on floats.
macro_rules! result_type {
    (Bool, $C:ident) => {
        $C::B
    };
    ($rule:ident, $C:ident) => {
        $C::V
    };
}

/// What a row does with bools, from its slot.
macro_rules! bools {
    () => {
        Bools::Widen
    };
    (!) => {
        Bools::Refuse
    };
    ([$e:expr]) => {
        Bools::Own
    };
}

/// A formula mapped over operands, where the row has one. `inline` makes a loop of its own of it;
/// `shared` calls it from one loop per element type, which compiles much faster.
macro_rules! mapped {
    ($how:ident $w:ident, $T:ty, ($($x:ident),+)) => {
        None
    };
    ($how:ident $w:ident, $T:ty, ($($x:ident),+) !) => {
        None
    };
    (inline $w:ident, $T:ty, ($x:ident) [$e:expr]) => {
        Some($w.map1(|$x: $T| $e))
    };
    (inline $w:ident, $T:ty, ($x:ident, $y:ident) [$e:expr]) => {
        Some($w.map2(|$x: $T, $y: $T| $e))
    };
    (shared $w:ident, $T:ty, ($x:ident) [$e:expr]) => {
        Some($w.map1::<$T, _>(&(|$x: $T| $e) as &dyn Fn($T) -> _))
    };
    (shared $w:ident, $T:ty, ($x:ident, $y:ident) [$e:expr]) => {
        Some($w.map2::<$T, _>(&(|$x: $T, $y: $T| $e) as &dyn Fn($T, $T) -> _))
    };
    ($how:ident $w:ident, $T:ty, ($x:ident, $y:ident, $z:ident) [$e:expr]) => {
        Some($w.map3::<$T, _>(&(|$x: $T, $y: $T, $z: $T| $e) as &dyn Fn($T, $T, $T) -> _))
    };
}

/// The value of a row on f64, where it has a formula for floats.
macro_rules! number {
    ($name:ident ($($x:ident),+)) => { f64::NAN };
    ($name:ident ($($x:ident),+) [$e:expr]) => { Cast::<f64>::cast(value::$name(&Host::<f64>::CX, $($x),+)) };
}

/// The value of a row over a context, where it has a formula for floats.
macro_rules! recorded {
    ($rule:ident $c:ident $name:ident ($($x:ident),+)) => { None };
    (Bool $c:ident $name:ident ($($x:ident),+) [$e:expr]) => { Some(Outcome::Truth(value::$name($c, $($x),+))) };
    ($rule:ident $c:ident $name:ident ($($x:ident),+) [$e:expr]) => { Some(Outcome::Number(value::$name($c, $($x),+))) };
}

/// The cotangent of input `$i`, where it has one.
macro_rules! cotangent {
    ($i:ident, $op:ident) => { None };
    ($i:ident, $op:ident {$($x:ident: $e:expr),+}) => {
        match $op.row().args[$i] {
            $(stringify!($x) => Some($e),)+
            _ => None,
        }
    };
    ($i:ident, $op:ident !) => { None };
}

/// True where a row's gradient slot names an input.
macro_rules! flows {
    () => {
        false
    };
    (!) => {
        false
    };
    ($grad:tt) => {
        true
    };
}

/// True where a row has a gradient that is not written.
macro_rules! closed {
    (!) => {
        true
    };
    ($($grad:tt)?) => {
        false
    };
}

/// Turns rows into [`ElemOp`], [`ROWS`](super::ROWS), values for every dtype and derivatives. A row:
///
/// ```text
/// /// What it computes.
/// Op name(x, y): Rule, ulp 1.0, domain "x > 0",
///     float [formula over Lanes] int [formula over Int] bool [formula on bools; or ! to refuse them],
///     grad { x: cotangent of x, y: cotangent of y },
///     test (1.0, 2.0) (3.0, 4.0);
/// ```
///
/// In formulas `c` is the context, `g` the cotangent of the result and `out` the result. An input
/// that `grad` does not name gets no cotangent; `grad !` says that the derivative is not written.
macro_rules! rows {
    (($c:ident, $g:ident, $out:ident)
     $($(#[doc = $doc:literal])+
       $Op:ident $name:ident($first:ident $(, $x:ident)*): $rule:ident, ulp $ulp:literal, domain $domain:literal,
       $(float $float:tt)? $(int $int:tt)? $(bool $bool:tt)? $(, grad $grad:tt)?
       , test $(($($point:expr),+))+;)+
    ) => {
        /// An elementwise function: a row of the table.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum ElemOp { $($(#[doc = $doc])+ $Op),+ }

        /// Every row, in table order.
        ///
        /// ```
        /// use scan_core::prelude::*;
        ///
        /// assert!(ELEMENTWISE.iter().any(|row| row.name == "tanh"));
        /// ```
        pub static ROWS: &[Row] = &[$(Row {
            op: ElemOp::$Op,
            name: plain(stringify!($name)),
            args: &[stringify!($first) $(, stringify!($x))*],
            doc: concat!($($doc, "\n"),+),
            rule: Rule::$rule,
            bools: bools!($($bool)?),
            domain: $domain,
            ulp: $ulp,
            tests: &[$(&[$($point as f64),+]),+],
            differentiable: flows!($($grad)?),
        }),+];

        impl ElemOp {
            /// Every op, in table order.
            pub const ALL: &'static [ElemOp] = &[$(ElemOp::$Op),+];

            /// The value on operands of one float dtype; `None` where the row takes no floats.
            #[allow(unused_variables)]
            pub fn map_float<T: Element>(self, w: &Operands) -> Option<Array> where Host<T>: Lanes<V = T, B = bool> {
                let $c = &Host::<T>::CX;
                match self { $(ElemOp::$Op => mapped!(inline w, T, ($first $(, $x)*) $($float)?)),+ }
            }
            /// The value on operands of one integer dtype; `None` where the row takes no integers.
            #[allow(unused_variables)]
            pub fn map_int<T: Int>(self, w: &Operands) -> Option<Array> {
                match self { $(ElemOp::$Op => mapped!(shared w, T, ($first $(, $x)*) $($int)?)),+ }
            }
            /// The value on bools; `None` where the row takes none.
            #[allow(unused_variables)]
            pub fn map_bool(self, w: &Operands) -> Option<Array> {
                match self { $(ElemOp::$Op => mapped!(shared w, bool, ($first $(, $x)*) $($bool)?)),+ }
            }
            /// The value on numbers, one per input (truth is 1 and 0); NaN for a row on integers or truth values alone.
            #[allow(unused_variables)]
            pub fn value(self, ins: &[f64]) -> f64 {
                match self { $(ElemOp::$Op => {
                    let [$first $(, $x)*] = *ins else { return f64::NAN };
                    number!($name ($first $(, $x)*) $($float)?)
                }),+ }
            }
            /// The value on floats over any context; `None` where the row takes no floats or another number of inputs.
            #[allow(unused_variables)]
            pub fn record<C: Lanes>(self, $c: &C, ins: &[C::V]) -> Option<Outcome<C::V, C::B>> {
                match self { $(ElemOp::$Op => {
                    let [$first $(, $x)*] = *ins else { return None };
                    recorded!($rule $c $name ($first $(, $x)*) $($float)?)
                }),+ }
            }
            /// The cotangent of input `i`, given the inputs, the result and the cotangent of the result; linear in
            /// that cotangent, so it serves tangents too. `None` is zero.
            #[allow(unused_variables)]
            pub fn cotangent<T: Term>(self, i: usize, ins: &[T], $out: T, $g: T) -> Option<T> {
                match self { $(ElemOp::$Op => {
                    let [$first $(, $x)*] = *ins else { return None };
                    cotangent!(i, self $($grad)?)
                }),+ }
            }
            /// True where a derivative exists but is not written.
            pub fn lacks_derivative(self) -> bool {
                match self { $(ElemOp::$Op => closed!($($grad)?)),+ }
            }
        }

        /// The rows' values on floats, over any context.
        pub mod value {
            use super::*;
            $(value_fn!($c, $rule, $name, ($first $(, $x)*) $($float)?);)+
        }

        /// A method per row.
        pub trait Words: Term {
            $($(#[doc = $doc])+ fn $name(self $(, $x: Self)*) -> Self { Self::apply(ElemOp::$Op, &[self $(, $x)*]) })+
        }
        impl<T: Term> Words for T {}
    };
}

/// The value of a row on floats as a function over any context.
macro_rules! value_fn {
    ($c:ident, $rule:ident, $name:ident, ($($x:ident),+)) => {};
    ($c:ident, $rule:ident, $name:ident, ($($x:ident),+) [$e:expr]) => {
        #[doc = concat!("Row `", stringify!($name), "` on floats.")]
        pub fn $name<C: Lanes>($c: &C, $($x: C::V),+) -> result_type!($rule, C) { $e }
    };
}
