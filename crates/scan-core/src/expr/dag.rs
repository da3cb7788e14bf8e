//! The DAG of expressions: leaves and applications, shared by reference counts.

use crate::base::{Diagnostic, Result, Span};
use crate::ir::Op;
use crate::ir::op::{Arg, Outs};
use crate::types::shared::Note;
use crate::types::{Array, DType, Dim, Shared, Type};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// An expression. Clones are the same expression; [`Var::key`] is its identity.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = vector("x");
/// let y = (&x * 2.0).sum();
/// assert_eq!((y.ty().rank(), y.ty().dtype), (0, DType::F64));
/// let f = function(&[&x], &[&y]).compile()?;
/// assert_eq!(f.run(&[Array::vector(&[1.0, 2.0])])?, [Array::scalar(6.0)]);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone)]
pub enum Var {
    /// An input, constant or shared variable.
    Leaf(Arc<Leaf>),
    /// An output of an application.
    Out(Arc<Apply>, usize),
}

/// What a leaf is.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert!(matches!(scalar("x").leaf_kind(), Some(LeafKind::Input)));
/// assert!(matches!(Var::number(1.0).leaf_kind(), Some(LeafKind::Const(_))));
/// assert!(scalar("x").exp().leaf_kind().is_none());
/// ```
#[derive(Clone, Debug)]
pub enum LeafKind {
    /// A value that the caller of a function gives, or a placeholder of a loop.
    Input,
    /// A value known now.
    Const(Array),
    /// A value that lives between calls.
    Shared(Shared),
    /// What an operator gives whose operands do not fit: the first error, which whatever ends the expression reports.
    Failed(Box<Diagnostic>),
}

/// An expression without inputs.
pub struct Leaf {
    id: u64,
    kind: LeafKind,
    ty: Type,
    span: Span,
    name: Mutex<Option<Arc<str>>>,
}

/// An op applied to expressions.
pub struct Apply {
    id: u64,
    op: Op,
    ins: Vec<Var>,
    types: Outs<Type>,
    dim: Option<Dim>,
    span: Span,
    names: Mutex<Vec<Option<Arc<str>>>>,
    note: Mutex<Option<Note>>,
}

/// The identity of an expression.
pub type Key = (u64, usize);

fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Var {
    /// A leaf that a caller fills.
    pub fn input(ty: Type, name: Option<&str>, span: Span) -> Var {
        Var::leaf(LeafKind::Input, ty, name, span)
    }
    /// A constant; its extents are known.
    pub fn constant(value: Array, span: Span) -> Var {
        let ty = value.ty();
        Var::leaf(LeafKind::Const(value), ty, None, span)
    }
    /// A shared variable. Make one leaf per variable and keep it: two leaves are two expressions with one value.
    pub fn shared(shared: Shared, name: Option<&str>, span: Span) -> Var {
        let ty = shared.ty().clone();
        Var::leaf(LeafKind::Shared(shared), ty, name, span)
    }
    /// A leaf of a shared variable in a graph whose extents have symbols of their own: of type `ty`, which the variable's type agrees with.
    pub fn shared_as(shared: Shared, ty: Type, name: Option<&str>) -> Var {
        Var::leaf(LeafKind::Shared(shared), ty, name, Span::NONE)
    }
    /// An expression that could not be made. No op has it as an input.
    pub fn failed(error: Box<Diagnostic>, span: Span) -> Var {
        Var::leaf(LeafKind::Failed(error.at(span)), Type::scalar(DType::F64), None, span)
    }
    /// What was made, or an expression that keeps the error.
    pub fn deferred(made: Result<Var>, span: Span) -> Var {
        made.unwrap_or_else(|error| Var::failed(error, span))
    }
    fn leaf(kind: LeafKind, ty: Type, name: Option<&str>, span: Span) -> Var {
        Var::Leaf(Arc::new(Leaf { id: fresh(), kind, ty, span, name: Mutex::new(name.map(Into::into)) }))
    }
    /// The outputs of an op.
    ///
    /// # Errors
    /// What the op's type inference reports, at `span`; the error of an input that failed.
    pub fn apply(op: impl Into<Op>, ins: &[Var], span: Span) -> Result<Outs<Var>> {
        Var::all_ok(ins)?;
        let op = op.into();
        let args: Vec<Arg> = ins.iter().map(Var::arg).collect();
        let types = op.def().infer(&args).map_err(|e| e.at(span))?;
        let dim = op.def().dim(&args);
        let names = Mutex::new(vec![None; types.len()]);
        let node = Arc::new(Apply { id: fresh(), op, ins: ins.to_vec(), types, dim, span, names, note: Mutex::default() });
        Ok((0..node.types.len()).map(|i| Var::Out(node.clone(), i)).collect())
    }
    /// The first output of an op.
    ///
    /// # Errors
    /// As [`Var::apply`].
    pub fn apply1(op: impl Into<Op>, ins: &[Var], span: Span) -> Result<Var> {
        Ok(Var::apply(op, ins, span)?.swap_remove(0))
    }
    /// Its identity.
    pub fn key(&self) -> Key {
        match self {
            Var::Leaf(l) => (l.id, 0),
            Var::Out(a, i) => (a.id, *i),
        }
    }
    /// Its type.
    pub fn ty(&self) -> &Type {
        match self {
            Var::Leaf(l) => &l.ty,
            Var::Out(a, i) => &a.types[*i],
        }
    }
    /// Where the user wrote it.
    pub fn span(&self) -> Span {
        match self {
            Var::Leaf(l) => l.span,
            Var::Out(a, _) => a.span,
        }
    }
    /// Its name, if the user gave one.
    pub fn name(&self) -> Option<Arc<str>> {
        match self {
            Var::Leaf(l) => l.name.lock().unwrap_or_else(|e| e.into_inner()).clone(),
            Var::Out(a, i) => a.names.lock().unwrap_or_else(|e| e.into_inner())[*i].clone(),
        }
    }
    /// Names it, or takes its name away.
    pub fn set_name(&self, name: Option<&str>) {
        let name = name.map(Into::into);
        match self {
            Var::Leaf(l) => *l.name.lock().unwrap_or_else(|e| e.into_inner()) = name,
            Var::Out(a, i) => a.names.lock().unwrap_or_else(|e| e.into_inner())[*i] = name,
        }
    }
    /// What was last noted of the application that makes it, or of the shared variable behind it.
    pub fn note(&self) -> Option<Note> {
        match self {
            Var::Leaf(_) => self.as_shared()?.note(),
            Var::Out(a, _) => a.note.lock().unwrap_or_else(|e| e.into_inner()).clone(),
        }
    }
    /// Keeps something for a program that builds expressions, as long as the application that makes this one, or the shared
    /// variable behind it, is kept. It must not hold expressions that depend on this one: they would keep each other for ever.
    /// Of other leaves nothing is kept.
    pub fn set_note(&self, note: Option<Note>) {
        match self {
            Var::Leaf(_) => self.as_shared().into_iter().for_each(|s| s.set_note(note.clone())),
            Var::Out(a, _) => *a.note.lock().unwrap_or_else(|e| e.into_inner()) = note,
        }
    }
    /// Op, inputs and output position, if it is not a leaf.
    pub fn owner(&self) -> Option<(&Op, &[Var], usize)> {
        match self {
            Var::Leaf(_) => None,
            Var::Out(a, i) => Some((&a.op, &a.ins, *i)),
        }
    }
    /// All outputs of the application that makes it; a leaf alone.
    pub fn siblings(&self) -> Vec<Var> {
        match self {
            Var::Leaf(_) => vec![self.clone()],
            Var::Out(node, _) => (0..node.types.len()).map(|i| Var::Out(node.clone(), i)).collect(),
        }
    }
    /// What kind of leaf it is, if it is one.
    pub fn leaf_kind(&self) -> Option<&LeafKind> {
        match self {
            Var::Leaf(l) => Some(&l.kind),
            Var::Out(..) => None,
        }
    }
    /// Its value, if it is a constant.
    pub fn const_value(&self) -> Option<&Array> {
        match self.leaf_kind() {
            Some(LeafKind::Const(a)) => Some(a),
            _ => match self.owner() {
                Some((Op::Const(a), ..)) => Some(a),
                _ => None,
            },
        }
    }
    /// The error that it keeps, if an operator failed.
    pub fn failure(&self) -> Option<&Diagnostic> {
        match self.leaf_kind() {
            Some(LeafKind::Failed(error)) => Some(error),
            _ => None,
        }
    }
    /// Itself, or the error that it keeps: for programs that want to know at once.
    ///
    /// ```
    /// use scan_core::prelude::*;
    ///
    /// let (x, m) = (Var::float("x", 1), Var::float("m", 2));
    /// assert_eq!(x.matmul(&m).transpose().ok().unwrap().ty().rank(), 1);
    /// assert_eq!(Var::number(2.0).matmul(&m).ok().unwrap_err().code, "E0208");
    /// ```
    ///
    /// # Errors
    /// The first error of the expression.
    pub fn ok(self) -> Result<Var> {
        Var::all_ok([&self])?;
        Ok(self)
    }
    /// Nothing, or the error of the first expression that failed.
    ///
    /// # Errors
    /// That one.
    pub fn all_ok<'v>(vars: impl IntoIterator<Item = &'v Var>) -> Result<()> {
        vars.into_iter().find_map(Var::failure).map_or(Ok(()), |error| Err(Box::new(error.clone())))
    }
    /// The variable behind it, if it is shared.
    pub fn as_shared(&self) -> Option<&Shared> {
        match self.leaf_kind() {
            Some(LeafKind::Shared(s)) => Some(s),
            _ => None,
        }
    }
    /// How to call it in a message: its name, or what made it.
    pub fn describe(&self) -> String {
        match (self.name(), self.owner()) {
            (Some(name), _) => name.to_string(),
            (None, Some((op, ..))) => format!("{}(…)", op.name()),
            (None, None) if self.failure().is_some() => "an expression that failed".to_string(),
            (None, None) => "an unnamed input".to_string(),
        }
    }
    /// As type inference sees it.
    pub fn arg(&self) -> Arg {
        let dim = match self {
            Var::Leaf(_) => None,
            Var::Out(a, _) => a.dim.clone(),
        };
        Arg { ty: self.ty().clone(), value: self.const_value().cloned(), dim }
    }
}

impl PartialEq for Var {
    fn eq(&self, other: &Var) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Var {}

impl std::hash::Hash for Var {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl std::fmt::Debug for Var {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.describe(), self.ty())
    }
}

/// Long chains are dropped in a loop: a recursive drop would overflow the stack.
impl Drop for Apply {
    fn drop(&mut self) {
        let mut stack = std::mem::take(&mut self.ins);
        while let Some(var) = stack.pop() {
            if let Var::Out(node, _) = var
                && let Some(mut node) = Arc::into_inner(node)
            {
                stack.append(&mut node.ins);
            }
        }
    }
}
