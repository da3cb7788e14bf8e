//! Where operands are at each step. What moves by a known stride lies so far behind where it begins as all that move alike: one
//! variable serves them all. Of the others, a machine has few registers for them: the first get two each (where it is, how far it
//! moves); the next get one; of all the rest the place is computed from the number of the step.

use super::body::flags;
use super::shape::Fields;
use crate::base::{Id, IdxVec};
use crate::kernel::{Kernel, MemId};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use cranelift_frontend::FunctionBuilder;

/// As many operands as have two registers each.
const FEW: usize = 5;
/// Where there are more, as many of them as have one register.
const MANY: usize = 8;

/// The operands that a step touches.
pub struct Walk<'a> {
    kernel: &'a Kernel,
    word: Type,
    /// Those that move by known strides, with where they begin.
    known: Vec<(MemId, Value)>,
    /// The strides of these, but for 0.
    ways: Vec<i32>,
    /// Those whose address is a variable of the loop.
    moving: Vec<MemId>,
    /// How far they move, where that is in registers.
    strides: Vec<Value>,
    /// The others.
    computed: Vec<MemId>,
    lane: Option<Value>,
}

/// The entry of an operand in an array of the frame.
fn entry(builder: &mut FunctionBuilder, word: Type, array: Value, m: MemId) -> Value {
    builder.ins().load(word, flags(), array, (m.idx() as u32 * word.bytes()) as i32)
}

/// The address of an operand's first element in a lane.
pub fn first(builder: &mut FunctionBuilder, kernel: &Kernel, word: Type, frame: &Fields, m: MemId, lane: Option<Value>) -> Value {
    let ptr = entry(builder, word, frame.ptrs, m);
    match lane {
        Some(lane) if kernel.mems[m].lane.varies() => {
            let bytes = kernel.mems[m].lane.elements() * kernel.mems[m].dtype.size() as isize;
            let offset = match bytes.cast_unsigned().is_power_of_two() {
                true => builder.ins().ishl_imm_u(lane, i64::from(bytes.trailing_zeros())),
                false => builder.ins().imul_imm_s(lane, bytes as i64),
            };
            builder.ins().iadd(ptr, offset)
        }
        _ => ptr,
    }
}

impl<'a> Walk<'a> {
    /// Before the first step: the walk, and what its variables begin with.
    pub fn begin(
        builder: &mut FunctionBuilder,
        kernel: &'a Kernel,
        word: Type,
        frame: &Fields,
        touched: &[MemId],
        lane: Option<Value>,
    ) -> (Walk<'a>, Vec<Value>) {
        let (known, touched): (Vec<MemId>, Vec<MemId>) = touched.iter().partition(|&&m| kernel.mems[m].stride.is_some());
        let known: Vec<(MemId, Value)> = known.into_iter().map(|m| (m, first(builder, kernel, word, frame, m, lane))).collect();
        let mut ways: Vec<i32> = known.iter().filter_map(|k| kernel.mems[k.0].stride).filter(|&s| s != 0).collect();
        ways.sort_unstable();
        ways.dedup();
        let few = touched.len() <= FEW;
        let (moving, computed) = touched.split_at(if few { touched.len() } else { touched.len().min(MANY) });
        let far = ways.iter().map(|_| builder.ins().iconst(word, 0)).collect::<Vec<_>>();
        let variables = far.into_iter().chain(moving.iter().map(|&m| first(builder, kernel, word, frame, m, lane))).collect();
        let strides = if few { moving.iter().map(|&m| entry(builder, word, frame.strides, m)).collect() } else { vec![] };
        (Walk { kernel, word, known, ways, moving: moving.to_vec(), strides, computed: computed.to_vec(), lane }, variables)
    }

    /// In a step, the t-th: the addresses of all operands, given the variables.
    pub fn addresses(&self, builder: &mut FunctionBuilder, frame: &Fields, variables: &[Value], t: Value) -> IdxVec<MemId, Option<Value>> {
        let mut addresses: IdxVec<MemId, Option<Value>> = self.kernel.mems.iter().map(|_| None).collect();
        let (far, moving) = variables.split_at(self.ways.len());
        for &(m, base) in &self.known {
            let way = self.ways.iter().position(|&w| Some(w) == self.kernel.mems[m].stride);
            addresses[m] = Some(way.map_or(base, |way| builder.ins().iadd(base, far[way])));
        }
        self.moving.iter().zip(moving).for_each(|(&m, &a)| addresses[m] = Some(a));
        for &m in &self.computed {
            let stride = entry(builder, self.word, frame.strides, m);
            let way = builder.ins().imul(t, stride);
            let ptr = first(builder, self.kernel, self.word, frame, m, self.lane);
            addresses[m] = Some(builder.ins().iadd(way, ptr));
        }
        addresses
    }

    /// At the end of a step: the variables of the next.
    pub fn advance(&self, builder: &mut FunctionBuilder, frame: &Fields, variables: &[Value]) -> Vec<Value> {
        let (far, moving) = variables.split_at(self.ways.len());
        let mut next: Vec<Value> = far.iter().zip(&self.ways).map(|(&far, &way)| builder.ins().iadd_imm_s(far, way as i64)).collect();
        for (i, &address) in moving.iter().enumerate() {
            let stride = match self.strides.get(i) {
                Some(&stride) => stride,
                None => entry(builder, self.word, frame.strides, self.moving[i]),
            };
            next.push(builder.ins().iadd(address, stride));
        }
        next
    }
}
