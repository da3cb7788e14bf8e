//! Batching: what an op is for many rows at once. A row is one value out of many; all rows of a value are one array with a leading axis.

use super::graph::{Graph, Value};
use super::op::{BroadcastTo, Diag, Op, Outs};
use super::scan::{Keep, Scan};
use crate::base::Result;
use crate::types::{DType, Dim, Sym, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// What stands for a value of which there are many rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Batched {
    /// Row r is `value[r]`.
    Rows(Value),
    /// The same in every row.
    Fixed(Value),
    /// Row r is `value[:, r]`: a buffer of a loop. Rules of ops do not see it, but for that of the loop.
    Stacked(Value),
    /// Row r is `rows[r, :lengths[r]]`: loops stop at different steps. Only loops give it, and rules of ops do not see it.
    Ragged {
        /// Rows, filled up to one length.
        rows: Value,
        /// An i64 vector.
        lengths: Value,
        /// Where the last ones are at hand.
        last: Option<Held>,
    },
}

/// A buffer of a loop whose last row, of all rows, is the last of each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Held {
    /// The buffer.
    pub buffer: Value,
    /// Where one row runs a step, all do.
    pub together: bool,
}

impl Batched {
    /// The array.
    pub fn value(self) -> Value {
        match self {
            Batched::Rows(v) | Batched::Fixed(v) | Batched::Stacked(v) | Batched::Ragged { rows: v, .. } => v,
        }
    }
    /// Where the axis of rows stands.
    pub fn axis(self) -> Option<usize> {
        match self {
            Batched::Fixed(_) => None,
            Batched::Stacked(_) => Some(1),
            _ => Some(0),
        }
    }
    /// True where rows differ.
    pub fn varies(self) -> bool {
        !matches!(self, Batched::Fixed(_))
    }
}

/// Rows of which row r has zeros beside its element r.
#[derive(Clone, Copy)]
pub struct Diagonal {
    /// The elements that are not zero, a vector of as many as there are rows.
    pub elements: Value,
    /// They are known to be 1.
    pub ones: bool,
}

/// The graph in which a rule writes its op for all rows, and the words that rules are made of.
pub struct Batching<'a> {
    /// What is written to.
    pub g: &'a mut Graph,
    /// A value whose leading axis counts rows.
    pub leading: Value,
    /// Set by rules that know nothing better than a loop over the rows.
    pub looped: bool,
    /// Set by the rule of a loop over rows of which each may have other extents: whatever reads them belongs into that loop.
    pub apart: bool,
    /// Loops that were written, with what they were given: two branches that hold one loop hold one loop for all rows.
    written: FxHashMap<(Arc<Scan>, Vec<Batched>), Outs<Batched>>,
    /// Matrices of rows that are known to be diagonal.
    diagonals: FxHashMap<Value, Diagonal>,
}

impl<'a> Batching<'a> {
    /// Rules that write to a graph; `leading` is a value whose leading axis counts rows.
    pub fn new(g: &'a mut Graph, leading: Value) -> Batching<'a> {
        Batching { g, leading, looped: false, apart: false, written: FxHashMap::default(), diagonals: FxHashMap::default() }
    }
    /// The number of rows, an i64 scalar.
    pub fn extent(&mut self) -> Value {
        self.g.dim(self.leading, 0)
    }
    /// Number of axes of a row.
    pub fn rank(&self, x: Batched) -> usize {
        self.g.ty(x.value()).rank() - usize::from(x.varies())
    }
    /// The extent of an axis of a row, an i64 scalar.
    pub fn dim(&mut self, x: Batched, axis: usize) -> Value {
        self.g.dim(x.value(), outer(x, axis))
    }
    /// All extents of a row.
    pub fn dims(&mut self, x: Batched) -> Vec<Value> {
        (0..self.rank(x)).map(|axis| self.dim(x, axis)).collect()
    }
    /// One output that differs from row to row: an op applied to arrays.
    ///
    /// # Errors
    /// What type inference reports.
    pub fn apply(&mut self, op: impl Into<Op>, ins: &[Value]) -> Result<Value> {
        Ok(self.g.apply(op, ins)?[0])
    }
    /// What is known of rows that are diagonal.
    pub fn diagonal(&self, x: Batched) -> Option<Diagonal> {
        if let Batched::Rows(v) = x { self.diagonals.get(&v).copied() } else { None }
    }
    /// Diagonal rows of these elements.
    ///
    /// # Errors
    /// Internal ones.
    pub fn of_diagonal(&mut self, elements: Value) -> Result<Batched> {
        let rows = self.apply(Diag { k: 0 }, &[elements])?;
        self.diagonals.insert(rows, Diagonal { elements, ones: false });
        Ok(Batched::Rows(rows))
    }
    /// Makes known that a float matrix is the identity.
    ///
    /// # Errors
    /// Internal ones.
    pub fn learn_identity(&mut self, matrix: Value) -> Result<()> {
        let (one, n) = (self.g.number(self.g.ty(matrix).dtype, 1.0), self.g.dim(matrix, 0));
        let elements = self.apply(BroadcastTo {}, &[one, n])?;
        self.diagonals.insert(matrix, Diagonal { elements, ones: true });
        Ok(())
    }
    /// Rows as they are; what is the same in every row, repeated.
    ///
    /// # Errors
    /// Internal ones.
    pub fn rows(&mut self, x: Batched) -> Result<Value> {
        let Batched::Fixed(v) = x else { return Ok(x.value()) };
        let mut ins = vec![self.repeated(v).unwrap_or(v), self.extent()];
        ins.extend(self.dims(x));
        self.apply(BroadcastTo {}, &ins)
    }
    /// The number that all elements of a value are, where it is made of one.
    fn repeated(&self, v: Value) -> Option<Value> {
        let node = self.g.node_of(v)?;
        match node.op {
            Op::BroadcastTo(_) | Op::BroadcastLike(_) if self.g.ty(node.ins[0]).rank() == 0 => Some(node.ins[0]),
            Op::BroadcastTo(_) | Op::BroadcastLike(_) | Op::Expand(_) | Op::Squeeze(_) => self.repeated(node.ins[0]),
            _ => None,
        }
    }
    /// With rows in front, where they stand elsewhere.
    pub fn settled(&mut self, x: Batched) -> Batched {
        if let Batched::Stacked(v) = x { Batched::Rows(self.moved(v, 1, 0)) } else { x }
    }
    /// With rows behind the first axis of each; what is the same in every row, repeated.
    ///
    /// # Errors
    /// Internal ones.
    pub fn stacked(&mut self, x: Batched) -> Result<Value> {
        let Batched::Fixed(v) = x else {
            return Ok(if matches!(x, Batched::Stacked(_)) { x.value() } else { self.moved(x.value(), 0, 1) });
        };
        let dims = self.dims(x);
        let source = self.repeated(v).unwrap_or_else(|| self.g.expand(v, &[1]));
        let mut ins = vec![source, dims[0], self.extent()];
        ins.extend(&dims[1..]);
        self.apply(BroadcastTo {}, &ins)
    }
    /// Rows with axes of extent 1 behind the leading one, so that elements meet those of their own row where rows have `rank` axes.
    pub fn aligned(&mut self, x: Batched, rank: usize) -> Value {
        let own = self.rank(x);
        match x {
            Batched::Fixed(v) => v,
            _ if own >= rank => x.value(),
            _ => self.g.expand(x.value(), &(1..=rank - own).collect::<Vec<_>>()),
        }
    }
    /// The op for arrays with a leading axis, which it takes as it takes others.
    ///
    /// # Errors
    /// What type inference reports.
    pub fn as_is(&mut self, op: impl Into<Op>, ins: &[Batched]) -> Result<Outs<Batched>> {
        let ins: Vec<Value> = ins.iter().map(|x| x.value()).collect();
        Ok(self.g.apply(op, &ins)?.into_iter().map(Batched::Rows).collect())
    }
    /// As [`Batching::as_is`], where every input must have the leading axis.
    ///
    /// # Errors
    /// What type inference reports.
    pub fn all_rows(&mut self, op: impl Into<Op>, ins: &[Batched]) -> Result<Outs<Batched>> {
        let ins: Vec<Value> = ins.iter().map(|x| self.rows(*x)).collect::<Result<_>>()?;
        Ok(self.g.apply(op, &ins)?.into_iter().map(Batched::Rows).collect())
    }
    /// As [`Batching::as_is`] for ops whose inputs broadcast together.
    ///
    /// # Errors
    /// What type inference reports.
    pub fn broadcasting(&mut self, op: impl Into<Op>, ins: &[Batched]) -> Result<Outs<Batched>> {
        let rank = ins.iter().map(|x| self.rank(*x)).max().unwrap_or(0);
        let ins: Vec<Value> = ins.iter().map(|x| self.aligned(*x, rank)).collect();
        Ok(self.g.apply(op, &ins)?.into_iter().map(Batched::Rows).collect())
    }
    /// Row after row: the last resort, which is right for every op.
    ///
    /// # Errors
    /// What type inference reports.
    pub fn row_by_row(&mut self, op: impl Into<Op>, ins: &[Batched]) -> Result<Outs<Batched>> {
        let op = op.into();
        let mut from = Graph::new();
        let mut given: Vec<(Value, Batched)> = vec![];
        let mut operands = vec![];
        for x in ins {
            let known = if x.varies() { None } else { self.g.const_value(x.value()).cloned() };
            operands.push(match known {
                Some(known) => from.constant(known),
                None => {
                    let param = from.param(self.row_type(*x), None);
                    given.push((param, *x));
                    param
                }
            });
        }
        let outs = from.apply(op, &operands)?;
        self.loop_over(&from, &given, &outs)
    }
    /// The type of a row.
    pub fn row_type(&self, x: Batched) -> Type {
        let ty = self.g.ty(x.value());
        let dims = ty.dims.iter().enumerate().filter(|(axis, _)| x.axis() != Some(*axis));
        Type::new(ty.dtype, dims.map(|(_, d)| d.clone()))
    }
    /// A loop over the rows whose step computes `wanted` of another graph; `given` are its values that are known here.
    ///
    /// # Errors
    /// What type inference reports.
    pub fn loop_over(&mut self, from: &Graph, given: &[(Value, Batched)], wanted: &[Value]) -> Result<Outs<Batched>> {
        self.looped = true;
        self.apart |= wanted.iter().any(|&out| own_extents(from, given, out));
        let mut body = Graph::new();
        body.param(Type::scalar(DType::I64), Some("row"));
        let (rows, fixed): (Vec<_>, Vec<_>) = given.iter().copied().partition(|(_, x)| x.varies());
        let (constants, fixed): (Vec<_>, Vec<_>) = fixed.into_iter().partition(|(_, x)| self.g.const_value(x.value()).is_some());
        let param = |(v, x): &(Value, Batched)| (*v, body.param(self.row_type(*x), from.name(*v).map(|n| &**n)));
        let mut image: FxHashMap<Value, Value> = rows.iter().chain(&fixed).map(param).collect();
        for (v, x) in constants {
            let value = self.g.const_value(x.value()).cloned();
            image.extend(value.map(|value| (v, body.constant(value))));
        }
        let results = body.inline(from, &image, wanted)?;
        body.set_results(results);
        let scan = Scan::mapped(body, rows.len(), fixed.len(), Keep::All);
        let mut ins = vec![self.extent()];
        ins.extend(rows.iter().chain(&fixed).map(|(_, x)| x.value()));
        let mut outs = self.g.apply(Op::Scan(Arc::new(scan)), &ins)?;
        outs.pop();
        Ok(outs.into_iter().map(Batched::Rows).collect())
    }
    /// The rows' numbers `0, 1, …` with `rank` axes of extent 1 behind.
    ///
    /// # Errors
    /// Internal ones.
    pub fn numbers(&mut self, rank: usize) -> Result<Value> {
        let (zero, n, one) = (self.g.int(0), self.extent(), self.g.int(1));
        let numbers = self.apply(super::op::Arange {}, &[zero, n, one])?;
        Ok(self.g.expand(numbers, &(1..=rank).collect::<Vec<_>>()))
    }
    /// The array with one axis moved to another place.
    pub fn moved(&mut self, x: Value, from: usize, to: usize) -> Value {
        let mut perm: Vec<usize> = (0..self.g.ty(x).rank()).filter(|&axis| axis != from).collect();
        perm.insert(to, from);
        self.g.transpose(x, &perm)
    }
    /// True where two extents of rows are certainly the same.
    pub fn same_dim(&self, x: Batched, y: Batched, axis: usize) -> bool {
        let dim = |x: Batched| -> &Dim { &self.g.ty(x.value()).dims[outer(x, axis)] };
        dim(x) == dim(y)
    }
}

/// True where an extent of an output may differ from row to row: what is given does not tell it. That of the rows of a loop's buffer is the
/// number of its steps.
fn own_extents(from: &Graph, given: &[(Value, Batched)], out: Value) -> bool {
    let symbols = |dim: &Dim| dim.parts().0.iter().map(|term| term.0).collect::<Vec<_>>();
    let told = given.iter().map(|x| x.0).chain(from.params().iter().copied());
    let told: FxHashSet<Sym> = told.flat_map(|v| &from.ty(v).dims).flat_map(symbols).collect();
    let is_loop = from.node_of(out).is_some_and(|node| matches!(node.op, Op::Scan(_)));
    let own = from.ty(out).dims.iter().skip(usize::from(is_loop));
    own.flat_map(symbols).any(|symbol| !told.contains(&symbol))
}

/// Where an axis of a row is in the array of all rows.
fn outer(x: Batched, axis: usize) -> usize {
    axis + usize::from(x.axis().is_some_and(|own| axis >= own))
}

/// Axes of a row where rows have a leading axis.
pub fn behind(axes: &[usize]) -> Vec<usize> {
    axes.iter().map(|axis| axis + 1).collect()
}

impl Op {
    /// The op for all rows: [`super::OpDef::batch`], or the op itself where nothing varies.
    ///
    /// # Errors
    /// As there.
    pub fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        if ins.iter().any(|x| x.varies()) {
            let Op::Scan(scan) = self else { return self.def().batch(b, ins) };
            let key = (scan.clone(), ins.to_vec());
            if let Some(outs) = b.written.get(&key) {
                return Ok(outs.clone());
            }
            let outs = self.def().batch(b, ins)?;
            b.written.insert(key, outs.clone());
            return Ok(outs);
        }
        let ins: Vec<Value> = ins.iter().map(|x| x.value()).collect();
        Ok(b.g.apply(self.clone(), &ins)?.into_iter().map(Batched::Fixed).collect())
    }
}
