//! Functions with Rust's types: compared with the signature once, then called without looking at types again.

use super::{Module, Port};
use crate::bail;
use crate::base::Result;
use crate::exec::Function;
use crate::ir::EvalCx;
use crate::types::{Array, Element, Type, View, ViewMut};
use std::marker::PhantomData;
use std::sync::Arc;

/// A type of Rust's that stands for an argument or a result: a number for a scalar, a `Vec` for a vector, an [`Array`] for anything and, with
/// the feature `ndarray`, its arrays.
///
/// [`Typed::call`] copies borrowed arguments, [`Typed::call_into`] reads them where they lie. An [`Array`] is never copied: it keeps the vector that it was made of, or reads memory of any owner where it lies
/// ([`Array::foreign`]), and a vector result is the function's memory itself.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, w) = (scalar("x"), Var::new_shared(Array::scalar(2.0), "w"));
/// let mut module = Module::new();
/// module.add("scale", std::sync::Arc::new(function(&[&x], &[&(&w * &x)]).compile()?))?;
/// let scale = module.typed::<(f64,), (f64,)>("scale")?;
/// assert_eq!(scale.call((3.0,))?, (6.0,));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub trait Passed: Sized {
    /// What a caller gives: a number, a slice, an array.
    type Given<'a>;
    /// Where a caller wants a result: a reference to a number, a slice, memory with a shape.
    type Place<'a>;
    /// True where an argument or result of this type can be this.
    fn fits(ty: &Type) -> bool;
    /// The argument.
    fn array(given: Self::Given<'_>) -> Array;
    /// The argument where it lies.
    ///
    /// # Errors
    /// `E0515` where it does not lie in row-major order.
    fn view<'a>(given: &'a Self::Given<'_>) -> Result<View<'a>>;
    /// The memory for a result.
    ///
    /// # Errors
    /// As of an argument.
    fn place(place: Self::Place<'_>) -> Result<ViewMut<'_>>;
    /// The result, of a type that fits.
    ///
    /// # Errors
    /// An internal error where it does not.
    fn back(array: Array) -> Result<Self>;
}

impl<T: Element> Passed for T {
    type Given<'a> = T;
    type Place<'a> = &'a mut T;
    fn fits(ty: &Type) -> bool {
        ty.dtype == T::DTYPE && ty.rank() == 0
    }
    fn array(given: T) -> Array {
        Array::scalar(given)
    }
    fn view<'a>(given: &'a T) -> Result<View<'a>> {
        Ok(given.into())
    }
    fn place(place: Self::Place<'_>) -> Result<ViewMut<'_>> {
        Ok(place.into())
    }
    fn back(array: Array) -> Result<T> {
        Ok(array.as_slice::<T>()[0])
    }
}

impl<T: Element> Passed for Vec<T> {
    type Given<'a> = &'a [T];
    type Place<'a> = &'a mut [T];
    fn fits(ty: &Type) -> bool {
        ty.dtype == T::DTYPE && ty.rank() == 1
    }
    fn array(given: &[T]) -> Array {
        Array::vector(given)
    }
    fn view<'a>(given: &'a &[T]) -> Result<View<'a>> {
        Ok((*given).into())
    }
    fn place(place: Self::Place<'_>) -> Result<ViewMut<'_>> {
        Ok(place.into())
    }
    fn back(array: Array) -> Result<Vec<T>> {
        Ok(array.into_vec())
    }
}

impl Passed for Array {
    type Given<'a> = Array;
    type Place<'a> = ViewMut<'a>;
    fn fits(_: &Type) -> bool {
        true
    }
    fn array(given: Array) -> Array {
        given
    }
    fn view<'a>(given: &'a Array) -> Result<View<'a>> {
        Ok(given.into())
    }
    fn place(place: Self::Place<'_>) -> Result<ViewMut<'_>> {
        Ok(place)
    }
    fn back(array: Array) -> Result<Array> {
        Ok(array)
    }
}

#[cfg(feature = "ndarray")]
impl<T: Element, D: ndarray::Dimension> Passed for ndarray::Array<T, D> {
    type Given<'a> = ndarray::ArrayView<'a, T, D>;
    type Place<'a> = ndarray::ArrayViewMut<'a, T, D>;
    fn fits(ty: &Type) -> bool {
        ty.dtype == T::DTYPE && D::NDIM.is_none_or(|n| n == ty.rank())
    }
    fn array(given: ndarray::ArrayView<'_, T, D>) -> Array {
        Array::new(given.shape(), crate::types::memory::collect(given.iter().copied()))
    }
    fn view<'a>(given: &'a ndarray::ArrayView<'_, T, D>) -> Result<View<'a>> {
        given.view().try_into()
    }
    fn place(place: Self::Place<'_>) -> Result<ViewMut<'_>> {
        place.try_into()
    }
    fn back(array: Array) -> Result<Self> {
        let shape = ndarray::IxDyn(array.shape());
        let made = ndarray::Array::from_shape_vec(shape, array.into_vec()).and_then(ndarray::Array::into_dimensionality);
        made.map_err(|e| crate::base::Diagnostic::internal(e.to_string()))
    }
}

/// A tuple of types that stand for all arguments, or all results, of a function.
pub trait Row: Sized {
    /// What a caller gives.
    type Given<'a>;
    /// Where a caller wants the results.
    type Place<'a>;
    /// How many there are, and whether each fits.
    fn fit(ports: &[Port]) -> Vec<bool>;
    /// The arguments.
    fn arrays(given: Self::Given<'_>) -> Vec<Array>;
    /// The arguments where they lie.
    ///
    /// # Errors
    /// As [`Passed::view`].
    fn views<'a>(given: &'a Self::Given<'_>) -> Result<Vec<View<'a>>>;
    /// The memory for the results.
    ///
    /// # Errors
    /// As [`Passed::place`].
    fn places(places: Self::Place<'_>) -> Result<Vec<ViewMut<'_>>>;
    /// The results, in order.
    ///
    /// # Errors
    /// As [`Passed::back`].
    fn back(arrays: &mut dyn Iterator<Item = Array>) -> Result<Self>;
}

macro_rules! rows {
    ($($($t:ident)*;)*) => {$(
        #[allow(non_snake_case, unused_variables)]
        impl<$($t: Passed),*> Row for ($($t,)*) {
            type Given<'a> = ($($t::Given<'a>,)*);
            type Place<'a> = ($($t::Place<'a>,)*);
            fn fit(ports: &[Port]) -> Vec<bool> {
                let fits: &[fn(&Type) -> bool] = &[$($t::fits),*];
                fits.iter().enumerate().map(|(i, fits)| ports.get(i).is_some_and(|port| fits(&port.ty))).collect()
            }
            fn arrays(($($t,)*): Self::Given<'_>) -> Vec<Array> {
                vec![$($t::array($t)),*]
            }
            fn views<'a>(($($t,)*): &'a Self::Given<'_>) -> Result<Vec<View<'a>>> {
                Ok(vec![$($t::view($t)?),*])
            }
            fn places(($($t,)*): Self::Place<'_>) -> Result<Vec<ViewMut<'_>>> {
                Ok(vec![$($t::place($t)?),*])
            }
            fn back(arrays: &mut dyn Iterator<Item = Array>) -> Result<Self> {
                $(let Some($t) = arrays.next() else { return Err(crate::base::Diagnostic::internal("a result is missing")) };)*
                Ok(($($t::back($t)?,)*))
            }
        }
    )*};
}
rows! {
    ; A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H;
}

/// A function whose arguments and results have been compared with Rust's types.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, w) = (scalar("x"), Var::new_shared(Array::scalar(2.0), "w"));
/// let mut module = Module::new();
/// module.add("scale", std::sync::Arc::new(function(&[&x], &[&(&w * &x)]).compile()?))?;
/// let scale = module.typed::<(f64,), (f64,)>("scale")?;
/// assert_eq!(scale.call((3.0,))?, (6.0,));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub struct Typed<A, R> {
    function: Arc<Function>,
    types: PhantomData<fn(A) -> R>,
}

impl<A: Row, R: Row> Typed<A, R> {
    /// Runs. Shared variables are read at the start and all written at the end; an error writes none.
    ///
    /// # Errors
    /// As [`Function::call`]: extents are looked at in every call.
    pub fn call(&self, given: A::Given<'_>) -> Result<R> {
        let results = self.function.call(&mut EvalCx::new(), &A::arrays(given))?;
        R::back(&mut results.into_iter())
    }
    /// Runs with arguments where they lie, and writes the results into memory of the caller's: [`Function::call_into`]. A result goes to a
    /// reference to a number, a slice, a [`ViewMut`] where its type is [`Array`], or a view of ndarray.
    ///
    /// # Errors
    /// As there; `E0515` for a view of ndarray that does not lie in row-major order.
    pub fn call_into(&self, given: A::Given<'_>, places: R::Place<'_>) -> Result<()> {
        self.function.call_into(&A::views(&given)?, &mut R::places(places)?)
    }
}

impl Module {
    /// A function that takes and gives values of Rust: `module.typed::<(Vec<f64>, f64), (f64,)>("score")`.
    ///
    /// ```no_run
    /// # fn main() -> scan_core::prelude::Result<()> {
    /// use scan_core::prelude::*;
    /// let module = Module::load("model.rscan")?;
    /// let score = module.typed::<(Vec<f64>, f64), (f64,)>("score")?;
    /// let (value,) = score.call((&[1.0, 2.0, 4.0], 0.5))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Module::function`]; `E0504` where number, dtypes or ranks differ from the signature's.
    pub fn typed<A: Row, R: Row>(&self, name: &str) -> Result<Typed<A, R>> {
        let signature = self.signature(name)?;
        for (what, ports, fits) in
            [("argument", &signature.inputs, A::fit(&signature.inputs)), ("result", &signature.outputs, R::fit(&signature.outputs))]
        {
            if fits.len() != ports.len() {
                bail!(Type, "E0504", "`{name}` has {} {what}s, not {}", ports.len(), fits.len());
            }
            if let Some((i, port)) = ports.iter().enumerate().find(|(i, _)| !fits[*i]) {
                let called = port.name.as_ref().map(|n| format!(" `{n}`")).unwrap_or_default();
                bail!(Type, "E0504", "{what} {i}{called} of `{name}` is {}, which the type of Rust does not stand for", port.ty);
            }
        }
        Ok(Typed { function: self.function(name)?, types: PhantomData })
    }
    /// Calls a function with one array per argument, in order.
    ///
    /// # Errors
    /// As [`Module::function`] and [`Function::call`].
    pub fn call(&self, name: &str, args: &[Array]) -> Result<Vec<Array>> {
        self.function(name)?.call(&mut EvalCx::new(), args)
    }
    /// Calls a function with arguments where they lie, and writes the results into memory of the caller's.
    ///
    /// # Errors
    /// As [`Module::function`] and [`Function::call_into`].
    pub fn call_into(&self, name: &str, args: &[View], outs: &mut [ViewMut]) -> Result<()> {
        self.function(name)?.call_into(args, outs)
    }
}
