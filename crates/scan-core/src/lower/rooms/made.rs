//! What ops make of rows that count.

use super::pieces::{Of, Operand, Piece, Rows};
use super::ranges::Sum;
use super::{Image, Rooms};
use crate::ir::op::{BroadcastTo, IndexWrite, Write};
use crate::ir::{Node, Op, Value};
use crate::ops::index::{Item, Pattern};
use crate::scalar::ElemOp;
use crate::types::{Dim, Type};

impl Rooms<'_> {
    /// True where two operands certainly have the same extents.
    pub(super) fn same_extents(&mut self, node: &Node) -> bool {
        let (Some(a), Some(b)) = (self.rows(node.ins[0]), self.rows(node.ins[1])) else { return false };
        let lengths = [&a, &b].map(|rows| rows.len(&mut self.ranges, &mut self.out));
        lengths[0].is_some() && lengths[0] == lengths[1] && a.row().dims == b.row().dims
    }

    /// As many rows, each with the same elements.
    pub(super) fn like(&mut self, node: &Node) -> Option<Rows> {
        let (x, rows) = (self.plain(node.ins[0])?, self.rows(node.ins[1])?);
        let row = Type::new(self.out.ty(x).dtype, rows.row().dims.iter().cloned());
        let len = rows.len(&mut self.ranges, &mut self.out)?;
        self.copies(x, len, row)
    }
    /// As many rows as an integer says, each with the same elements.
    pub(super) fn repeated(&mut self, node: &Node) -> Option<Rows> {
        if !matches!(node.op, Op::BroadcastTo(_)) {
            return None;
        }
        let (x, len) = (self.plain(node.ins[0])?, self.sum(*node.ins.get(1)?)?);
        let extents = node.ins[2..].iter().map(|&v| self.sum(v)?.constant()).collect::<Option<Vec<i64>>>()?;
        if len.constant().is_some() || !self.ranges.at_most(Sum::number(0), len) {
            return None;
        }
        let dims = extents.into_iter().map(|n| usize::try_from(n).ok().map(Dim::known)).collect::<Option<Vec<Dim>>>()?;
        self.copies(x, len, Type::new(self.out.ty(x).dtype, dims))
    }
    /// So many rows with the elements of x.
    fn copies(&mut self, mut x: Value, len: Sum, row: Type) -> Option<Rows> {
        if self.out.const_value(x).is_some_and(|a| a.bits().iter().all(|&b| b == 0)) {
            return Some(Rows::of(Piece { of: Of::Zeros, len, plus: false, row }));
        }
        if self.out.ty(x).rank() > row.rank() {
            if self.out.ty(x).dims[0].value() != Some(1) {
                return None;
            }
            x = self.out.squeeze(x, &[0]);
        }
        let one = self.broadcast(x, &row)?;
        Some(Rows::of(Piece { of: Of::Row(one), len, plus: false, row }))
    }
    /// A value with the extents of a type, which are known.
    pub(super) fn broadcast(&mut self, x: Value, ty: &Type) -> Option<Value> {
        let extents: Vec<Value> = ty.dims.iter().map(|d| d.value().map(|n| self.out.int(n as i64))).collect::<Option<_>>()?;
        self.out.apply(BroadcastTo {}, &[&[x], &extents[..]].concat()).ok().map(|outs| outs[0])
    }

    /// Arrays one behind the other.
    pub(super) fn joined(&mut self, node: &Node) -> Option<Image> {
        let mut pieces = vec![];
        for &v in &node.ins {
            pieces.extend(self.pieces(v)?);
        }
        let (alike, rows) = (pieces.iter().all(|piece| piece.row == pieces[0].row), Rows { pieces });
        alike.then(|| self.known(&rows).map_or(Image::Rows(rows), Image::Value))
    }
    /// The rows that a value stands for.
    pub(super) fn pieces(&self, v: Value) -> Option<Vec<Piece>> {
        match &self.image[&v] {
            Image::Rows(rows) => Some(rows.pieces.clone()),
            Image::Value(v) => {
                let n = self.out.ty(*v).dims.first()?.value()?;
                let of = Of::Array { array: *v, start: Sum::number(0), back: false };
                Some(vec![Piece { of, len: Sum::number(n as i64), plus: false, row: self.out.ty(*v).row() }])
            }
        }
    }

    /// Rows, of which some are set or added to.
    pub(super) fn written(&mut self, rows: &Rows, write: &IndexWrite, node: &Node) -> Option<Image> {
        if self.from.ty(node.ins[0]).dtype != self.from.ty(node.ins[1]).dtype {
            return None;
        }
        let (len, plus) = (rows.len(&mut self.ranges, &mut self.out)?, write.mode == Write::Inc);
        let (first, last, new) = match Pattern::parse(&write.pattern).ok()?.items[..] {
            [Item::At] => {
                let i = self.within(self.sum(node.ins[2])?, len)?;
                self.is_there(i, len)?;
                let next = self.ranges.more(&mut self.out, i, Sum::number(1))?;
                let y = self.plain(node.ins[1])?;
                let row = self.out.ty(y).clone();
                (i, next, Rows::of(Piece { of: Of::Row(y), len: Sum::number(1), plus: false, row }))
            }
            [Item::Slice { start: false, end: false, step: -1 }] => {
                (Sum::number(0), len, Rows { pieces: self.pieces(node.ins[1])? }.flipped(&mut self.ranges, &mut self.out)?)
            }
            [Item::Slice { start, end, step: 1 }] => {
                let (first, last) = self.bounds((start, end), &node.ins[2..], len)?;
                (first, last, Rows { pieces: self.pieces(node.ins[1])? })
            }
            _ => return None,
        };
        let (wanted, n) = (new.len(&mut self.ranges, &mut self.out)?, self.ranges.less(&mut self.out, last, first)?);
        if wanted != n || new.pieces.iter().any(|piece| piece.row != *rows.row()) {
            return None;
        }
        let old = self.cut(rows, first, last)?;
        let new = match plus {
            false => new,
            true if old.pieces.iter().all(|piece| matches!(piece.of, Of::Zeros)) => {
                Rows { pieces: new.pieces.into_iter().map(|piece| Piece { plus: true, ..piece }).collect() }
            }
            true => {
                let of = Of::Map(Op::Elem(ElemOp::Add), vec![Operand::Rows(old), Operand::Rows(new)]);
                Rows::of(Piece { of, len: n, plus: false, row: rows.row().clone() })
            }
        };
        let mut pieces = self.cut(rows, Sum::number(0), first)?.pieces;
        pieces.extend(new.pieces);
        pieces.extend(self.cut(rows, last, len)?.pieces);
        Some(Image::Rows(Rows::or_none(pieces, rows.row().clone())))
    }

    /// Row by row what is made of the same rows of several arrays.
    pub(super) fn elementwise(&mut self, node: &Node) -> Option<Rows> {
        let given: Vec<Piece> = node.ins.iter().filter_map(|&v| self.rows(v)).map(|rows| rows.single()).collect::<Option<_>>()?;
        let Of::Array { start, back, .. } = given[0].of else { return None };
        let alike = |piece: &Piece| matches!(piece.of, Of::Array { start: s, back: b, .. } if s == start && b == back);
        let alike = given.iter().all(|piece| alike(piece) && piece.len == given[0].len && !piece.plus);
        let rank = self.from.ty(node.outs[0]).rank();
        let behind = |v: &Value| self.from.ty(*v).rank() + usize::from(self.rows(*v).is_none()) <= rank;
        let whole = |v: &Value| self.rows(*v).is_none() || self.from.ty(*v).rank() == rank;
        if !alike || !node.ins.iter().all(|v| behind(v) && whole(v)) {
            return None;
        }
        let rooms: Vec<usize> = given.iter().map(|piece| self.out.ty(piece.array()?).dims[0].value()).collect::<Option<_>>()?;
        let least = *rooms.iter().min()?;
        let mut ins = vec![];
        for &v in &node.ins {
            let Some(piece) = self.rows(v).and_then(|rows| rows.single()) else {
                ins.push(self.plain(v)?);
                continue;
            };
            let array = piece.array()?;
            let (from, to) = (self.out.int(0), self.out.int(least as i64));
            let fits = self.out.ty(array).dims[0].value()? == least;
            ins.push(if fits { array } else { self.out.slice_rows(array, from, to) });
        }
        let array = self.out.apply(node.op.clone(), &ins).ok()?[0];
        let row = self.out.ty(array).row();
        Some(Rows::of(Piece { of: Of::Array { array, start, back }, row, ..given[0].clone() }))
    }
    /// The same when rows are read.
    pub(super) fn mapped(&mut self, node: &Node) -> Option<Rows> {
        let ty = self.from.ty(node.outs[0]);
        let (mut operands, mut lengths) = (vec![], vec![]);
        for &v in &node.ins {
            operands.push(match self.rows(v) {
                Some(_) if self.from.ty(v).rank() != ty.rank() => return None,
                Some(rows) => {
                    lengths.push(rows.len(&mut self.ranges, &mut self.out)?);
                    Operand::Rows(rows)
                }
                None if self.from.ty(v).rank() < ty.rank() => Operand::Same(self.plain(v)?),
                None => return None,
            });
        }
        let len = lengths[0];
        let extents: Vec<Dim> =
            operands.iter().find_map(|x| if let Operand::Rows(rows) = x { Some(rows.row().dims.to_vec()) } else { None })?;
        let row = Type::new(ty.dtype, extents);
        let fits = |x: &Operand| match x {
            Operand::Rows(rows) => rows.row().dims == row.dims,
            Operand::Same(v) => self.out.ty(*v).rank() == 0 || self.out.ty(*v).dims == row.dims,
        };
        if lengths.iter().any(|&other| other != len) || !operands.iter().all(fits) {
            return None;
        }
        Some(Rows::of(Piece { of: Of::Map(node.op.clone(), operands), len, plus: false, row }))
    }

    /// A row, or rows beside each other.
    pub(super) fn indexed(&mut self, rows: &Rows, pattern: &Pattern, node: &Node) -> Option<Image> {
        let len = rows.len(&mut self.ranges, &mut self.out)?;
        match *pattern.items.first()? {
            Item::At => {
                let i = self.within(self.sum(node.ins[1])?, len)?;
                self.is_there(i, len)?;
                let row = self.row_of(rows, i, false)?;
                if pattern.items.len() == 1 {
                    return Some(Image::Value(row));
                }
                let rest = node.ins[2..].iter().map(|&v| self.plain(v)).collect::<Option<Vec<_>>>()?;
                let row = self.out.expand(row, &[0]);
                let ins = [&[row, self.out.int(0)], &rest[..]].concat();
                self.out.apply(node.op.clone(), &ins).ok().map(|outs| Image::Value(outs[0]))
            }
            Item::Slice { start: false, end: false, step: -1 } if pattern.items.len() == 1 => {
                rows.clone().flipped(&mut self.ranges, &mut self.out).map(Image::Rows)
            }
            Item::Slice { start, end, step: 1 } if pattern.items.len() == 1 => {
                let (first, last) = self.bounds((start, end), &node.ins[1..], len)?;
                let rows = self.cut(rows, first, last)?;
                let known = self.known(&rows);
                Some(known.map_or(Image::Rows(rows), Image::Value))
            }
            _ => None,
        }
    }
    /// The bounds of a slice of so many rows, which name `start` and `end` or not.
    pub(super) fn bounds(&mut self, (start, end): (bool, bool), given: &[Value], len: Sum) -> Option<(Sum, Sum)> {
        let first = if start { self.within(self.sum(given[0])?, len)? } else { Sum::number(0) };
        let last = if end { self.within(self.sum(given[usize::from(start)])?, len)? } else { len };
        let (first, last) = (self.ranges.least(first, len)?, self.ranges.least(last, len)?);
        (self.ranges.at_most(Sum::number(0), first) && self.ranges.at_most(first, last)).then_some((first, last))
    }
    /// An index, counted from the end where it is a negative number.
    pub(super) fn within(&mut self, i: Sum, len: Sum) -> Option<Sum> {
        match i.constant() {
            Some(n) if n < 0 => self.ranges.more(&mut self.out, len, i),
            _ => Some(i),
        }
    }
}
