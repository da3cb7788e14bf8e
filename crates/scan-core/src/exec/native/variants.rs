//! What a loop was made into, per row types of its calls.

use crate::ir::{Scan, StateId};
use crate::types::{Array, DType, Extents};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// So many row types are kept at most: those that were called last. A small kernel takes 20 KiB and is made in 0.1 ms.
pub const KEPT: usize = 256;
/// What is kept has so many instructions in all, which take 0.2 to 0.5 KiB each,
const COSTS: usize = 1 << 17;
/// but for so many row types, which are kept whatever they take.
const FEW: usize = 8;

/// What was made for the row types of the last calls. What somebody still runs lives on when it is not kept any more.
pub struct Variants<T> {
    /// Per input of the loop, whether its first axis counts rows: the number of rows does not matter.
    by_rows: Box<[bool]>,
    kept: RwLock<Vec<Kept<T>>>,
    /// Where the one is that was called last.
    recent: AtomicUsize,
    clock: AtomicU64,
    /// Held by the one that makes another. Calls of what is there do not wait.
    making: Mutex<()>,
    made: AtomicUsize,
}

/// What was made for inputs.
pub struct Made<T> {
    /// It.
    pub value: T,
    /// Instructions.
    pub cost: usize,
    /// The inputs, integers, for whose values it was made.
    pub given: Vec<usize>,
}

struct Kept<T> {
    /// Dtype and extents per input, of a row where it is read by rows.
    types: Vec<(DType, Extents)>,
    /// Inputs that have a certain value.
    values: Vec<(usize, i64)>,
    /// When it was called last, but for calls that follow each other.
    called: AtomicU64,
    /// Instructions.
    cost: usize,
    value: Arc<T>,
}

impl<T> Variants<T> {
    /// None, for the inputs of a loop.
    pub fn new(scan: &Scan) -> Variants<T> {
        let mut by_rows = vec![false; scan.n_inputs()].into_boxed_slice();
        scan.seqs.ids().for_each(|id| by_rows[scan.seq_input(id)] = true);
        scan.states.ids().filter_map(|id: StateId| scan.init_input(id)).for_each(|at| by_rows[at] = true);
        Variants::by(by_rows)
    }
    fn by(by_rows: Box<[bool]>) -> Variants<T> {
        let (kept, making) = (RwLock::default(), Mutex::default());
        Variants { by_rows, kept, recent: AtomicUsize::new(0), clock: AtomicU64::new(1), making, made: AtomicUsize::new(0) }
    }
    /// None, for so many inputs, of which all extents matter.
    pub fn whole(inputs: usize) -> Variants<T> {
        Variants::by(vec![false; inputs].into_boxed_slice())
    }

    /// The one for these inputs. Where there is none it is made, and those that were not called for longest are
    /// given up for it.
    pub fn get(&self, ins: &[Array], make: impl FnOnce() -> Made<T>) -> Arc<T> {
        if let Some(found) = self.find(ins) {
            return found;
        }
        let _one_at_a_time: MutexGuard<()> = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.find(ins) {
            return found;
        }
        let Made { value, cost, given } = make();
        let value = Arc::new(value);
        let values = given.into_iter().filter_map(|at| Some((at, ins[at].item_i64()?))).collect();
        let types =
            ins.iter().zip(&self.by_rows).map(|(a, &rows)| (a.dtype(), Extents::from_slice(&a.shape()[usize::from(rows)..]))).collect();
        let called = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
        let given_up = self.keep(Kept { types, values, called, cost, value: value.clone() });
        self.made.fetch_add(1, Ordering::Relaxed);
        drop(given_up); // Behind the lock: this may give memory back to the system.
        value
    }

    /// Gives up all that is kept.
    pub fn forget(&self) {
        let given_up = std::mem::take(&mut *self.kept.write().unwrap_or_else(PoisonError::into_inner));
        drop(given_up);
    }

    /// What is kept, in the order in which it was made, and how many were made in all.
    pub fn all(&self) -> (Vec<Arc<T>>, usize) {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        (kept.iter().map(|k| k.value.clone()).collect(), self.made.load(Ordering::Relaxed))
    }

    fn find(&self, ins: &[Array]) -> Option<Arc<T>> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let recent = self.recent.load(Ordering::Relaxed);
        if let Some(recent) = kept.get(recent).filter(|k| self.fits(k, ins)) {
            return Some(recent.value.clone());
        }
        // Types that come in turn were made in turn: the next one is most often the one that was made after the last.
        let order = (recent + 1..kept.len()).chain(0..kept.len().min(recent));
        let (at, found) = order.map(|at| (at, &kept[at])).find(|(_, k)| self.fits(k, ins))?;
        found.called.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        self.recent.store(at, Ordering::Relaxed);
        Some(found.value.clone())
    }

    fn fits(&self, kept: &Kept<T>, ins: &[Array]) -> bool {
        let same = |((given, a), &rows): ((&(DType, Extents), &Array), &bool)| {
            given.0 == a.dtype() && a.shape().get(usize::from(rows)..) == Some(&given.1[..])
        };
        let given = |&(at, value): &(usize, i64)| ins[at].item_i64() == Some(value);
        kept.types.len() == ins.len() && kept.types.iter().zip(ins).zip(&self.by_rows).all(same) && kept.values.iter().all(given)
    }

    /// Adds one; those that go.
    fn keep(&self, new: Kept<T>) -> Vec<Kept<T>> {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let mut given_up = vec![];
        let mut cost = new.cost + kept.iter().map(|k| k.cost).sum::<usize>();
        while kept.len() >= KEPT || kept.len() >= FEW && cost > COSTS {
            let Some(oldest) = (0..kept.len()).min_by_key(|&k| kept[k].called.load(Ordering::Relaxed)) else { break };
            cost -= kept[oldest].cost;
            given_up.push(kept.remove(oldest));
        }
        self.recent.store(kept.len(), Ordering::Relaxed);
        kept.push(new);
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Op;
    use crate::ir::parse::parse;

    fn one(value: usize, cost: usize) -> Made<usize> {
        Made { value, cost, given: vec![] }
    }

    /// For a loop over rows of x with the matrix w.
    fn variants() -> Variants<usize> {
        let text = "fn f(n: i64, x: f64[n0, n1], w: f64[n1]) {
  %0 = scan n_steps=n {
    seq u = x
    state h init=f64[1]{0.25} reads=[0] writes=[1] keep=last(1)
    const v = w
    step t
    %1 = mul(u, v)
    %2 = reduce[kind=sum, axes=[0], keepdims=false](%1)
    %3 = add(h, %2)
    next h = %3
  }
  return %0.h
}";
        let graph = parse(text).unwrap_or_else(|e| panic!("{}", e.title)).1;
        let scan = graph.nodes().iter().find_map(|n| if let Op::Scan(scan) = &n.op { Some(scan.clone()) } else { None });
        Variants::new(&scan.expect("a loop"))
    }

    fn ins(rows: usize, width: usize) -> Vec<Array> {
        let zeros = |shape: &[usize]| Array::zeros(DType::F64, shape);
        vec![Array::scalar(rows as i64), zeros(&[rows, width]), zeros(&[1]), zeros(&[width])]
    }

    #[test]
    fn the_one_that_was_not_called_for_longest_goes() {
        let variants = variants();
        let get = |rows: usize, width: usize| *variants.get(&ins(rows, width), || one(width, 10));
        for width in 0..KEPT {
            assert_eq!(get(3, width), width);
            assert_eq!(get(4 + width, 0), 0, "called again and again, with any number of rows");
        }
        assert_eq!(variants.all().1, KEPT);
        assert_eq!(get(2, KEPT), KEPT);
        let (kept, made) = variants.all();
        let kept: Vec<usize> = kept.iter().map(|k| **k).collect();
        let expected: Vec<usize> = [0].into_iter().chain(2..=KEPT).collect();
        assert_eq!((kept, made), (expected, KEPT + 1), "1 went: 0 was called since");
        assert_eq!((get(3, 1), variants.all().1), (1, KEPT + 2), "made again");
    }

    #[test]
    fn what_takes_much_memory_is_kept_for_few_types() {
        let variants = variants();
        let get = |width: usize, cost: usize| *variants.get(&ins(3, width), || one(width, cost));
        (0..30).for_each(|width| assert_eq!(get(width, COSTS / 20), width));
        assert_eq!(variants.all().0.len(), 20);
        assert_eq!((get(30, COSTS), variants.all().0.len()), (30, FEW));
        (31..40).for_each(|width| assert_eq!(get(width, COSTS), width));
        assert_eq!(variants.all().0.iter().map(|v| **v).collect::<Vec<_>>(), (32..40).collect::<Vec<_>>());
    }

    #[test]
    fn dtypes_ranks_and_extents_of_rows_tell_them_apart() {
        let variants = variants();
        let mut other = ins(3, 5);
        other[3] = Array::zeros(DType::F32, &[5]);
        let mut deeper = ins(3, 5);
        deeper[1] = Array::zeros(DType::F64, &[3, 5, 1]);
        for (k, ins) in [ins(3, 5), ins(3, 6), other, deeper].iter().enumerate() {
            assert_eq!(*variants.get(ins, || one(k, 10)), k);
            assert_eq!(*variants.get(ins, || one(99, 10)), k);
        }
    }

    #[test]
    fn threads_make_each_once_and_keep_what_they_run() {
        let variants = variants();
        let (made, all) = (AtomicUsize::new(0), KEPT + 10);
        let run = |of: usize| {
            for k in 0..4 * all {
                let width = (k * (1 + 2 * of)) % all;
                let found = variants.get(&ins(1 + k, width), || {
                    made.fetch_add(1, Ordering::Relaxed);
                    one(width, 10)
                });
                assert_eq!(*found, width);
            }
        };
        std::thread::scope(|s| {
            s.spawn(|| run(0));
            s.spawn(|| run(1));
        });
        let (kept, counted) = variants.all();
        assert_eq!((kept.len(), counted), (KEPT, made.into_inner()));
        let held = kept[0].clone();
        (0..KEPT).for_each(|k| drop(variants.get(&ins(1, 1000 + k), || one(0, 10))));
        assert!(variants.all().0.iter().all(|k| **k == 0) && *held < all);
    }
}
