//! Memory of arrays: our own, recycled where it is large; somebody else's, which is only read; a device's, which is copied here where it is first read.

#[cfg(test)]
mod tests;

use super::array::Element;
use super::device::Resident;
use super::on_device::OnDevice;
use super::{memory, watch};
use crate::base::Result;
use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// From so many bytes on, memory is worth recycling: touching fresh pages for the first time costs as much as filling them.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert!(Array::zeros(DType::F64, &[LARGE_MEMORY / 8]).len() >= 1 << 14);
/// ```
pub const LARGE: usize = 1 << 17;

/// From so many bytes on, large pages are worth asking for.
const ADVISED: usize = 1 << 20;

/// From so many bytes on, memory that is overwritten as a whole is used again: nothing need clear it first.
const MEDIUM: usize = 1 << 14;

/// Bytes of a line of the cache. Recycled memory begins at one: a vector that crosses a line costs twice, and memory from the allocator
/// begins 16 bytes behind one.
const LINE: usize = 64;

/// Addresses that are equal modulo this look alike to the processor at first: a load waits for an earlier store that has nothing to do
/// with it.
const ALIKE: usize = 4096;
/// Bytes between the places that are looked at where memory is to keep apart from other memory, modulo [`ALIKE`].
const PLACES: usize = 512;

/// What is kept for later at most: so many large vectors, and so many bytes in all.
const KEPT: (usize, usize) = (32, 256 << 20);
/// The same of vectors that are not large.
const KEPT_MEDIUM: (usize, usize) = (24, 4 << 20);

/// Told where large memory is before it is touched: who may talk to the system asks it for large pages.
static ADVISE: OnceLock<fn(usize, usize)> = OnceLock::new();

/// Says who is told the address and the length in bytes of large memory that is new. Only the first one is.
///
/// ```
/// use scan_core::prelude::*;
///
/// fn look(address: usize, bytes: usize) {
///     println!("{bytes} bytes at {address:x}");
/// }
/// advise_with(look);
/// ```
pub fn advise_with(advise: fn(usize, usize)) {
    ADVISE.get_or_init(|| advise);
}

/// Memory of somebody else. The slice stays where it is, and as long as it is, while this lives; it is never written here.
pub type Foreign<T> = Box<dyn AsRef<[T]> + Send + Sync>;

/// The elements of an array. A clone is a copy in memory of our own; of elements on a device it is there, and copied where it is written.
pub struct Buffer<T: Element> {
    store: Store<T>,
    /// The same elements on a device, where they were sent to one. Whoever may write gives it up.
    sent: OnceLock<Box<Resident>>,
}

enum Store<T: Element> {
    One(T),
    Own(Vec<T>),
    /// Memory that goes back to the pool.
    Pooled(Lines<T>),
    Foreign(Foreign<T>),
    /// Elements of a buffer that others hold, too.
    Part(Part<T>),
    Device(Box<OnDevice<T>>),
}

impl<T: Element> Buffer<T> {
    /// One element, without memory on the heap.
    pub fn one(x: T) -> Buffer<T> {
        Buffer::of(Store::One(x))
    }
    /// Memory of somebody else.
    pub fn foreign(owner: Foreign<T>) -> Buffer<T> {
        Buffer::of(Store::Foreign(owner))
    }
    /// Elements on a device.
    pub fn on_device(at: Resident) -> Buffer<T> {
        Buffer::of(Store::Device(Box::new(OnDevice::new(at))))
    }
    const fn of(store: Store<T>) -> Buffer<T> {
        Buffer { store, sent: OnceLock::new() }
    }
    /// `n` elements of another buffer from the one at `first` on, where they are: as memory of somebody else, who keeps them as they are.
    pub fn part(whole: Arc<Buffer<T>>, first: usize, n: usize) -> Buffer<T> {
        debug_assert!(first + n <= whole.len(), "a part of a buffer");
        match &whole.store {
            Store::Device(there) if !there.is_here() => Buffer::on_device(there.part(first, n)),
            _ => Buffer::of(Store::Part(Part { whole, first, n })),
        }
    }
    /// `n` elements of any value: what a vector held before, or zeros. Only for what is overwritten as a whole.
    pub fn dirty(n: usize) -> Buffer<T> {
        let bytes = n.saturating_mul(size_of::<T>());
        let idle = if bytes < MEDIUM { None } else { take(n) };
        match idle {
            Some(v) => Buffer::made(Store::Pooled(v)),
            None if (MEDIUM..LARGE).contains(&bytes) => Buffer::made(Store::Pooled(Lines::fresh(n))),
            None => Buffer::fresh(n),
        }
    }
    /// The same, which begins as far from some addresses as can be, modulo `ALIKE`: for what is written in turns with what is read there.
    /// Only where it is worth the memory.
    pub fn dirty_apart(n: usize, others: &[usize]) -> Buffer<T> {
        if others.is_empty() || n.saturating_mul(size_of::<T>()) < 8 * ALIKE {
            return Buffer::dirty(n);
        }
        let mut buffer = Buffer::dirty(n.saturating_add(ALIKE / size_of::<T>()));
        match &mut buffer.store {
            Store::Pooled(lines) => lines.keep_apart(n, others),
            _ => buffer.resize(n).expect("memory of the host"),
        }
        buffer
    }
    /// `n` zeros (`false` for bool).
    pub fn zeros(n: usize) -> Buffer<T> {
        let idle = if n.saturating_mul(size_of::<T>()) < LARGE { None } else { take(n) };
        match idle {
            Some(mut v) => {
                v.as_mut_slice().fill(T::default());
                Buffer::made(Store::Pooled(v))
            }
            None => Buffer::fresh(n),
        }
    }
    fn fresh(n: usize) -> Buffer<T> {
        if n == 1 {
            return Buffer::one(T::default());
        }
        let bytes = n.saturating_mul(size_of::<T>());
        if bytes < LARGE {
            return Buffer::from(memory::zeros(n));
        }
        let lines = Lines::<T>::fresh(n);
        if let Some(advise) = ADVISE.get().filter(|_| bytes >= ADVISED) {
            advise(lines.vector.as_ptr().addr(), size_of_val(&*lines.vector));
        }
        Buffer::made(Store::Pooled(lines))
    }
    /// Bytes that it takes on the heap.
    fn bytes(&self) -> usize {
        size_of::<T>()
            * match &self.store {
                Store::One(_) | Store::Foreign(_) | Store::Part(_) | Store::Device(_) => 0,
                Store::Own(v) => v.capacity(),
                Store::Pooled(lines) => lines.vector.capacity(),
            }
    }
    #[inline]
    fn made(store: Store<T>) -> Buffer<T> {
        let buffer = Buffer::of(store);
        watch::changed(0, buffer.bytes());
        buffer
    }
    /// True where the memory is somebody else's.
    pub fn is_foreign(&self) -> bool {
        matches!(self.store, Store::Foreign(_) | Store::Part(_))
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        if let Store::Device(there) = &self.store { there.at().n } else { self.deref().len() }
    }
    /// True without elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The elements on a device, where they are there: made there, or sent.
    pub fn resident(&self) -> Option<&Resident> {
        if let Store::Device(there) = &self.store { Some(there.at()) } else { self.sent.get().map(|sent| &**sent) }
    }
    /// True where the elements lie on a device: what the host has of them is a copy.
    pub fn is_on_device(&self) -> bool {
        matches!(self.store, Store::Device(_))
    }
    /// True where the host would have to fetch the elements to read them.
    pub fn is_away(&self) -> bool {
        matches!(&self.store, Store::Device(there) if !there.is_here())
    }
    /// Notes where the elements were sent to, unless that is known.
    pub fn note_sent(&self, to: Resident) -> &Resident {
        self.resident().unwrap_or_else(|| self.sent.get_or_init(|| Box::new(to)))
    }
    /// The elements for writing where they lie on a device, in memory that nothing else sees; `None` for those of the host. What the host has
    /// of them is given up.
    ///
    /// # Errors
    /// `E0392` where the device has no memory for a copy, `E0523`.
    pub fn resident_mut(&mut self) -> Result<Option<&Resident>> {
        if let Store::Device(there) = &mut self.store { there.at_mut().map(Some) } else { Ok(None) }
    }
    /// Has the elements in memory of the host that may be written.
    fn make_writable(&mut self) {
        self.sent.take();
        match &mut self.store {
            Store::Foreign(_) | Store::Part(_) => *self = self.clone(),
            Store::Device(there) => *self = there.take_here(),
            _ => {}
        }
    }
    /// The elements for writing; those of somebody else, and of devices, are copied first.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.make_writable();
        match &mut self.store {
            Store::One(x) => std::slice::from_mut(x),
            Store::Own(v) => v,
            Store::Pooled(lines) => lines.as_mut_slice(),
            Store::Foreign(_) | Store::Part(_) | Store::Device(_) => unreachable!("copied above"),
        }
    }
    /// Changes the number of elements; new ones are zero, and those of somebody else are copied first.
    ///
    /// # Errors
    /// Those of a device, where the elements lie there: they stay there.
    pub fn resize(&mut self, n: usize) -> Result<()> {
        if let Store::Device(there) = &mut self.store {
            return there.resize(n);
        }
        self.sent.take();
        if matches!(self.store, Store::One(_) | Store::Foreign(_) | Store::Part(_)) {
            *self = Buffer::from(memory::copied(self));
        }
        let before = self.bytes();
        match &mut self.store {
            Store::Own(v) => memory::resize(v, n, T::default()),
            Store::Pooled(lines) => lines.resize(n),
            _ => unreachable!("copied above"),
        }
        watch::changed(before, self.bytes());
        Ok(())
    }
    /// The elements as a vector, where they are if they are in one from its beginning on.
    pub fn into_vec(mut self) -> Vec<T> {
        match &mut self.store {
            Store::Own(v) => {
                let data = std::mem::take(v);
                watch::changed(data.capacity() * size_of::<T>(), 0);
                data
            }
            _ => memory::copied(&self),
        }
    }
}

/// `n` elements of a vector, from one on that begins at a line of the cache.
struct Lines<T> {
    vector: Vec<T>,
    first: usize,
    n: usize,
}

impl<T: Element> Lines<T> {
    /// Elements that may be left over in front.
    const SPARE: usize = LINE / size_of::<T>();

    /// `n` zeros.
    fn fresh(n: usize) -> Lines<T> {
        Lines::of(memory::zeros(n.saturating_add(Self::SPARE)), n)
    }
    /// `n` elements of a vector that has room for as many, and for those that are left over.
    fn of(mut vector: Vec<T>, n: usize) -> Lines<T> {
        let first = vector.as_ptr().addr().wrapping_neg() % LINE / size_of::<T>();
        if vector.len() < first + n {
            memory::resize(&mut vector, first + n, T::default());
        }
        Lines { vector, first, n }
    }
    fn as_slice(&self) -> &[T] {
        &self.vector[self.first..self.first + self.n]
    }
    fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.vector[self.first..self.first + self.n]
    }
    /// Changes the number of elements; new ones are zero.
    fn resize(&mut self, n: usize) {
        self.vector.truncate(self.first + self.n.min(n));
        memory::resize(&mut self.vector, self.first + n, T::default());
        self.n = n;
    }
    /// Begins later, with `n` of the elements, where it is far from some addresses.
    fn keep_apart(&mut self, n: usize, others: &[usize]) {
        let start = self.as_slice().as_ptr().addr();
        let distance = |from: usize, to: usize| (from.wrapping_sub(to) % ALIKE).min(to.wrapping_sub(from) % ALIKE);
        let nearest = |place: &usize| others.iter().map(|&other| distance(start + place, other)).min();
        let place = (0..ALIKE).step_by(PLACES).rev().max_by_key(nearest).unwrap_or(0);
        self.first += place / size_of::<T>();
        self.n = n;
    }
}

/// Elements of a buffer that others hold, too: nobody writes to it meanwhile.
struct Part<T: Element> {
    whole: Arc<Buffer<T>>,
    first: usize,
    n: usize,
}

impl<T: Element> Part<T> {
    fn as_slice(&self) -> &[T] {
        &self.whole[self.first..self.first + self.n]
    }
}

impl<T: Element> From<Vec<T>> for Buffer<T> {
    fn from(data: Vec<T>) -> Buffer<T> {
        Buffer::made(Store::Own(data))
    }
}

impl<T: Element> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.store {
            Store::One(x) => std::slice::from_ref(x),
            Store::Own(v) => v,
            Store::Pooled(lines) => lines.as_slice(),
            Store::Foreign(owner) => (**owner).as_ref(),
            Store::Part(part) => part.as_slice(),
            Store::Device(there) => there.here(),
        }
    }
}

impl<T: Element> Clone for Buffer<T> {
    fn clone(&self) -> Buffer<T> {
        match &self.store {
            Store::One(x) => Buffer::one(*x),
            Store::Device(there) => Buffer::of(Store::Device(there.clone())),
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
        watch::changed(self.bytes(), 0);
        match &mut self.store {
            Store::Pooled(lines) => keep(std::mem::take(&mut lines.vector)),
            Store::Own(v) if v.capacity() * size_of::<T>() >= LARGE => keep(std::mem::take(v)),
            _ => {}
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

/// Memory of `n` elements that begins at a line of the cache.
fn take<T: Element>(n: usize) -> Option<Lines<T>> {
    idle(n.saturating_add(Lines::<T>::SPARE)).map(|vector| Lines::of(vector, n))
}

/// An empty vector with room for `n` elements, where they are many and such a one is kept.
pub(super) fn recycled<T: Send + 'static>(n: usize) -> Option<Vec<T>> {
    let mut vector = if n.saturating_mul(size_of::<T>()) < LARGE { None } else { idle(n) }?;
    vector.clear();
    Some(vector)
}

/// The smallest vector that is kept and has room for `n` elements and not for many more.
fn idle<T: Send + 'static>(n: usize) -> Option<Vec<T>> {
    let vector = smallest(n.saturating_mul(size_of::<T>()), TypeId::of::<Vec<T>>())?;
    vector.downcast::<Vec<T>>().ok().map(|vector| *vector)
}

/// The same of a type, by bytes.
fn smallest(wanted: usize, kind: TypeId) -> Option<Box<dyn Any + Send>> {
    let fits = |idle: &Idle| idle.bytes >= wanted && idle.bytes - wanted <= wanted / 4 && (*idle.vector).type_id() == kind;
    let mut pool = pool(wanted);
    let found = pool.free.iter().enumerate().filter(|(_, idle)| fits(idle)).min_by_key(|(_, idle)| idle.bytes)?.0;
    let idle = pool.free.remove(found)?;
    pool.bytes -= idle.bytes;
    Some(idle.vector)
}

/// Keeps a vector for later, unless it is too small or too large for that.
fn keep<T: Element>(vector: Vec<T>) {
    let bytes = vector.capacity() * size_of::<T>();
    if (MEDIUM..=KEPT.1).contains(&bytes) {
        store(Idle { vector: Box::new(vector), bytes });
    }
}

/// What is kept for longest goes where that is too much.
fn store(idle: Idle) {
    let mut freed = vec![];
    let mut pool = pool(idle.bytes);
    pool.bytes += idle.bytes;
    pool.free.push_back(idle);
    while pool.free.len() > pool.most.0 || pool.bytes > pool.most.1 {
        let Some(oldest) = pool.free.pop_front() else { break };
        pool.bytes -= oldest.bytes;
        freed.push(oldest);
    }
    // Memory is given back to the system behind the lock.
    drop(pool);
}

/// Gives all memory that is kept for later back to the system; the number of bytes.
///
/// ```
/// use scan_core::prelude::*;
///
/// drop(Array::zeros(DType::F64, &[1 << 20]));
/// println!("{} bytes given back", release_memory());
/// ```
pub fn release() -> usize {
    let of = |pool: &mut Pool| (std::mem::take(&mut pool.free), std::mem::take(&mut pool.bytes));
    let (medium, large) = (of(&mut pool(0)), of(&mut pool(LARGE)));
    drop((medium.0, large.0));
    medium.1 + large.1
}

/// As [`release`], as far as nobody is about to keep or take memory: for allocators, which may be called in the midst of that.
///
/// ```
/// use scan_core::prelude::*;
///
/// release_idle_memory();
/// ```
pub fn release_idle() {
    for pool in [&MEDIUM_POOL, &POOL] {
        let idle = pool.try_lock().ok().map(|mut pool| (std::mem::take(&mut pool.free), std::mem::take(&mut pool.bytes)));
        drop(idle);
    }
}
