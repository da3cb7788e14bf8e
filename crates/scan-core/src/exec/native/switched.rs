//! Loops whose steps have extents that depend on integers, as a loop in the step that runs as often as its number says: a list for each of
//! these numbers.

use super::mixed::{Kernels, Lists, Mixed};
use crate::backend::cpu::{Memory, Operand, bytes, integer_at};
use crate::ir::{Scan, SeqId};
use crate::lower::mixed;
use crate::types::{Array, Type};
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

/// All integers from 1 on, where what they are does not matter.
const SOME: i64 = i64::MAX;

/// A loop with a list for each combination of integers that its steps are given.
pub struct Switched {
    of: Vec<Of>,
    /// One list is for all steps that are given integers from 1 on.
    by_sign: bool,
    types: Vec<Type>,
    values: Vec<Option<Array>>,
    kernels: Kernels,
    made: Mutex<FxHashMap<Key, Option<Arc<Mixed>>>>,
}

impl Switched {
    /// The loop for parameters of the step of these types and values, with a list for its first step; `None` where that does not help.
    /// `by_sign`: with one list for all steps that are given integers from 1 on.
    pub fn new(scan: &Scan, ins: &[Array], types: &[Type], values: &[Option<Array>], by_sign: bool, kernels: Kernels) -> Option<Switched> {
        let mut values = values.to_vec();
        values.resize(types.len(), None);
        let integer = |id: &SeqId| types[scan.seq_param(*id)].dtype.is_int() && types[scan.seq_param(*id)].rank() == 0;
        let given: Vec<Of> = scan.seqs.ids().filter(integer).map(Of::Seq).collect();
        let mut new = Switched { of: given, by_sign, types: types.to_vec(), values, kernels, made: Mutex::default() };
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
        self.of.iter().map(of).map(|n| if self.by_sign && n > 0 { SOME } else { n }).collect()
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
        for (of, &n) in self.of.iter().zip(key).filter(|(_, n)| !(self.by_sign && **n == SOME)) {
            let param = if let Of::Seq(id) = of { scan.seq_param(*id) } else { Scan::STEP };
            values[param] = Some(Array::scalar(n).cast(self.types[param].dtype));
        }
        let plan = mixed::lower(scan, &self.types, &values).ok()?;
        Some(Arc::new(Mixed::new(scan, plan, &self.kernels)))
    }

    /// The lists of n steps; `None` where one of the steps has none, or does not keep the states as the others do.
    pub fn lists(&self, scan: &Scan, ins: &[Array], n: usize) -> Option<Lists> {
        let (mut keys, mut which): (FxHashMap<Key, u32>, Vec<u32>) = (FxHashMap::default(), vec![]);
        for step in 0..n {
            let next = keys.len() as u32;
            which.push(*keys.entry(self.key(scan, ins, step)).or_insert(next));
            if keys.len() > LISTS {
                return None;
            }
        }
        let mut keys: Vec<(Key, u32)> = keys.into_iter().collect();
        keys.sort_unstable_by_key(|key| key.1);
        let lists = keys.iter().map(|(key, _)| self.list(scan, key)).collect::<Option<SmallVec<[Arc<Mixed>; 1]>>>()?;
        let alike = lists.iter().all(|list| list.in_place() == lists[0].in_place());
        alike.then_some(Lists { lists, which })
    }
    /// All lists.
    pub fn all(&self) -> Vec<Arc<Mixed>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.values().flatten().cloned().collect()
    }
}
