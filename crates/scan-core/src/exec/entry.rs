//! Functions of numbers that programs of any language call by an address.

use super::Function;
use crate::backend::cpu::{self, Scalars};
use crate::bail;
use crate::base::{Diagnostic, Kind, Result, Span};
use crate::expr::Var;
use crate::ir::{Def, EvalCx};
use crate::types::{Array, DType, Type, memory};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// A function of numbers with addresses that C calls, from any number of threads at once. The addresses are good as long as this lives.
///
/// A call that fails gives NaN, or the lowest int64, and [`EntryPoint::last_error`] tells why.
///
/// ```
/// use scan_core::prelude::*;
/// use std::sync::Arc;
///
/// # fn main() -> Result<()> {
/// let (x, y) = (Var::float("x", 0), Var::float("y", 0));
/// let outputs = vec![x.mul(&y)];
/// let f = Arc::new(Function::new(FunctionSpec { inputs: vec![x, y], outputs, ..Default::default() })?);
/// let entry = EntryPoint::new(f, vec![])?;
/// assert_eq!(entry.params(), [DType::F64, DType::F64]);
/// assert!(entry.list_address()? != 0 && entry.last_error().is_none());
/// # Ok(())
/// # }
/// ```
pub struct EntryPoint {
    entry: cpu::Entry<Numbers>,
}

struct Numbers {
    function: Arc<Function>,
    /// Per input, its value where it is fixed; none where all are free.
    fixed: Vec<Option<Array>>,
    /// Dtypes of the others.
    params: Vec<DType>,
    result: DType,
    error: Mutex<Option<Box<Diagnostic>>>,
}

impl EntryPoint {
    /// Of a function, with some of its arguments fixed: a value or `None` per input, or an empty list.
    ///
    /// # Errors
    /// `E0541` where an input that is free, or the result, is no float64, float32 or int64 scalar, where there is not one result, for a function
    /// that updates shared variables (random streams are such), and for one with ops of users; `E0504` where `fixed` is of another length.
    pub fn new(function: Arc<Function>, fixed: Vec<Option<Array>>) -> Result<EntryPoint> {
        if !fixed.is_empty() && fixed.len() != function.inputs().len() {
            bail!(Type, "E0504", "the function takes {} arguments, got {}", function.inputs().len(), fixed.len());
        }
        let fixed: Vec<Option<Array>> = fixed.into_iter().map(|value| value.map(Array::owned)).collect();
        let (params, result) = types(&function, &fixed)?;
        let numbers = Numbers { function, fixed, params: params.clone(), result, error: Mutex::default() };
        Ok(EntryPoint { entry: cpu::Entry::new(numbers, &params, result) })
    }
    /// Dtypes of the arguments.
    pub fn params(&self) -> &[DType] {
        &self.entry.scalars().params
    }
    /// The dtype of the result.
    pub fn result(&self) -> DType {
        self.entry.scalars().result
    }
    /// The address of a function of these numbers, `double f(double, …)` in C.
    ///
    /// # Errors
    /// `E0541` in a build without the feature `jit`, and where the processor has no code generator.
    pub fn address(&self) -> Result<usize> {
        self.entry.address().map_err(|refusal| refused(refusal.0.clone()))
    }
    /// The address of `double f(int n, double *x, void *context)`; NaN for any other number of numbers. Only where all are float64.
    ///
    /// # Errors
    /// `E0541` where they are not.
    pub fn list_address(&self) -> Result<usize> {
        self.all_f64().map(|()| self.entry.list_address())
    }
    /// The address of `int f(double *x, intptr_t n, double *result, void *context)`, likewise. It returns 1, after an error as well.
    ///
    /// # Errors
    /// As [`EntryPoint::list_address`].
    pub fn window_address(&self) -> Result<usize> {
        self.all_f64().map(|()| self.entry.window_address())
    }
    /// The context of the last two.
    pub fn context(&self) -> usize {
        self.entry.context()
    }
    /// What was wrong in the last call that failed.
    pub fn last_error(&self) -> Option<Box<Diagnostic>> {
        self.entry.scalars().error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn all_f64(&self) -> Result<()> {
        let other = self.params().iter().chain([&self.result()]).find(|dtype| **dtype != DType::F64).copied();
        other.map_or(Ok(()), |dtype| Err(refused(format!("all of its numbers are to be float64 here, and one is {dtype}"))))
    }
}

fn refused(why: String) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Unsupported, "E0541", format!("the function has no address: {why}"))
        .help("an address is there for one float64, float32 or int64 result of such numbers; other arguments can be fixed before")
}

/// Dtypes of arguments and result.
fn types(function: &Function, fixed: &[Option<Array>]) -> Result<(Vec<DType>, DType)> {
    let graph = function.graph();
    if function.n_outputs() != 1 {
        return Err(refused(format!("it has {} results", function.n_outputs())));
    }
    if let Some(leaf) = function.updated_leaves().first() {
        return Err(refused("it updates shared variables, as random streams do".into()).label(leaf.span(), "one of them is made here"));
    }
    if graph.whole().user_ops {
        return Err(refused("it has operations of users".into()));
    }
    let free = function.inputs().iter().enumerate().filter(|(i, _)| fixed.get(*i).is_none_or(Option::is_none));
    let param = |(_, input): (usize, &Var)| {
        number_type(input.ty(), || format!("input `{}`", input.describe())).map_err(|e| e.label(input.span(), "the input is made here"))
    };
    let params = free.map(param).collect::<Result<_>>()?;
    let made = graph.results()[0];
    let span = if let Def::Out(node, _) = graph.def(made) { graph.nodes()[node].span } else { Span::NONE };
    let result = number_type(graph.ty(made), || "its result".into()).map_err(|e| e.label(span, "the result is made here"))?;
    Ok((params, result))
}

fn number_type(ty: &Type, what: impl Fn() -> String) -> Result<DType> {
    let fits = ty.rank() == 0 && matches!(ty.dtype, DType::F64 | DType::F32 | DType::I64);
    if fits { Ok(ty.dtype) } else { Err(refused(format!("{} is {ty}", what()))) }
}

impl Numbers {
    fn run(&self, words: &[u64]) -> Result<u64> {
        if words.len() != self.params.len() {
            bail!(Type, "E0504", "the function takes {} numbers, got {}", self.params.len(), words.len());
        }
        let mut given = self.params.iter().zip(words).map(|(dtype, &word)| number(*dtype, word));
        let args: Vec<Array> = match self.fixed.is_empty() {
            true => given.collect(),
            false => self.fixed.iter().filter_map(|fixed| fixed.clone().or_else(|| given.next())).collect(),
        };
        Ok(word(&self.function.call(&mut EvalCx::new(), &args)?[0]))
    }
    /// Keeps an error; the word of a result that there is not.
    #[cold]
    fn keep(&self, error: Box<Diagnostic>) -> u64 {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        match self.result {
            DType::F64 => f64::NAN.to_bits(),
            DType::F32 => f32::NAN.to_bits().into(),
            _ => i64::MIN as u64,
        }
    }
}

impl Scalars for Numbers {
    fn arity(&self) -> usize {
        self.params.len()
    }
    fn call(&self, args: &[u64]) -> u64 {
        let made = catch_unwind(AssertUnwindSafe(|| self.run(args))).unwrap_or_else(|payload| Err(memory::of_panic(&*payload)));
        made.unwrap_or_else(|error| self.keep(error))
    }
}

fn number(dtype: DType, word: u64) -> Array {
    match dtype {
        DType::F64 => Array::scalar(f64::from_bits(word)),
        DType::F32 => Array::scalar(f32::from_bits(word as u32)),
        _ => Array::scalar(word as i64),
    }
}

fn word(array: &Array) -> u64 {
    match array.dtype() {
        DType::F64 => array.as_slice::<f64>()[0].to_bits(),
        DType::F32 => array.as_slice::<f32>()[0].to_bits().into(),
        _ => array.as_slice::<i64>()[0] as u64,
    }
}
