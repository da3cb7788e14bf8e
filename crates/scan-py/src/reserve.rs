//! The allocator of the extension: the system's, with something in reserve for small memory, which has no way to be refused.

use scan_core::prelude::release_idle_memory;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Blocks in reserve, none of whose pages is touched, so that they take addresses alone.
const BLOCKS: usize = 4;
/// Bytes of a block.
const BLOCK: usize = 4 << 20;
/// What is larger is asked for where it may be refused, and gets nothing of the reserve: room for the largest tiles of a product.
const LARGEST: usize = 3 << 20;

/// The system's allocator. Where it has nothing it gives back memory that is kept for later, then the blocks in reserve, one after the
/// other, so that a call that fails for want of memory can still make its error.
pub struct Reserve([AtomicPtr<u8>; BLOCKS]);

#[global_allocator]
static RESERVE: Reserve = Reserve([const { AtomicPtr::new(null_mut()) }; BLOCKS]);

const OF_BLOCK: Layout = match Layout::from_size_align(BLOCK, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a block has a layout"),
};

impl Reserve {
    /// What `get` gives, where it gives nothing once more after memory was given back.
    #[cold]
    fn again(&self, bytes: usize, get: impl Fn() -> *mut u8) -> *mut u8 {
        if bytes > LARGEST {
            return null_mut();
        }
        release_idle_memory();
        let mut found = get();
        for slot in &self.0 {
            if !found.is_null() {
                break;
            }
            let block = slot.swap(null_mut(), Ordering::AcqRel);
            if !block.is_null() {
                // SAFETY: the block is of this layout, from the same allocator, and nobody else has it: it was taken out of its slot.
                unsafe { System.dealloc(block, OF_BLOCK) };
                found = get();
            }
        }
        found
    }

    fn refill(&self) {
        for slot in self.0.iter().filter(|slot| slot.load(Ordering::Acquire).is_null()) {
            // SAFETY: the layout has a size.
            let block = unsafe { System.alloc(OF_BLOCK) };
            if slot.compare_exchange(null_mut(), block, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: the block that was made above; somebody else has filled the slot.
                unsafe { System.dealloc(block, OF_BLOCK) };
            }
        }
    }
}

/// Puts into reserve what is missing there, as far as there is memory.
pub fn refill() {
    RESERVE.refill();
}

// SAFETY: memory comes from the system's allocator, and goes back to it, with the layouts that it is asked with.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as granted by the caller, here and below.
        let found = unsafe { System.alloc(layout) };
        if found.is_null() { self.again(layout.size(), || unsafe { System.alloc(layout) }) } else { found }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let found = unsafe { System.alloc_zeroed(layout) };
        if found.is_null() { self.again(layout.size(), || unsafe { System.alloc_zeroed(layout) }) } else { found }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above. What could not be moved is where it was.
        let found = unsafe { System.realloc(memory, layout, size) };
        if found.is_null() { self.again(size, || unsafe { System.realloc(memory, layout, size) }) } else { found }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
