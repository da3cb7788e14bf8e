//! Memory that the system has cleared, or none.

use std::alloc::{Layout, alloc_zeroed};

mod sealed {
    /// No types but those of this file are [`super::Zero`].
    pub trait Sealed {}
}

/// Types of which zero bytes are a value: 0, or `false`.
pub trait Zero: Copy + sealed::Sealed {}

macro_rules! zeros {
    ($($t:ty),+) => {$(
        impl sealed::Sealed for $t {}
        impl Zero for $t {}
    )+};
}

zeros!(bool, i8, i16, i32, i64, u8, u16, u32, u64, usize, f32, f64);

/// `n` zeros; `None` where there is no memory for them. `vec![0; n]` but that it may fail: pages are only touched by who uses them.
pub fn zeroed<T: Zero>(n: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(n).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the layout has a size. Where there is memory, it holds n elements of zero bytes, each of which is a value of T, and it
    // comes from the allocator of vectors with the layout that a vector of this capacity gives back.
    unsafe {
        let memory = alloc_zeroed(layout).cast::<T>();
        (!memory.is_null()).then(|| Vec::from_raw_parts(memory, n, n))
    }
}
