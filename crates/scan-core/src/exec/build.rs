//! Functions in a word, and values of expressions that need none.

use super::{Function, FunctionSpec};
use crate::base::Result;
use crate::exec::native::Engine;
use crate::expr::Var;
use crate::expr::operators::Operand;
use crate::expr::sugar::here;
use crate::ir::EvalCx;
use crate::rewrite::Options;
use crate::types::Array;

/// A function of these inputs that gives these outputs, to be compiled.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, y) = (scalar("x"), vector("y"));
/// let f = function(&[&x, &y], &[&(&x * &y)]).compile()?;
/// assert_eq!(f.run(&[Array::scalar(2.0), Array::vector(&[1.0, 2.0])])?, [Array::vector(&[2.0, 4.0])]);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub fn function(inputs: &[&Var], outputs: &[&Var]) -> FunctionSpec {
    let owned = |vars: &[&Var]| vars.iter().map(|&v| v.clone()).collect();
    FunctionSpec { inputs: owned(inputs), outputs: owned(outputs), ..FunctionSpec::default() }
}

impl FunctionSpec {
    /// Its name in prints.
    pub fn named(mut self, name: &str) -> FunctionSpec {
        self.name = Some(name.into());
        self
    }
    /// A shared variable takes this value after a call.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let (x, total) = (scalar("x"), Var::new_shared(Array::scalar(0.0), "total"));
    /// let add = function(&[&x], &[]).update(&total, &total + &x).compile()?;
    /// add.run(&[Array::scalar(2.5)])?;
    /// assert_eq!(total.eval()?, Array::scalar(2.5));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn update(mut self, shared: &Var, value: impl Operand) -> FunctionSpec {
        let value = value.beside(shared.ty().dtype, here());
        self.updates.push((shared.clone(), value));
        self
    }
    /// Shared variables with their values after a call, as loops have them.
    pub fn updates(mut self, updates: impl IntoIterator<Item = (Var, Var)>) -> FunctionSpec {
        self.updates.extend(updates);
        self
    }
    /// Another expression in place of one.
    pub fn given(mut self, replaced: &Var, by: &Var) -> FunctionSpec {
        self.givens.push((replaced.clone(), by.clone()));
        self
    }
    /// What it runs on.
    pub fn engine(mut self, engine: Engine) -> FunctionSpec {
        self.engine = Some(engine);
        self
    }
    /// Results stay on the device that it runs on, if it runs on one.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let x = vector("x");
    /// let f = function(&[&x], &[&(&x * 2.0)]).stays().compile()?;
    /// assert_eq!(f.run(&[Array::vector(&[1.0])])?[0].device(), None, "this one runs on the processor");
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    pub fn stays(mut self) -> FunctionSpec {
        self.stays = true;
        self
    }
    /// The passes that optimise it.
    pub fn passes(mut self, passes: Options) -> FunctionSpec {
        self.passes = passes;
        self
    }
    /// [`Function::new`] of it.
    ///
    /// # Errors
    /// As there; the first error of an expression that failed.
    pub fn compile(self) -> Result<Function> {
        Function::new(self)
    }
}

impl Function {
    /// A call that nobody stops: [`Function::call`] with an [`EvalCx`] of its own.
    ///
    /// # Errors
    /// As of a call.
    pub fn run(&self, args: &[Array]) -> Result<Vec<Array>> {
        self.call(&mut EvalCx::new(), args)
    }
}

impl Var {
    /// Its value, where it depends on nothing that a caller gives: constants, and shared variables as they are now.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// assert_eq!((Var::number(2.0) + 1).eval()?, Array::scalar(3.0));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    ///
    /// # Errors
    /// `E0501` for an input; the first error of an expression that failed; what ops report.
    pub fn eval(&self) -> Result<Array> {
        Ok(function(&[], &[self]).compile()?.run(&[])?.remove(0))
    }
}
