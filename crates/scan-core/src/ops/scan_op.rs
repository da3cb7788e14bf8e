//! The loop as an op.

use crate::base::Result;
use crate::ir::op::{Arg, Batched, Batching, EvalCx, OpDef, Outs, Site};
use crate::ir::{Graph, Scan, Value};
use crate::types::{Array, Type};

impl OpDef for Scan {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        crate::scan::infer::infer(self, ins)
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        crate::scan::step::run(self, cx, ins)
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        crate::scan::vjp::vjp(self, g, site, cts)
    }
    fn jvp(&self, g: &mut Graph, site: &Site, tangents: &[Option<Value>]) -> Result<Option<Vec<Option<Value>>>> {
        crate::scan::jvp::jvp(self, g, site, tangents)
    }
    fn connected(&self, input: usize) -> bool {
        input != Scan::N_STEPS
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        crate::scan::batch::batch(self, b, ins)
    }
}
