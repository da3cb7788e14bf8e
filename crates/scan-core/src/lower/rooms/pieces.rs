//! Rows of which an integer of the step says how many there are, as pieces one behind the other.

use super::ranges::{Ranges, Sum};
use crate::ir::{Graph, Op, Value};
use crate::types::Type;

/// Rows one behind the other.
#[derive(Clone)]
pub(super) struct Rows {
    /// In order.
    pub pieces: Vec<Piece>,
}

/// Some of these rows.
#[derive(Clone)]
pub(super) struct Piece {
    /// What they are.
    pub of: Of,
    /// How many.
    pub len: Sum,
    /// They are added to zeros.
    pub plus: bool,
    /// The type of a row.
    pub row: Type,
}

/// What rows are.
#[derive(Clone)]
pub(super) enum Of {
    /// Those of an array from one on; `back`: the last one comes first.
    Array {
        /// The array.
        array: Value,
        /// The first of these rows there.
        start: Sum,
        /// The last one comes first.
        back: bool,
    },
    /// Numbers from one on; `back`: the last one comes first.
    Numbers {
        /// The least.
        start: Sum,
        /// The last one comes first.
        back: bool,
    },
    /// Zeros.
    Zeros,
    /// The same one again and again.
    Row(Value),
    /// What an elementwise op makes of a row of each of its operands, when it is read.
    Map(Op, Vec<Operand>),
    /// Those of others from one on, where it is not known in which of their pieces that lies.
    Part(Rows, Sum),
}

/// An operand of an elementwise op.
#[derive(Clone)]
pub(super) enum Operand {
    /// Its rows.
    Rows(Rows),
    /// The same in all rows.
    Same(Value),
}

impl Rows {
    /// One piece.
    pub fn of(piece: Piece) -> Rows {
        Rows { pieces: vec![piece] }
    }
    /// Those of these pieces that have rows; one without rows where there is none.
    pub(super) fn or_none(mut pieces: Vec<Piece>, row: Type) -> Rows {
        pieces.retain(|piece| piece.len.constant() != Some(0));
        if pieces.is_empty() {
            pieces.push(Piece { of: Of::Zeros, len: Sum::number(0), plus: false, row });
        }
        Rows { pieces }
    }
    /// The piece, if it is one.
    pub fn single(self) -> Option<Piece> {
        let [piece] = <[Piece; 1]>::try_from(self.pieces).ok()?;
        Some(piece)
    }
    /// How many rows there are.
    pub fn len(&self, ranges: &mut Ranges, graph: &mut Graph) -> Option<Sum> {
        self.pieces.iter().try_fold(Sum::number(0), |len, piece| ranges.more(graph, len, piece.len))
    }
    /// The type of a row.
    pub fn row(&self) -> &Type {
        &self.pieces[0].row
    }
    /// The last row first.
    pub fn flipped(&self, ranges: &mut Ranges, graph: &mut Graph) -> Option<Rows> {
        let pieces = self.pieces.iter().rev().map(|piece| piece.flipped(ranges, graph));
        Some(Rows { pieces: pieces.collect::<Option<_>>()? })
    }
}

impl Piece {
    fn flipped(&self, ranges: &mut Ranges, graph: &mut Graph) -> Option<Piece> {
        let mut of = self.of.clone();
        match &mut of {
            Of::Array { back, .. } | Of::Numbers { back, .. } => *back = !*back,
            Of::Map(_, operands) => {
                for operand in operands {
                    if let Operand::Rows(rows) = operand {
                        *rows = rows.flipped(ranges, graph)?;
                    }
                }
            }
            Of::Part(rows, first) => {
                let all = rows.len(ranges, graph)?;
                let last = ranges.more(graph, *first, self.len)?;
                *first = ranges.less(graph, all, last)?;
                *rows = rows.flipped(ranges, graph)?;
            }
            Of::Zeros | Of::Row(_) => {}
        }
        Some(Piece { of, ..self.clone() })
    }
    /// The array whose rows they are.
    pub fn array(&self) -> Option<Value> {
        if let Of::Array { array, .. } = self.of { Some(array) } else { None }
    }
    /// The last one comes first.
    pub fn back(&self) -> bool {
        matches!(self.of, Of::Array { back: true, .. } | Of::Numbers { back: true, .. })
    }
}
