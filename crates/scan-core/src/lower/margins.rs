//! One array that is written into zeros at many places which overlap, and summed: read with a margin of zeros around it instead.
//!
//! ```text
//! before  inc(0, a · x, 0:n) + inc(0, b · x, 1:n+1) + inc(0, c · x, 2:n+2) + …
//! after   p = set(0, x, 2:n+2);  inside = set(false, true, 2:n+2)
//!         where(inside[2:], 0 + a · p[2:], 0) + where(inside[1:], 0 + b · p[1:], 0) + where(inside, 0 + c · p, 0) + …
//! ```
//!
//! This is what the gradient of a stencil looks like that is written with slices. A walk over such a sum is cut, along each axis, wherever one of
//! the places begins or ends; with a margin it is one walk. What is computed of a zero of the margin is not used: `a` may be infinite.

use super::extents::known_shape;
use super::fusions::{CHEAP, elementwise};
use super::nodes::instructions;
use super::pieces::{Pieces, too_many};
use super::rewritten::{Image, rewritten};
use super::{Lowered, refuse};
use crate::base::Id;
use crate::ir::op::{BroadcastTo, Index, IndexWrite, Write};
use crate::ir::{Graph, Node, NodeId, Op, Value};
use crate::types::Array;
use crate::types::shape::{Extents, count};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The largest array with a margin, in elements.
const LARGEST: usize = 1 << 20;

/// What is written into zeros.
struct Site {
    /// The array of which it is made.
    source: Value,
    /// Extents of the zeros.
    whole: Extents,
    /// Where it begins and ends along each axis.
    starts: Extents,
    ends: Extents,
    mode: Write,
}

/// The margins of an array for a sum of these extents.
struct Margin {
    /// The places at which it is written first, and last: so much lies before it.
    least: Extents,
    most: Extents,
    /// The array with its margin, and true where it is the array.
    padded: Option<(Value, Value)>,
}

/// The step with margins in place of such sums; `None` where there are none.
///
/// # Errors
/// Internal ones.
pub(super) fn with_margins(body: &Graph) -> Lowered<Option<Graph>> {
    if !body.nodes().iter().any(|n| matches!(n.op, Op::IndexWrite(_))) {
        return Ok(None);
    }
    let (uses, live) = (body.uses(), body.needed(body.results()));
    let sites: FxHashMap<NodeId, Site> = body
        .nodes()
        .enumerate()
        .filter(|(id, _)| live[id.idx()])
        .filter_map(|(id, node)| Some((id, Site::of(body, node, &uses)?)))
        .collect();
    let margins = margins(&sites);
    if margins.is_empty() {
        return Ok(None);
    }
    let mut making = Making { body, sites, margins };
    rewritten(body, |out, image, id, node| making.guarded(out, image, (id, node)))
}

impl Site {
    /// What a node writes into zeros, made of one array that others read, too, by few instructions.
    fn of(body: &Graph, node: &Node, uses: &[u32]) -> Option<Site> {
        let Op::IndexWrite(_) = node.op else { return None };
        let Pieces::Written { starts, ends, mode, .. } = Pieces::of(body, node)? else { return None };
        let whole = known_shape(body, node.outs[0]).ok()?;
        let given = known_shape(body, node.ins[1]).ok()?;
        let one_each = given.len() == whole.len() && (0..whole.len()).all(|i| given[i] == ends[i] - starts[i]);
        let source = source(body, node.ins[1], uses, CHEAP)?;
        let as_given = known_shape(body, source).is_ok_and(|shape| shape == given);
        let fits = one_each && as_given && count(&whole) <= LARGEST;
        (fits && zeros(body, node.ins[0])).then_some(Site { source, whole, starts, ends, mode })
    }
}

/// The array that others read, too, of which a value is made by so many instructions at most, and of numbers.
fn source(body: &Graph, v: Value, uses: &[u32], most: usize) -> Option<Value> {
    if uses[v.idx()] > 1 {
        return Some(v);
    }
    let node = body.node_of(v).filter(|n| elementwise(n) && !n.op.def().fallible(body, &n.ins))?;
    let left = most.checked_sub(instructions(body, node)?)?;
    let mut wide = node.ins.iter().filter(|&&x| known_shape(body, x).is_ok_and(|s| count(&s) > 1));
    let first = *wide.next()?;
    wide.all(|&x| x == first).then(|| source(body, first, uses, left))?
}

/// True for +0 everywhere.
fn zeros(body: &Graph, v: Value) -> bool {
    match body.node_of(v) {
        Some(n) if n.op.broadcasts() => zeros(body, n.ins[0]),
        _ => body.const_value(v).is_some_and(|a| a.bits().iter().all(|&b| b == 0)),
    }
}

/// The margins that are worth it: where a walk over the sum would fall into too many parts.
fn margins(sites: &FxHashMap<NodeId, Site>) -> FxHashMap<(Value, Extents), Margin> {
    let mut groups: FxHashMap<(Value, Extents), Vec<&Site>> = FxHashMap::default();
    for site in sites.values() {
        groups.entry((site.source, site.whole.clone())).or_default().push(site);
    }
    groups.retain(|(_, whole), group| {
        let parts = |axis: usize| {
            let bounds: BTreeSet<usize> = group.iter().flat_map(|site| [site.starts[axis], site.ends[axis]]).collect();
            1 + bounds.into_iter().filter(|&at| at > 0 && at < whole[axis]).count()
        };
        too_many((0..whole.len()).map(parts).product(), whole)
    });
    let margin = |((source, whole), group): ((Value, Extents), Vec<&Site>)| {
        let starts = |axis: usize| group.iter().map(move |site| site.starts[axis]);
        let least = (0..whole.len()).map(|axis| starts(axis).min().unwrap_or(0)).collect();
        let most = (0..whole.len()).map(|axis| starts(axis).max().unwrap_or(0)).collect();
        ((source, whole), Margin { least, most, padded: None })
    };
    groups.into_iter().map(margin).collect()
}

/// A step on its way.
struct Making<'a> {
    body: &'a Graph,
    sites: FxHashMap<NodeId, Site>,
    margins: FxHashMap<(Value, Extents), Margin>,
}

impl Making<'_> {
    /// What a node writes, read of the array with its margin.
    fn guarded(&mut self, out: &mut Graph, image: &Image, (id, node): (NodeId, &Node)) -> Lowered<Option<Value>> {
        let Some(site) = self.sites.get(&id) else { return Ok(None) };
        let key = (site.source, site.whole.clone());
        let Some(margin) = self.margins.get(&key) else { return Ok(None) };
        let (starts, mode, most) = (site.starts.clone(), site.mode, margin.most.clone());
        let (padded, inside) = match margin.padded {
            Some(padded) => padded,
            None => self.padded(out, image[&key.0], &key)?,
        };
        let shift: Extents = most.iter().zip(&starts).map(|(most, start)| most - start).collect();
        let x = slice(out, padded, &shift, &key.1)?;
        let mut value = self.again(out, image, node.ins[1], (key.0, x))?;
        let zero = out.number(self.body.ty(node.outs[0]).dtype, 0.0);
        if mode == Write::Inc {
            value = out.add(zero, value);
        }
        if node.ins[1] != key.0 {
            let inside = slice(out, inside, &shift, &key.1)?;
            value = out.select(inside, value, zero);
        }
        Ok(Some(value))
    }
    /// The array with its margin, and where it is the array.
    fn padded(&mut self, out: &mut Graph, x: Value, key: &(Value, Extents)) -> Lowered<(Value, Value)> {
        let (source, whole) = key;
        let own = known_shape(self.body, *source)?;
        let Some(Margin { least, most, .. }) = self.margins.get(key) else { return refuse("a margin that nobody asked for") };
        let wide: Extents = (0..whole.len()).map(|axis| whole[axis] + most[axis] - least[axis]).collect();
        let dims: Vec<Value> = wide.iter().map(|&n| out.int(n as i64)).collect();
        let zero = out.number(self.body.ty(*source).dtype, 0.0);
        let zeros = out.apply(BroadcastTo {}, &[&[zero], &dims[..]].concat())?[0];
        let bounds: Vec<Value> =
            (0..whole.len()).flat_map(|axis| [most[axis], most[axis] + own[axis]]).map(|at| out.int(at as i64)).collect();
        let write = IndexWrite { mode: Write::Set, pattern: pattern(whole.len()) };
        let padded = out.apply(write, &[&[zeros, x], &bounds[..]].concat())?[0];
        let inside = out.constant(inside(&wide, most, &own));
        self.margins.entry(key.clone()).and_modify(|margin| margin.padded = Some((padded, inside)));
        Ok((padded, inside))
    }
    /// What a value is of another array in place of its source.
    fn again(&self, out: &mut Graph, image: &Image, v: Value, (source, x): (Value, Value)) -> Lowered<Value> {
        if v == source {
            return Ok(x);
        }
        let Some(node) = self.body.node_of(v).filter(|_| known_shape(self.body, v).is_ok_and(|s| count(&s) > 1)) else {
            return Ok(image[&v]);
        };
        let ins = node.ins.iter().map(|&v| self.again(out, image, v, (source, x))).collect::<Lowered<Vec<_>>>()?;
        Ok(out.apply(node.op.clone(), &ins)?[0])
    }
}

/// So much of an array from these places on.
fn slice(out: &mut Graph, x: Value, from: &[usize], extents: &[usize]) -> Lowered<Value> {
    let bounds: Vec<Value> = from.iter().zip(extents).flat_map(|(&at, &n)| [at, at + n]).map(|at| out.int(at as i64)).collect();
    Ok(out.apply(Index { pattern: pattern(from.len()) }, &[&[x], &bounds[..]].concat())?[0])
}

/// A slice along each of so many axes.
fn pattern(rank: usize) -> String {
    vec!["s:e"; rank].join(",")
}

/// An array of these extents: true in the box that begins there and has those extents.
fn inside(wide: &[usize], from: &[usize], own: &[usize]) -> Array {
    let within = |mut k: usize| {
        (0..wide.len()).rev().all(|axis| {
            let at = k % wide[axis];
            k /= wide[axis];
            (from[axis]..from[axis] + own[axis]).contains(&at)
        })
    };
    Array::new(wide, (0..count(wide)).map(within).collect::<Vec<bool>>())
}
