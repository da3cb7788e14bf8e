//! Loops whose steps have extents that depend on integers, as a loop in the step that runs as often as its number says: a list for each of
//! these numbers.

use super::extents::StepExtents;
use super::kernels::Kernels;
use super::lists::Lists;
use super::mixed::Mixed;
use crate::backend::cpu::{Memory, Operand, bytes, each_integer, integer_at};
use crate::ir::{Scan, SeqId, Value};
use crate::lower::mixed;
use crate::types::{Array, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// So many lists are made at most.
const LISTS: usize = 256;

/// What a list is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    /// The number of the step.
    Step,
    /// An integer that the step is given.
    Seq(SeqId),
}

/// What a list knows of an integer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Known {
    /// It is this one.
    Number(i64),
    /// It is at least 1, and at most this.
    UpTo(i64),
}

/// The integers of a step.
type Key = SmallVec<[Known; 2]>;

/// Lists for integers up to some number have room for up to so many times as much.
const ROOM: i64 = 4;

/// A loop with a list for each combination of integers that its steps are given.
pub struct Switched {
    of: Vec<Of>,
    /// One list is for all steps that are given integers from 1 on, up to about the largest of them.
    by_sign: bool,
    types: Vec<Type>,
    values: Vec<Option<Array>>,
    /// What lists are made for instead of integers, where that makes fewer.
    extents: Option<StepExtents>,
    kernels: Kernels,
    made: Mutex<FxHashMap<Key, Option<Arc<Mixed>>>>,
}

impl Switched {
    /// The loop for parameters of the step of these types and values, with a list for one of its steps; `None` where that does not help.
    /// `by_sign`: with one list for all steps that are given integers from 1 on, up to about the largest of them.
    pub fn new(scan: &Scan, ins: &[Array], types: &[Type], values: &[Option<Array>], by_sign: bool, kernels: Kernels) -> Option<Switched> {
        let mut values = values.to_vec();
        values.resize(types.len(), None);
        let given: Vec<Of> = integers_given(scan, types).collect();
        let mut new = Switched { of: given, by_sign, types: types.to_vec(), values, extents: None, kernels, made: Mutex::default() };
        let widest = new.widest(scan, ins);
        if !by_sign && new.by_extents(scan, ins, widest) {
            return Some(new);
        }
        for step in [false, true] {
            new.of.extend(step.then_some(Of::Step));
            if let Some(list) = new.only(scan, ins, widest) {
                new.forget(scan, ins, (widest, &list));
                return Some(new);
            }
        }
        None
    }

    /// Makes lists for extents, where fewer of these than of integers occur, and the list of a step shows that no more has to be known.
    fn by_extents(&mut self, scan: &Scan, ins: &[Array], step: usize) -> bool {
        let params: Vec<Value> =
            integers_given(scan, &self.types).chain([Of::Step]).map(|of| scan.body.params()[param(scan, of)]).collect();
        let Some(extents) = StepExtents::of(scan, &self.types, &self.values, &params) else { return false };
        self.extents = Some(extents);
        let n = ins[Scan::N_STEPS].item_i64().map_or(0, |n| n.max(0) as usize);
        let few = self.columns(scan, ins, 0..n).is_some_and(|columns| {
            let keys: FxHashSet<Key> = (0..n).map(|step| self.key(&columns, &[], step)).collect();
            keys.len() <= n.div_ceil(2).min(LISTS)
        });
        if few && self.only(scan, ins, step).is_some_and(|list| !list.calls_loops()) {
            return true;
        }
        self.extents = None;
        false
    }
    /// The list of a step, if there is one, and no other.
    fn only(&mut self, scan: &Scan, ins: &[Array], step: usize) -> Option<Arc<Mixed>> {
        self.made.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        if self.of.is_empty() && self.extents.is_none() {
            return None;
        }
        let key = match self.by_sign {
            true => self.tops(scan, ins),
            false => self.key(&self.columns(scan, ins, step..step + 1)?, &[], 0),
        };
        self.list(scan, &key)
    }
    /// The step whose integers are the largest together: where they are 0, extents may depend on nothing else.
    fn widest(&self, scan: &Scan, ins: &[Array]) -> usize {
        let seqs: SmallVec<[SeqId; 2]> = self.of.iter().filter_map(|of| if let Of::Seq(id) = of { Some(*id) } else { None }).collect();
        let rows = seqs.iter().map(|&id| ins[scan.seq_input(id)].shape()[0]).min().unwrap_or(0);
        let sum = |step: usize| seqs.iter().fold(0i64, |sum, &id| sum.saturating_add(integer(scan, ins, Of::Seq(id), step)));
        (0..rows).rev().max_by_key(|&step| sum(step)).unwrap_or(0)
    }
    /// Makes lists for as few of the integers as extents depend on: the others, where they are not told, are read as all that a step is given. `all` is the
    /// list of a step for all of them.
    fn forget(&mut self, scan: &Scan, ins: &[Array], (step, all): (usize, &Mixed)) {
        for of in self.of.clone() {
            let others: Vec<Of> = self.of.iter().copied().filter(|other| *other != of).collect();
            let (known, made) = (std::mem::replace(&mut self.of, others), std::mem::take(&mut self.made));
            let as_good = |list: Arc<Mixed>| list.calls_loops() <= all.calls_loops() && list.slices() <= all.slices();
            if !self.only(scan, ins, step).is_some_and(as_good) {
                (self.of, self.made) = (known, made);
            }
        }
    }

    /// What is known of the integers of a step, given what is of those that are at least 1, where one list is for all of them.
    fn key(&self, columns: &[Vec<i64>], tops: &[Known], step: usize) -> Key {
        let known =
            |(k, column): (usize, &Vec<i64>)| tops.get(k).copied().filter(|_| column[step] > 0).unwrap_or(Known::Number(column[step]));
        columns.iter().enumerate().map(known).collect()
    }
    /// What lists are made for, in each of these steps; `None` where it cannot be computed.
    fn columns(&self, scan: &Scan, ins: &[Array], steps: Range<usize>) -> Option<Vec<Vec<i64>>> {
        let all = |of: Of| steps.clone().map(|step| integer(scan, ins, of, step)).collect::<Vec<i64>>();
        let Some(extents) = &self.extents else { return Some(self.of.iter().map(|&of| all(of)).collect()) };
        let of = |of: Of| {
            let at = param(scan, of);
            (scan.body.params()[at], Array::vector(&all(of)).cast(self.types[at].dtype))
        };
        extents.numbers(&scan.body, steps.len(), integers_given(scan, &self.types).chain([Of::Step]).map(of))
    }
    /// About the largest of each of the integers of all steps.
    fn tops(&self, scan: &Scan, ins: &[Array]) -> Key {
        let top = |of: &Of| {
            let x = match *of {
                Of::Step => &ins[Scan::N_STEPS],
                Of::Seq(id) => &ins[scan.seq_input(id)],
            };
            let (mut top, memory) = (1, Operand::reading(bytes(x)));
            each_integer(&memory, x.dtype(), x.len(), |_, n| top = n.max(top));
            let enough = std::iter::successors(Some(ROOM), |n| n.checked_mul(ROOM)).find(|&n| n >= top);
            Known::UpTo(enough.unwrap_or(i64::MAX))
        };
        self.of.iter().map(top).collect()
    }

    /// The list for some integers.
    fn list(&self, scan: &Scan, key: &Key) -> Option<Arc<Mixed>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = made.get(key) {
            return list.clone();
        }
        if made.len() == LISTS {
            return None;
        }
        let list = self.lowered(scan, key);
        made.insert(key.clone(), list.clone());
        list
    }
    fn lowered(&self, scan: &Scan, key: &Key) -> Option<Arc<Mixed>> {
        let mut values = self.values.clone();
        let mut most = vec![None; values.len()];
        if let Some(extents) = &self.extents {
            let numbers: Vec<i64> = key.iter().map(|&(Known::Number(n) | Known::UpTo(n))| n).collect();
            let fixed = extents.fixed(scan, &numbers).ok()?;
            let plan = mixed::lower(&fixed, &self.types, &values, &most).ok()?;
            return Some(Arc::new(Mixed::new(scan, plan, &self.kernels)));
        }
        for (&of, &known) in self.of.iter().zip(key) {
            let param = param(scan, of);
            match known {
                Known::Number(n) => values[param] = Some(Array::scalar(n).cast(self.types[param].dtype)),
                Known::UpTo(n) => most[param] = Some(n),
            }
        }
        let plan = mixed::lower(scan, &self.types, &values, &most).ok()?;
        if most.iter().any(Option::is_some) && plan.calls_loops() {
            return None;
        }
        Some(Arc::new(Mixed::new(scan, plan, &self.kernels)))
    }

    /// The lists of n steps; `None` where one of the steps has none, or does not keep the states as the others do.
    pub fn lists(&self, scan: &Scan, ins: &[Array], n: usize) -> Option<Lists> {
        let (tops, columns) = (if self.by_sign { self.tops(scan, ins) } else { Key::new() }, self.columns(scan, ins, 0..n)?);
        let (mut keys, mut which): (FxHashMap<Key, u32>, Vec<u32>) = (FxHashMap::default(), vec![]);
        for step in 0..n {
            let next = keys.len() as u32;
            which.push(*keys.entry(self.key(&columns, &tops, step)).or_insert(next));
            if keys.len() > LISTS {
                return None;
            }
        }
        let mut keys: Vec<(Key, u32)> = keys.into_iter().collect();
        keys.sort_unstable_by_key(|key| key.1);
        let lists = keys.iter().map(|(key, _)| self.list(scan, key)).collect::<Option<SmallVec<[Arc<Mixed>; 1]>>>()?;
        let alike = lists.iter().all(|list| list.in_place() == lists[0].in_place() && list.windows() == lists[0].windows());
        alike.then_some(Lists { lists, which })
    }
    /// All lists.
    pub fn all(&self) -> Vec<Arc<Mixed>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.values().flatten().cloned().collect()
    }
}

/// An integer of a step.
fn integer(scan: &Scan, ins: &[Array], of: Of, step: usize) -> i64 {
    match of {
        Of::Step => step as i64,
        Of::Seq(id) => {
            let x = &ins[scan.seq_input(id)];
            let row = if scan.seqs[id].reverse { x.shape()[0] - 1 - step } else { step };
            integer_at(&Operand { memory: Memory::Read(bytes(x)), offset: row * x.dtype().size(), stride: 0 }, x.dtype())
        }
    }
}

/// The parameter of the step that an integer is.
fn param(scan: &Scan, of: Of) -> usize {
    if let Of::Seq(id) = of { scan.seq_param(id) } else { Scan::STEP }
}

/// The integers that a step is given.
fn integers_given(scan: &Scan, types: &[Type]) -> impl Iterator<Item = Of> {
    let integer = |id: &SeqId| types[scan.seq_param(*id)].dtype.is_int() && types[scan.seq_param(*id)].rank() == 0;
    scan.seqs.ids().filter(integer).map(Of::Seq)
}
