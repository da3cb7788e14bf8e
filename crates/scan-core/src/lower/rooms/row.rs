//! Some of the rows that count: one of them, or those from one to another.

use super::Rooms;
use super::pieces::{Of, Operand, Piece, Rows};
use super::ranges::Sum;
use crate::ir::{Graph, Value};
use crate::types::{Dim, Type};

impl Rooms<'_> {
    /// The piece that has a row, and its number there.
    pub(super) fn piece_at(&mut self, rows: &Rows, i: Sum) -> Option<(Piece, Sum)> {
        let (mut begin, next) = (Sum::number(0), self.ranges.more(&mut self.out, i, Sum::number(1))?);
        for piece in &rows.pieces {
            let end = self.ranges.more(&mut self.out, begin, piece.len)?;
            if self.ranges.at_most(begin, i) && self.ranges.at_most(next, end) {
                return Some((piece.clone(), self.ranges.less(&mut self.out, i, begin)?));
            }
            if !self.ranges.at_most(end, i) {
                return None;
            }
            begin = end;
        }
        None
    }
    /// Rows from one to another.
    pub(super) fn cut(&mut self, rows: &Rows, first: Sum, last: Sum) -> Option<Rows> {
        if let Some(rows) = self.certainly_cut(rows, first, last) {
            return Some(rows);
        }
        let (of, len) = (Of::Part(rows.clone(), first), self.ranges.less(&mut self.out, last, first)?);
        Some(Rows::of(Piece { of, len, plus: false, row: rows.row().clone() }))
    }
    /// The same, where it is known which pieces these are in.
    pub(super) fn certainly_cut(&mut self, rows: &Rows, first: Sum, last: Sum) -> Option<Rows> {
        let (mut begin, mut pieces) = (Sum::number(0), vec![]);
        for piece in &rows.pieces {
            let end = self.ranges.more(&mut self.out, begin, piece.len)?;
            let from = self.ranges.largest(first, begin)?;
            let to = self.ranges.least(last, end)?;
            if !self.ranges.at_most(to, from) {
                if !self.ranges.at_most(from, to) {
                    return None;
                }
                let before =
                    if piece.back() { self.ranges.less(&mut self.out, end, to)? } else { self.ranges.less(&mut self.out, from, begin)? };
                let len = self.ranges.less(&mut self.out, to, from)?;
                let of = match piece.of.clone() {
                    Of::Map(op, mut operands) => {
                        let end = self.ranges.more(&mut self.out, before, len)?;
                        for operand in &mut operands {
                            if let Operand::Rows(rows) = operand {
                                *rows = self.cut(rows, before, end)?;
                            }
                        }
                        Of::Map(op, operands)
                    }
                    Of::Part(rows, first) => Of::Part(rows, self.ranges.more(&mut self.out, first, before)?),
                    Of::Array { array, start, back } => Of::Array { array, start: self.ranges.more(&mut self.out, start, before)?, back },
                    Of::Numbers { start, back } => Of::Numbers { start: self.ranges.more(&mut self.out, start, before)?, back },
                    of => of,
                };
                pieces.push(Piece { of, len, ..piece.clone() });
            }
            begin = end;
        }
        Some(Rows::or_none(pieces, rows.row().clone()))
    }
    /// Row i; `loose`: nobody looks at it where there is no such row.
    pub(super) fn row_of(&mut self, rows: &Rows, i: Sum, loose: bool) -> Option<Value> {
        if let Some((piece, j)) = self.piece_at(rows, i) {
            return self.row(&piece, j, loose);
        }
        let (mut begin, mut found) = (Sum::number(0), vec![]);
        for piece in &rows.pieces {
            let j = self.ranges.less(&mut self.out, i, begin)?;
            begin = self.ranges.more(&mut self.out, begin, piece.len)?;
            found.push((self.row(piece, j, true)?, begin));
        }
        let (mut row, _) = found.pop()?;
        for (other, end) in found.into_iter().rev() {
            let (i, end) = (self.value(i)?, self.value(end)?);
            row = before(&mut self.out, [i, end], other, row);
        }
        Some(row)
    }
    /// Row j of a piece.
    pub(super) fn row(&mut self, piece: &Piece, j: Sum, loose: bool) -> Option<Value> {
        let row = match piece.of.clone() {
            Of::Zeros => self.zeros(&piece.row)?,
            Of::Row(v) => v,
            Of::Part(rows, first) => {
                let i = self.ranges.more(&mut self.out, first, j)?;
                self.row_of(&rows, i, loose)?
            }
            Of::Map(op, operands) => {
                let mut ins = vec![];
                for operand in &operands {
                    ins.push(match operand {
                        Operand::Same(v) => *v,
                        Operand::Rows(rows) => self.row_of(rows, j, loose)?,
                    });
                }
                self.out.apply(op, &ins).ok()?[0]
            }
            Of::Array { .. } | Of::Numbers { .. } => {
                let (first, back) = self.begins(piece)?;
                let at = if back { self.ranges.less(&mut self.out, first, j)? } else { self.ranges.more(&mut self.out, first, j)? };
                let at = self.value(at)?;
                piece.array().map_or(at, |array| element(&mut self.out, array, at, loose))
            }
        };
        Some(if piece.plus { with_zero(&mut self.out, row) } else { row })
    }
    /// Zeros of a type whose extents are known.
    pub(super) fn zeros(&mut self, ty: &Type) -> Option<Value> {
        let zero = self.out.number(ty.dtype, 0.0);
        self.broadcast(zero, ty)
    }
    /// Rows as an array, where their number is known.
    pub(super) fn known(&mut self, rows: &Rows) -> Option<Value> {
        let mut parts = vec![];
        let some = rows.pieces.iter().any(|piece| piece.len.constant() != Some(0));
        for piece in rows.pieces.iter().filter(|piece| !some || piece.len.constant() != Some(0)) {
            parts.push(match (&piece.of, piece.len.constant()?) {
                (Of::Array { array, start, back: false }, n) if start.constant().is_some() && !piece.plus => {
                    let (from, to) = (self.out.int(start.constant()?), self.out.int(start.constant()? + n));
                    self.out.slice_rows(*array, from, to)
                }
                (Of::Zeros, n) => self.zeros(&piece.row.rows(Dim::known(usize::try_from(n).ok()?)))?,
                (_, 1) => {
                    let row = self.row(piece, Sum::number(0), false)?;
                    self.out.expand(row, &[0])
                }
                _ => return None,
            });
        }
        match &parts[..] {
            [] => None,
            [part] => Some(*part),
            parts => Some(self.out.join_rows(parts)),
        }
    }
    /// Where the first row of a piece lies in its array, and whether those after it lie before.
    pub(super) fn begins(&mut self, piece: &Piece) -> Option<(Sum, bool)> {
        let (Of::Array { start, back, .. } | Of::Numbers { start, back }) = piece.of else { return None };
        if !back {
            return Some((start, false));
        }
        let end = self.ranges.more(&mut self.out, start, piece.len)?;
        Some((self.ranges.less(&mut self.out, end, Sum::number(1))?, true))
    }
}

/// x + 0, as x is added to zeros: −0 becomes 0.
pub(super) fn with_zero(graph: &mut Graph, x: Value) -> Value {
    let zero = graph.number(graph.ty(x).dtype, 0.0);
    graph.add(x, zero)
}

/// One of two rows: the first where a is less than b.
pub(super) fn before(graph: &mut Graph, [a, b]: [Value; 2], row: Value, other: Value) -> Value {
    let here = graph.lt(a, b);
    let axes: Vec<usize> = (0..graph.ty(row).rank()).collect();
    let here = if axes.is_empty() { here } else { graph.expand(here, &axes) };
    graph.select(here, row, other)
}

/// A row of an array, or (`loose`) of one of its rows where there is none of that number.
pub(super) fn element(body: &mut Graph, array: Value, at: Value, loose: bool) -> Value {
    let Some(rows) = body.ty(array).dims[0].value().filter(|_| loose) else { return body.row(array, at) };
    let (zero, last) = (body.int(0), body.int(rows as i64 - 1));
    let at = body.minimum(at, last);
    let at = body.maximum(at, zero);
    body.row(array, at)
}
