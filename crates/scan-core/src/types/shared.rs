//! Shared variables: values that live between calls.

use super::device::Site;
use super::{Array, Type};
use crate::base::Result;
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// A handle to a value that functions read and update. Clones share the value.
///
/// ```
/// use scan_core::prelude::*;
///
/// let shared = Shared::new(Array::scalar(1.0), Type::scalar(DType::F64));
/// let w = Var::shared(shared.clone(), Some("w"), Span::NONE);
/// shared.set(Array::scalar(2.0));
/// assert_eq!(w.eval()?, Array::scalar(2.0));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone)]
pub struct Shared(Arc<Inner>);

/// Whatever a program wants to find again with a shared variable or an expression.
///
/// ```
/// use scan_core::prelude::*;
///
/// let w = Var::new_shared(Array::scalar(1.0), "w");
/// let note: Note = std::sync::Arc::new("kept");
/// w.set_note(Some(note));
/// assert_eq!(w.note().unwrap().downcast_ref::<&str>(), Some(&"kept"));
/// ```
pub type Note = Arc<dyn Any + Send + Sync>;

struct Inner {
    id: u64,
    ty: Type,
    value: RwLock<Array>,
    updating: Mutex<()>,
    note: Mutex<Option<Note>>,
    /// The device where its values are kept, if it is not the host.
    home: Option<Arc<dyn Site>>,
}

impl Shared {
    /// A new shared variable. Its extents may change from one value to the next; dtype and rank
    /// (and, with `fixed`, extents known in `ty`) may not.
    pub fn new(value: Array, ty: Type) -> Shared {
        Shared::with(value.owned(), ty, None)
    }
    /// The same with its values on a device, updates among them.
    ///
    /// # Errors
    /// `E0392` where the device has no memory, `E0523` where it fails.
    pub fn on_device(value: &Array, ty: Type, home: Arc<dyn Site>) -> Result<Shared> {
        Ok(Shared::with(value.moved(&*home)?, ty, Some(home)))
    }
    fn with(value: Array, ty: Type, home: Option<Arc<dyn Site>>) -> Shared {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Shared(Arc::new(Inner {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            ty,
            value: RwLock::new(value),
            updating: Mutex::new(()),
            note: Mutex::default(),
            home,
        }))
    }
    /// A number that no other shared variable of the process has; locks are taken in its order.
    pub fn id(&self) -> u64 {
        self.0.id
    }
    /// dtype, rank and what is known of the extents.
    pub fn ty(&self) -> &Type {
        &self.0.ty
    }
    /// The value now. O(1): buffers are shared until written.
    pub fn get(&self) -> Array {
        self.0.value.read().unwrap_or_else(|e| e.into_inner()).clone()
    }
    /// The device where its values are kept; `None`: with the host.
    pub fn device(&self) -> Option<&'static str> {
        self.0.home.as_ref().map(|home| home.name())
    }
    /// A value as this variable keeps it: on its device, or with the host in memory of our own. What could fail of it is done then.
    ///
    /// # Errors
    /// `E0392` where a device has no memory, `E0523` where it fails.
    pub fn fit(&self, value: Array) -> Result<Array> {
        match &self.0.home {
            Some(home) => value.moved(&**home),
            None => {
                value.fetch();
                Ok(value.owned())
            }
        }
    }
    /// Replaces the value by one that [`Shared::fit`] made, or copies it where its memory is somebody else's. The caller has checked that its
    /// type fits.
    pub fn set(&self, value: Array) {
        let value = value.owned();
        let before = std::mem::replace(&mut *self.0.value.write().unwrap_or_else(|e| e.into_inner()), value);
        drop(before);
    }
    /// What was last noted of it.
    pub fn note(&self) -> Option<Note> {
        self.0.note.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
    /// Keeps something as long as this variable is kept.
    pub fn set_note(&self, note: Option<Note>) {
        *self.0.note.lock().unwrap_or_else(|e| e.into_inner()) = note;
    }
    /// Held by a call that updates this variable, from its reading to its commit.
    pub fn lock_updates(&self) -> MutexGuard<'_, ()> {
        self.0.updating.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Shared) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Shared {}

impl std::hash::Hash for Shared {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shared#{}", self.0.id)
    }
}
