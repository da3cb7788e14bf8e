//! Loops whose steps have extents that depend on integers, as a loop in the step that runs as often as its number says: a list for each of
//! these numbers.

use super::mixed::{Kernels, Lists, Mixed};
use crate::backend::cpu::{Memory, Operand, bytes, integer_at};
use crate::ir::{Scan, SeqId};
use crate::lower::mixed;
use crate::types::{Array, DType, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
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

/// The integers of a step.
type Key = SmallVec<[i64; 2]>;

/// A loop with a list for each combination of integers that its steps are given.
pub struct Switched {
    of: Vec<Of>,
    types: Vec<Type>,
    values: Vec<Option<Array>>,
    kernels: Kernels,
    made: Mutex<FxHashMap<Key, Option<Arc<Mixed>>>>,
}

impl Switched {
    /// The loop for parameters of the step of these types and values, with a list for its first step; `None` where that does not help.
    pub fn new(scan: &Scan, ins: &[Array], types: &[Type], values: &[Option<Array>], kernels: Kernels) -> Option<Switched> {
        let mut values = values.to_vec();
        values.resize(types.len(), None);
        let whole = |id: &SeqId| !types[scan.seq_param(*id)].dtype.is_float() && types[scan.seq_param(*id)].rank() == 0;
        let given: Vec<Of> =
            scan.seqs.ids().filter(|id| whole(id) && types[scan.seq_param(*id)].dtype != DType::Bool).map(Of::Seq).collect();
        let mut new = Switched { of: given, types: types.to_vec(), values, kernels, made: Mutex::default() };
        for step in [false, true] {
            new.of.extend(step.then_some(Of::Step));
            if !new.of.is_empty() && new.list(scan, &new.key(scan, ins, 0)).is_some() {
                return Some(new);
            }
            new.made.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        }
        None
    }

    /// The integers of a step.
    fn key(&self, scan: &Scan, ins: &[Array], step: usize) -> Key {
        let of = |of: &Of| match *of {
            Of::Step => step as i64,
            Of::Seq(id) => {
                let x = &ins[scan.seq_input(id)];
                let row = if scan.seqs[id].reverse { x.shape()[0] - 1 - step } else { step };
                integer_at(&Operand { memory: Memory::Read(bytes(x)), offset: row * x.dtype().size(), stride: 0 }, x.dtype())
            }
        };
        self.of.iter().map(of).collect()
    }

    /// The list for some integers.
    fn list(&self, scan: &Scan, key: &Key) -> Option<Arc<Mixed>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = made.get(key) {
            return list.clone();
        }
        let list = if made.len() < LISTS { self.lowered(scan, key) } else { None };
        made.insert(key.clone(), list.clone());
        list
    }
    fn lowered(&self, scan: &Scan, key: &Key) -> Option<Arc<Mixed>> {
        let mut values = self.values.clone();
        for (of, &n) in self.of.iter().zip(key) {
            let param = if let Of::Seq(id) = of { scan.seq_param(*id) } else { Scan::STEP };
            values[param] = Some(Array::scalar(n).cast(self.types[param].dtype));
        }
        let plan = mixed::lower(scan, &self.types, &values).ok()?;
        Some(Arc::new(Mixed::new(scan, plan, &self.kernels)))
    }

    /// The lists of n steps; `None` where one of the steps has none, or does not keep the states as the others do.
    pub fn lists(&self, scan: &Scan, ins: &[Array], n: usize) -> Option<Chosen> {
        let (mut found, mut chosen): (FxHashMap<Key, u32>, Chosen) = (FxHashMap::default(), Chosen { lists: vec![], which: vec![] });
        for step in 0..n {
            let key = self.key(scan, ins, step);
            let at = match found.get(&key) {
                Some(&at) => at,
                None => {
                    let list = self.list(scan, &key)?;
                    if chosen.lists.first().is_some_and(|first| first.in_place() != list.in_place()) {
                        return None;
                    }
                    chosen.lists.push(list);
                    found.insert(key, chosen.lists.len() as u32 - 1);
                    chosen.lists.len() as u32 - 1
                }
            };
            chosen.which.push(at);
        }
        Some(chosen)
    }
    /// All lists.
    pub fn all(&self) -> Vec<Arc<Mixed>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.values().flatten().cloned().collect()
    }
}

/// The lists of a run.
pub struct Chosen {
    lists: Vec<Arc<Mixed>>,
    which: Vec<u32>,
}

impl Chosen {
    /// As what runs.
    pub fn as_lists(&mut self) -> Lists<'_> {
        Lists { lists: self.lists.iter().map(|l| &**l).collect(), which: std::mem::take(&mut self.which) }
    }
}
