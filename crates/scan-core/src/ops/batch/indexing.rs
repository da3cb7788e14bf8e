//! Reading and writing at indices for all rows. Integers that differ from row to row become index arrays, beside the rows' numbers.

use crate::base::Result;
use crate::ir::Value;
use crate::ir::op::*;
use crate::ops::args::one;
use crate::ops::gather::index_axis;
use crate::ops::index::{Item, Pattern};

/// A basic index in parts: what is the same in every row, and the axes of what it leaves at which each row has an integer of its own.
struct Split {
    /// Without the integers that vary.
    pattern: String,
    inputs: Vec<Batched>,
    axes: Vec<usize>,
    spots: Vec<Batched>,
}

/// None where the bounds of a slice vary: rows may have different extents then.
fn split(pattern: &str, idxs: &[Batched]) -> Result<Option<Split>> {
    let words: Vec<&str> = pattern.split(',').filter(|_| !pattern.is_empty()).collect();
    let mut rest = idxs.iter().copied();
    let mut found = Split { pattern: String::new(), inputs: vec![], axes: vec![], spots: vec![] };
    let (mut kept, mut axis) = (vec![], 0);
    for (item, word) in Pattern::parse(pattern)?.items.iter().zip(words) {
        let own: Vec<Batched> = rest.by_ref().take(item.inputs()).collect();
        let varies = own.iter().any(|x| x.varies());
        match item {
            Item::At if varies => {
                found.axes.push(axis);
                found.spots.extend(own);
                kept.push(":");
            }
            _ if varies => return Ok(None),
            _ => {
                found.inputs.extend(own);
                kept.push(word);
            }
        }
        axis += usize::from(varies || *item != Item::At);
    }
    found.pattern = kept.join(",");
    Ok(Some(found))
}

impl Split {
    fn is_whole(&self) -> bool {
        self.pattern.split(',').all(|word| word == ":" || word.is_empty())
    }
}

/// The pattern for arrays with a leading axis.
fn behind_rows(pattern: &str) -> String {
    if pattern.is_empty() { ":".into() } else { format!(":,{pattern}") }
}

fn values(first: &[Value], rest: &[Batched]) -> Vec<Value> {
    first.iter().copied().chain(rest.iter().map(|x| x.value())).collect()
}

/// `index`.
pub fn index(op: &Index, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    let Some(split) = split(&op.pattern, &ins[1..])? else { return b.row_by_row(op.clone(), ins) };
    let part = read(b, &split, ins[0])?;
    if split.axes.is_empty() {
        return Ok(one(part));
    }
    Ok(one(Batched::Rows(gathered(b, &split.axes, part, &split.spots)?)))
}

/// What the part of an index selects that is the same in every row.
fn read(b: &mut Batching, split: &Split, x: Batched) -> Result<Batched> {
    if split.is_whole() {
        return Ok(x);
    }
    let ins = values(&[x.value()], &split.inputs);
    Ok(match x {
        Batched::Fixed(_) => Batched::Fixed(b.apply(Index { pattern: split.pattern.clone() }, &ins)?),
        _ => Batched::Rows(b.apply(Index { pattern: behind_rows(&split.pattern) }, &ins)?),
    })
}

/// `index_write`.
pub fn index_write(op: &IndexWrite, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    let (x, y) = (ins[0], ins[1]);
    let Some(split) = split(&op.pattern, &ins[2..])? else { return b.row_by_row(op.clone(), ins) };
    if split.axes.is_empty() {
        return Ok(one(Batched::Rows(written(b, op.mode, &split, x, y)?)));
    }
    let part = read(b, &split, x)?;
    let part = scattered(b, op.mode, &split.axes, part, y, &split.spots)?;
    if split.is_whole() {
        return Ok(one(Batched::Rows(part)));
    }
    Ok(one(Batched::Rows(written(b, Write::Set, &split, x, Batched::Rows(part))?)))
}

/// A write at an index that is the same in every row.
fn written(b: &mut Batching, mode: Write, split: &Split, x: Batched, y: Batched) -> Result<Value> {
    let integers = Pattern::parse(&split.pattern)?.items.iter().filter(|item| **item == Item::At).count();
    let rows = b.rows(x)?;
    let y = b.aligned(y, b.rank(x) - integers);
    b.apply(IndexWrite { mode, pattern: behind_rows(&split.pattern) }, &values(&[rows, y], &split.inputs))
}

/// `gather`.
pub fn gather(op: &Gather, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    Ok(one(Batched::Rows(gathered(b, &op.axes, ins[0], &ins[1..])?)))
}

/// `gather_write`.
pub fn gather_write(op: &GatherWrite, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    Ok(one(Batched::Rows(scattered(b, op.mode, &op.axes, ins[0], ins[1], &ins[2..])?)))
}

/// Index arrays for all rows, and the axes that they index: the leading one, too, where arrays and indices vary.
struct Spots {
    axes: Vec<usize>,
    idxs: Vec<Value>,
    /// Number of axes of an index of one row.
    rank: usize,
    /// True where the indices vary.
    vary: bool,
}

fn spots(b: &mut Batching, axes: &[usize], rows: bool, idxs: &[Batched]) -> Result<Spots> {
    let vary = idxs.iter().any(|i| i.varies());
    let rank = idxs.iter().map(|i| b.rank(*i)).max().unwrap_or(0);
    let mut found = Spots { axes: vec![], idxs: vec![], rank, vary };
    if rows && vary {
        found.axes.push(0);
        found.idxs.push(b.numbers(rank)?);
    }
    found.axes.extend(axes.iter().map(|axis| axis + usize::from(rows)));
    for idx in idxs {
        found.idxs.push(b.aligned(*idx, rank));
    }
    Ok(found)
}

/// True where the indexed axes stand side by side, so that the axes of the indices take their place.
fn adjacent(axes: &[usize]) -> bool {
    axes.windows(2).all(|w| w[1] == w[0] + 1)
}

/// The elements that index arrays name, the leading axis in front.
fn gathered(b: &mut Batching, axes: &[usize], x: Batched, idxs: &[Batched]) -> Result<Value> {
    let spots = spots(b, axes, x.varies(), idxs)?;
    let ins: Vec<Value> = std::iter::once(x.value()).chain(spots.idxs.iter().copied()).collect();
    let out = b.apply(Gather { axes: spots.axes.clone() }, &ins)?;
    Ok(match (x.varies(), spots.vary) {
        (true, false) if adjacent(axes) => out,
        (true, false) => b.moved(out, spots.rank, 0),
        (false, _) => b.moved(out, index_axis(axes), 0),
        (true, true) => block_moved(b, out, 1, spots.rank, 1 + index_axis(axes)),
    })
}

/// What is written, at the places that index arrays name.
fn scattered(b: &mut Batching, mode: Write, axes: &[usize], x: Batched, y: Batched, idxs: &[Batched]) -> Result<Value> {
    let spots = spots(b, axes, true, idxs)?;
    let rank = b.rank(x) - axes.len() + spots.rank;
    let y = whole(b, y, rank);
    let y = match spots.vary {
        false if adjacent(axes) => y,
        false => b.moved(y, 0, spots.rank),
        true => block_moved(b, y, 1 + index_axis(axes), spots.rank, 1),
    };
    let mut ins = vec![b.rows(x)?, y];
    ins.extend(&spots.idxs);
    b.apply(GatherWrite { mode, axes: spots.axes }, &ins)
}

/// With a leading axis, of extent 1 where all rows are the same, and so many axes behind it.
fn whole(b: &mut Batching, y: Batched, rank: usize) -> Value {
    match y {
        Batched::Fixed(v) => b.g.expand(v, &(0..=rank - b.g.ty(v).rank()).collect::<Vec<_>>()),
        _ => b.aligned(y, rank),
    }
}

/// The array with `n` axes that begin at `from` moved so that they begin at `to`.
fn block_moved(b: &mut Batching, x: Value, from: usize, n: usize, to: usize) -> Value {
    let mut perm: Vec<usize> = (0..b.g.ty(x).rank()).filter(|axis| !(from..from + n).contains(axis)).collect();
    (0..n).for_each(|k| perm.insert(to + k, from + k));
    b.g.transpose(x, &perm)
}
