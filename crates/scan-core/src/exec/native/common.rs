//! What loops have in common that are paused.

use super::memories::Steady;
use super::variant::Variant;
use crate::backend::cpu::bytes;
use crate::base::Result;
use crate::ir::{EvalCx, Scan};
use crate::types::Array;
use smallvec::SmallVec;
use std::sync::Arc;

/// What loops have in common that were paused with the same captured values: thousands of sessions read one copy of their weights.
pub struct Common {
    pub variant: Arc<Variant>,
    pub captured: Vec<Array>,
    /// What all steps read, where it is computed.
    pub computed: Vec<Array>,
    /// The same as a list reads it.
    pub steady: SmallVec<[Steady; 4]>,
}

impl Common {
    /// Of a loop with these inputs, of which these are its captured values.
    ///
    /// # Errors
    /// What the ops report.
    pub fn new(scan: &Scan, cx: &mut EvalCx, variant: &Arc<Variant>, ins: &[Array], captured: Vec<Array>) -> Result<Common> {
        let (computed, steady) = match &**variant {
            Variant::Kernel(ready) => (ready.before.run(scan, cx, ins)?, SmallVec::new()),
            Variant::Mixed(list, _) => {
                let computed = list.before.run(scan, cx, ins)?;
                let steady = list.steady(ins, &computed);
                (computed, steady)
            }
            _ => (vec![], SmallVec::new()),
        };
        Ok(Common { variant: variant.clone(), captured, computed, steady })
    }
    /// True for the same variant and arrays that lie at the same places: counted memory does not change while somebody holds it.
    pub fn serves(&self, variant: &Arc<Variant>, captured: &[Array]) -> bool {
        let same = |(a, b): (&Array, &Array)| a.dtype() == b.dtype() && a.shape() == b.shape() && bytes(a).as_ptr() == bytes(b).as_ptr();
        Arc::ptr_eq(&self.variant, variant) && self.captured.iter().zip(captured).all(same)
    }
}
