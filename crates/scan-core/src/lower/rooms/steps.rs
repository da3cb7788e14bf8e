//! Loops that go through rows that count: they read them by index.

use super::Rooms;
use super::pieces::{Of, Operand, Rows};
use super::ranges::Sum;
use super::row::{before, element, with_zero};
use crate::base::Result;
use crate::ir::{Graph, Node, NonSeq, Op, Scan, SeqId, Value};
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl Rooms<'_> {
    /// The loop with the rows that count read by index, and its inputs; n is its number of steps.
    pub(super) fn by_index(&mut self, scan: &Arc<Scan>, node: &Node, n: Option<Sum>) -> Option<(Arc<Scan>, Vec<Value>)> {
        let read: Vec<(SeqId, Rows)> = scan.seqs.ids().filter_map(|id| Some((id, self.rows(node.ins[scan.seq_input(id)])?))).collect();
        let is_read = |at: usize| read.iter().any(|(id, _)| scan.seq_input(*id) == at);
        let kept = (0..node.ins.len()).filter(|&at| !is_read(at));
        let mut ins: Vec<Value> = kept.map(|at| self.plain(node.ins[at])).collect::<Option<_>>()?;
        if read.is_empty() {
            return Some((scan.clone(), ins));
        }
        let ids: Vec<SeqId> = read.iter().map(|r| r.0).collect();
        let mut new = Indexing::new(scan, &ids);
        for (id, rows) in read {
            let len = rows.len(&mut self.ranges, &mut self.out)?;
            if !self.ranges.at_most(n?, len) {
                return None;
            }
            let rows = if scan.seqs[id].reverse { rows.flipped(&mut self.ranges, &mut self.out)? } else { rows };
            let sources = self.sources(&rows, Sum::number(0))?;
            let row = new.row(&self.out, &sources, sources.len() > 1, &mut ins)?;
            new.image.insert(scan.body.params()[scan.seq_param(id)], row);
        }
        Some((Arc::new(new.finished(scan).ok()?), ins))
    }
    /// The pieces of rows, of which the first is read by a step of such a number, in the order in which steps read them.
    fn sources(&mut self, rows: &Rows, mut begin: Sum) -> Option<Vec<Source>> {
        let mut sources = vec![];
        for piece in &rows.pieces {
            let end = self.ranges.more(&mut self.out, begin, piece.len)?;
            let of = match piece.of.clone() {
                Of::Row(v) => Reads::Row(v),
                Of::Zeros => Reads::Row(self.zeros(&piece.row)?),
                Of::Map(op, operands) => {
                    let mut parts = vec![];
                    for operand in &operands {
                        parts.push(match operand {
                            Operand::Same(v) => vec![Source { of: Reads::Row(*v), end: *v, plus: false }],
                            Operand::Rows(rows) => self.sources(rows, begin)?,
                        });
                    }
                    Reads::Map(op, parts)
                }
                Of::Part(rows, first) => {
                    let begin = self.ranges.less(&mut self.out, begin, first)?;
                    Reads::Part(self.sources(&rows, begin)?)
                }
                Of::Array { .. } | Of::Numbers { .. } => {
                    let (first, back) = self.begins(piece)?;
                    // Counted from the step at which the whole begins.
                    let first = if back {
                        self.ranges.more(&mut self.out, first, begin)?
                    } else {
                        self.ranges.less(&mut self.out, first, begin)?
                    };
                    Reads::Rows { array: piece.array(), first: self.value(first)?, back }
                }
            };
            sources.push(Source { of, end: self.value(end)?, plus: piece.plus });
            begin = end;
        }
        Some(sources)
    }
}

/// What steps read from some step on, up to another.
struct Source {
    of: Reads,
    end: Value,
    plus: bool,
}

enum Reads {
    /// The same row.
    Row(Value),
    /// The rows of an array, or the numbers themselves, from one on; `back`: those before it.
    Rows { array: Option<Value>, first: Value, back: bool },
    /// What an elementwise op makes of these.
    Map(Op, Vec<Vec<Source>>),
    /// Some of these.
    Part(Vec<Source>),
}

/// The step of a loop of which some sequences are read by index.
struct Indexing {
    new: Scan,
    image: FxHashMap<Value, Value>,
}

impl Indexing {
    /// All parameters but those of these sequences.
    fn new(scan: &Scan, read: &[SeqId]) -> Indexing {
        let (from, mut body, mut image) = (&scan.body, Graph::new(), FxHashMap::default());
        let is_read = |at: usize| read.iter().any(|id| scan.seq_param(*id) == at);
        for (_, &p) in from.params().iter().enumerate().filter(|(at, _)| !is_read(*at)) {
            image.insert(p, body.param(from.ty(p).clone(), from.name(p).map(|n| &**n)));
        }
        let mut new = scan.with_body(body);
        new.seqs = scan.seqs.enumerate().filter(|(id, _)| !read.contains(id)).map(|(_, seq)| seq.clone()).collect();
        Indexing { new, image }
    }
    /// A value of the step around as a captured one.
    fn captured(&mut self, around: &Graph, v: Value, ins: &mut Vec<Value>) -> Value {
        if around.const_value(v).is_some_and(|a| a.rank() == 0)
            && let Some(a) = around.const_value(v)
        {
            return self.new.body.constant(a.clone());
        }
        ins.push(v);
        self.new.captured.push(NonSeq { name: None });
        self.new.body.param(around.ty(v).clone(), None)
    }
    /// What a step reads; what it needs of the step around becomes inputs. `loose`: not all of these are read in their own steps alone.
    fn row(&mut self, around: &Graph, sources: &[Source], loose: bool, ins: &mut Vec<Value>) -> Option<Value> {
        let (mut found, step) = (None, self.new.body.params()[Scan::STEP]);
        for source in sources.iter().rev() {
            let mut row = match &source.of {
                Reads::Row(v) => self.captured(around, *v, ins),
                Reads::Rows { array, first, back } => {
                    let array = array.map(|v| self.captured(around, v, ins));
                    let first = self.captured(around, *first, ins);
                    let body = &mut self.new.body;
                    let at = if *back { body.sub(first, step) } else { body.add(first, step) };
                    array.map_or(at, |array| element(body, array, at, loose))
                }
                Reads::Map(op, operands) => {
                    let loose = loose || operands.iter().any(|sources| sources.len() > 1);
                    let parts = operands.iter().map(|sources| self.row(around, sources, loose, ins)).collect::<Option<Vec<_>>>()?;
                    self.new.body.apply(op.clone(), &parts).ok()?[0]
                }
                Reads::Part(sources) => self.row(around, sources, true, ins)?,
            };
            if source.plus {
                row = with_zero(&mut self.new.body, row);
            }
            found = Some(match found {
                None => row,
                Some(others) => {
                    let end = self.captured(around, source.end, ins);
                    before(&mut self.new.body, [step, end], row, others)
                }
            });
        }
        found
    }
    fn finished(mut self, scan: &Scan) -> Result<Scan> {
        let results = self.new.body.inline(&scan.body, &self.image, scan.body.results())?;
        self.new.body.set_results(results);
        Ok(self.new)
    }
}
