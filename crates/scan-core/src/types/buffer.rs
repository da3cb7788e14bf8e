//! Memory of arrays: our own, recycled where it is large, or somebody else's, which is only read.

use super::array::Element;
use std::any::Any;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// From so many bytes on, memory is worth recycling: touching fresh pages for the first time costs as much as filling them.
pub const LARGE: usize = 1 << 17;

/// From so many bytes on, large pages are worth asking for.
const ADVISED: usize = 1 << 20;

/// From so many bytes on, memory that is overwritten as a whole is used again: nothing need clear it first.
const MEDIUM: usize = 1 << 14;

/// What is kept for later at most: so many large vectors, and so many bytes in all.
const KEPT: (usize, usize) = (32, 256 << 20);
/// The same of vectors that are not large.
const KEPT_MEDIUM: (usize, usize) = (24, 4 << 20);

/// Told where large memory is before it is touched: who may talk to the system asks it for large pages.
static ADVISE: OnceLock<fn(usize, usize)> = OnceLock::new();

/// Says who is told the address and the length in bytes of large memory that is new. Only the first one is.
pub fn advise_with(advise: fn(usize, usize)) {
    ADVISE.get_or_init(|| advise);
}

/// Memory of somebody else. The slice stays where it is, and as long as it is, while this lives; it is never written here.
pub type Foreign<T> = Box<dyn AsRef<[T]> + Send + Sync>;

/// The elements of an array. A clone is a copy in memory of our own.
pub struct Buffer<T: Element>(Store<T>);

enum Store<T> {
    One(T),
    Own(Vec<T>),
    /// A vector that goes back to the pool.
    Pooled(Vec<T>),
    Foreign(Foreign<T>),
}

impl<T: Element> Buffer<T> {
    /// One element, without memory on the heap.
    pub fn one(x: T) -> Buffer<T> {
        Buffer(Store::One(x))
    }
    /// Memory of somebody else.
    pub fn foreign(owner: Foreign<T>) -> Buffer<T> {
        Buffer(Store::Foreign(owner))
    }
    /// `n` elements of another buffer from the one at `first` on, where they are: as memory of somebody else, who keeps them as they are.
    pub fn part(whole: Arc<Buffer<T>>, first: usize, n: usize) -> Buffer<T> {
        debug_assert!(first + n <= whole.len(), "a part of a buffer");
        Buffer::foreign(Box::new(Part { whole, first, n }))
    }
    /// `n` elements of any value: what a vector held before, or zeros. Only for what is overwritten as a whole.
    pub fn dirty(n: usize) -> Buffer<T> {
        let bytes = n * size_of::<T>();
        let idle = if bytes < MEDIUM { None } else { take(n) };
        match idle {
            Some(v) => Buffer(Store::Pooled(v)),
            None if (MEDIUM..LARGE).contains(&bytes) => Buffer(Store::Pooled(vec![T::default(); n])),
            None => Buffer::fresh(n),
        }
    }
    /// `n` zeros (`false` for bool).
    pub fn zeros(n: usize) -> Buffer<T> {
        let idle = if n * size_of::<T>() < LARGE { None } else { take(n) };
        match idle {
            Some(mut v) => {
                v.fill(T::default());
                Buffer(Store::Pooled(v))
            }
            None => Buffer::fresh(n),
        }
    }
    fn fresh(n: usize) -> Buffer<T> {
        if n == 1 {
            return Buffer::one(T::default());
        }
        let v = vec![T::default(); n];
        let bytes = size_of_val(&*v);
        if bytes < LARGE {
            return Buffer::from(v);
        }
        if let Some(advise) = ADVISE.get().filter(|_| bytes >= ADVISED) {
            advise(v.as_ptr().addr(), bytes);
        }
        Buffer(Store::Pooled(v))
    }
    /// True where the memory is somebody else's.
    pub fn is_foreign(&self) -> bool {
        matches!(self.0, Store::Foreign(_))
    }
    /// The elements for writing; those of somebody else are copied first.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        if self.is_foreign() {
            *self = self.clone();
        }
        match &mut self.0 {
            Store::One(x) => std::slice::from_mut(x),
            Store::Own(v) | Store::Pooled(v) => v,
            Store::Foreign(_) => unreachable!("copied above"),
        }
    }
    /// The elements for growing; those of somebody else are copied first.
    pub fn as_mut_vec(&mut self) -> &mut Vec<T> {
        if matches!(self.0, Store::One(_) | Store::Foreign(_)) {
            *self = Buffer::from(self.to_vec());
        }
        match &mut self.0 {
            Store::Own(v) | Store::Pooled(v) => v,
            Store::One(_) | Store::Foreign(_) => unreachable!("copied above"),
        }
    }
    /// The elements as a vector, without a copy where there is one.
    pub fn into_vec(mut self) -> Vec<T> {
        std::mem::take(self.as_mut_vec())
    }
}

/// Elements of a buffer that others hold, too: nobody writes to it meanwhile.
struct Part<T: Element> {
    whole: Arc<Buffer<T>>,
    first: usize,
    n: usize,
}

impl<T: Element> AsRef<[T]> for Part<T> {
    fn as_ref(&self) -> &[T] {
        &self.whole[self.first..self.first + self.n]
    }
}

impl<T: Element> From<Vec<T>> for Buffer<T> {
    fn from(data: Vec<T>) -> Buffer<T> {
        Buffer(Store::Own(data))
    }
}

impl<T: Element> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.0 {
            Store::One(x) => std::slice::from_ref(x),
            Store::Own(v) | Store::Pooled(v) => v,
            Store::Foreign(owner) => (**owner).as_ref(),
        }
    }
}

impl<T: Element> Clone for Buffer<T> {
    fn clone(&self) -> Buffer<T> {
        match &self.0 {
            Store::One(x) => Buffer::one(*x),
            _ => {
                let mut copy = Buffer::dirty(self.len());
                copy.as_mut_slice().copy_from_slice(self);
                copy
            }
        }
    }
}

impl<T: Element> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.deref().fmt(f)
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        if let Store::Pooled(v) = &mut self.0 {
            keep(std::mem::take(v));
        }
    }
}

/// Vectors of all dtypes that nobody uses, the oldest first.
struct Pool {
    free: VecDeque<Idle>,
    bytes: usize,
    most: (usize, usize),
}

struct Idle {
    vector: Box<dyn Any + Send>,
    bytes: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { free: VecDeque::new(), bytes: 0, most: KEPT });
static MEDIUM_POOL: Mutex<Pool> = Mutex::new(Pool { free: VecDeque::new(), bytes: 0, most: KEPT_MEDIUM });

/// The pool of vectors of so many bytes.
fn pool(bytes: usize) -> MutexGuard<'static, Pool> {
    let pool = if bytes < LARGE { &MEDIUM_POOL } else { &POOL };
    pool.lock().unwrap_or_else(|e| e.into_inner())
}

/// A vector of `n` elements, the smallest idle one that has room for them and is not much larger.
fn take<T: Element>(n: usize) -> Option<Vec<T>> {
    let wanted = n * size_of::<T>();
    let fits = |idle: &Idle| idle.bytes >= wanted && idle.bytes - wanted <= wanted / 4 && idle.vector.is::<Vec<T>>();
    let idle = {
        let mut pool = pool(wanted);
        let found = pool.free.iter().enumerate().filter(|(_, idle)| fits(idle)).min_by_key(|(_, idle)| idle.bytes)?.0;
        let idle = pool.free.remove(found)?;
        pool.bytes -= idle.bytes;
        idle
    };
    let mut vector = *idle.vector.downcast::<Vec<T>>().ok()?;
    vector.resize(n, T::default());
    Some(vector)
}

/// Keeps a vector for later; what is kept for longest goes where that is too much.
fn keep<T: Element>(vector: Vec<T>) {
    let bytes = vector.capacity() * size_of::<T>();
    if !(MEDIUM..=KEPT.1).contains(&bytes) {
        return;
    }
    let vector: Box<dyn Any + Send> = Box::new(vector);
    let mut freed = vec![];
    let mut pool = pool(bytes);
    pool.free.push_back(Idle { vector, bytes });
    pool.bytes += bytes;
    while pool.free.len() > pool.most.0 || pool.bytes > pool.most.1 {
        let Some(oldest) = pool.free.pop_front() else { break };
        pool.bytes -= oldest.bytes;
        freed.push(oldest);
    }
    // Memory is given back to the system behind the lock.
    drop(pool);
}

/// Gives all memory that is kept for later back to the system; the number of bytes.
pub fn release() -> usize {
    let of = |pool: &mut Pool| (std::mem::take(&mut pool.free), std::mem::take(&mut pool.bytes));
    let (medium, large) = (of(&mut pool(0)), of(&mut pool(LARGE)));
    drop((medium.0, large.0));
    medium.1 + large.1
}

#[cfg(test)]
mod tests {
    use crate::types::{Array, DType};
    use std::sync::Arc;

    struct Lent(Arc<[f64]>);

    impl AsRef<[f64]> for Lent {
        fn as_ref(&self) -> &[f64] {
            &self.0
        }
    }

    fn lent() -> (Arc<[f64]>, Array) {
        let memory: Arc<[f64]> = Arc::from(vec![1.0, 2.0, 3.0, 4.0]);
        (memory.clone(), Array::foreign(&[2, 2], Lent(memory)))
    }

    #[test]
    fn most_of_an_array_is_read_where_it_is_and_never_written_through() {
        let whole = Array::new(&[500, 2], (0..1000).map(f64::from).collect());
        let part = whole.rows(1, 499);
        assert_eq!((part.shape(), part.as_slice::<f64>().as_ptr()), (&[498, 2][..], whole.as_slice::<f64>()[2..].as_ptr()));
        assert_ne!(whole.rows(0, 200).as_slice::<f64>().as_ptr(), whole.as_slice::<f64>().as_ptr(), "a small part keeps no large memory");
        let inner = part.part(3, &[900]);
        assert_eq!((inner.to_f64_vec()[0], inner.to_f64_vec()[899]), (5.0, 904.0));
        let (mut written, mut base) = (part.clone(), whole.clone());
        written.as_mut_slice::<f64>()[0] = -1.0;
        base.as_mut_slice::<f64>()[2] = -2.0;
        assert_eq!((whole.to_f64_vec()[2], part.to_f64_vec()[0], written.to_f64_vec()[0], base.to_f64_vec()[2]), (2.0, 2.0, -1.0, -2.0));
        drop((whole, base));
        let own = part.owned();
        assert!(!own.data().is_foreign() && own.to_f64_vec()[..2] == [2.0, 3.0]);
    }

    #[test]
    fn foreign_memory_is_read_in_place_and_copied_for_writing() {
        let (memory, array) = lent();
        assert_eq!(array.as_slice::<f64>().as_ptr(), memory.as_ptr());
        let (mut first, mut second) = (array.clone(), array.reshaped(&[4]));
        first.as_mut_slice::<f64>()[0] = 9.0;
        second.set_row(1, &Array::scalar(7.0));
        assert_eq!((first.to_f64_vec()[0], second.to_f64_vec()[1]), (9.0, 7.0));
        drop((first, second));
        let mut only = array;
        only.as_mut_slice::<f64>()[3] = 8.0;
        assert_eq!(&*memory, &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Arc::strong_count(&memory), 1, "the owner goes with the last array that reads its memory");
        assert_eq!(lent().1.into_vec::<f64>(), [1.0, 2.0, 3.0, 4.0]);
        let mut grown = lent().1;
        grown.resize_rows(3);
        assert_eq!(grown.to_f64_vec(), [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
    }

    #[test]
    fn owned_arrays_keep_nobody_elses_memory() {
        let (memory, array) = lent();
        assert_eq!(array.clone().owned(), array);
        let own = array.owned();
        assert_eq!(Arc::strong_count(&memory), 1);
        let at = own.as_slice::<f64>().as_ptr();
        assert_eq!(own.owned().as_slice::<f64>().as_ptr(), at, "nothing is copied twice");
    }

    #[test]
    fn large_memory_comes_back_once_nobody_sees_it() {
        // A length of this test's own: the pool belongs to the process.
        let n = (1 << 17) + 4099;
        let mut array = Array::dirty(DType::F64, &[n]);
        array.as_mut_slice::<f64>().fill(3.0);
        let at = array.as_slice::<f64>().as_ptr();
        let seen = array.clone();
        drop(array);
        let other = Array::dirty(DType::F64, &[n]);
        assert_ne!(other.as_slice::<f64>().as_ptr(), at, "somebody still sees it");
        assert!(seen.as_slice::<f64>().iter().all(|&x| x == 3.0));
        drop(seen);
        let again = Array::dirty(DType::F64, &[n - 7]);
        assert_eq!((again.as_slice::<f64>().as_ptr(), again.len()), (at, n - 7));
        drop(again);
        let regrown = Array::dirty(DType::F64, &[n]);
        assert_eq!((regrown.as_slice::<f64>().as_ptr(), regrown.len()), (at, n));
        assert_ne!(Array::dirty(DType::I64, &[n]).as_slice::<i64>().as_ptr().addr(), at.addr());
        drop((other, regrown));
        assert!(Array::zeros(DType::F64, &[n]).as_slice::<f64>().iter().all(|&x| x == 0.0));
    }
}
