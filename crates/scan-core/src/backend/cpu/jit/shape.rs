//! The loops around a step: lanes outside, time inside.
//!
//! ```text
//! entry      the frame; uniform carries
//! lane       addresses of this lane; its carries                 (once, where no operand depends on the lane)
//! step       loads, arithmetic, stores, addresses of the next step; to `leave` where `stop` holds
//! next       to `step` while steps remain
//! leave      the lane's carries; to `lane` while lanes remain
//! done       uniform carries; how many steps ran
//! ```

use super::body::{self, Start, flags, machine};
use crate::backend::cpu::Frame;
use crate::base::{Id, IdxVec};
use crate::kernel::{CarryId, Kernel, Lane, MemId, Op, Reg};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Type, Value};
use cranelift_frontend::FunctionBuilder;
use std::mem::offset_of;

/// The loops under construction.
struct Loops<'a, 'b> {
    builder: &'a mut FunctionBuilder<'b>,
    kernel: &'a Kernel,
    /// Type of addresses.
    word: Type,
    /// Values that are needed.
    needed: IdxVec<Reg, bool>,
    /// Operands that a step reads or writes.
    touched: Vec<MemId>,
    frame: Fields,
}

/// What the frame holds.
struct Fields {
    ptrs: Value,
    strides: Value,
    lanes: Value,
    steps: Value,
    first: Value,
}

/// Emits the whole function; its one parameter is the frame.
pub fn emit(builder: &mut FunctionBuilder, kernel: &Kernel, word: Type) {
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let frame = fields(builder, entry, word);
    let needed = body::needed(kernel);
    let touched = touched(kernel, &needed);
    let mut loops = Loops { builder, kernel, word, needed, touched, frame };
    let uniform = loops.load_carries(Lane::Uniform, None);
    let (last, remaining) = if loops.many_lanes() { loops.lanes(&uniform) } else { loops.lane(None, &uniform) };
    loops.store_carries(Lane::Uniform, None, &last);
    let ran = loops.builder.ins().isub(loops.frame.steps, remaining);
    loops.builder.ins().return_(&[ran]);
    builder.seal_all_blocks();
}

fn fields(builder: &mut FunctionBuilder, entry: Block, word: Type) -> Fields {
    let frame = builder.block_params(entry)[0];
    let mut field = |ty: Type, offset: usize| builder.ins().load(ty, flags(), frame, offset as i32);
    Fields {
        ptrs: field(word, offset_of!(Frame, ptrs)),
        strides: field(word, offset_of!(Frame, strides)),
        lanes: field(word, offset_of!(Frame, lanes)),
        steps: field(word, offset_of!(Frame, steps)),
        first: field(machine(crate::types::DType::I64), offset_of!(Frame, first)),
    }
}

fn touched(kernel: &Kernel, needed: &IdxVec<Reg, bool>) -> Vec<MemId> {
    let reads = |m: MemId| kernel.body.enumerate().any(|(r, inst)| needed[r] && inst.op == Op::Load(m));
    let writes = |m: MemId| kernel.stores.iter().any(|s| s.mem == m);
    kernel.mems.ids().filter(|&m| reads(m) || writes(m)).collect()
}

/// Values of carries, none for those not asked for.
type Carries = IdxVec<CarryId, Option<Value>>;

impl Loops<'_, '_> {
    /// A kernel that stops has one lane; and one lane is as good as many where none differs.
    fn many_lanes(&self) -> bool {
        self.kernel.stop.is_none() && self.kernel.mems.iter().any(|m| m.lane == Lane::Unit)
    }

    /// The address of an operand's first element in a lane.
    fn address(&mut self, m: MemId, lane: Option<Value>) -> Value {
        let ptr = self.entry(self.frame.ptrs, m);
        match lane {
            Some(lane) if self.kernel.mems[m].lane == Lane::Unit => {
                let shift = self.kernel.mems[m].dtype.size().trailing_zeros() as i64;
                let offset = self.builder.ins().ishl_imm_u(lane, shift);
                self.builder.ins().iadd(ptr, offset)
            }
            _ => ptr,
        }
    }

    /// The entry of an operand in an array of the frame.
    fn entry(&mut self, array: Value, m: MemId) -> Value {
        self.builder.ins().load(self.word, flags(), array, (m.idx() * self.word.bytes() as usize) as i32)
    }

    fn load_carries(&mut self, which: Lane, lane: Option<Value>) -> Carries {
        let kernel = self.kernel;
        let load = |carry: &crate::kernel::Carry| {
            let mem = &kernel.mems[carry.mem];
            (mem.lane == which).then(|| {
                let address = self.address(carry.mem, lane);
                self.builder.ins().load(machine(mem.dtype), flags(), address, 0)
            })
        };
        kernel.carries.iter().map(load).collect()
    }

    fn store_carries(&mut self, which: Lane, lane: Option<Value>, values: &Carries) {
        for (id, carry) in self.kernel.carries.enumerate() {
            if self.kernel.mems[carry.mem].lane == which {
                let address = self.address(carry.mem, lane);
                let value = values[id].expect("the value of a carry after a step");
                self.builder.ins().store(flags(), value, address, 0);
            }
        }
    }

    /// All lanes, one after the other.
    fn lanes(&mut self, uniform: &Carries) -> (Carries, Value) {
        let (head, done) = (self.builder.create_block(), self.builder.create_block());
        let lane = self.builder.append_block_param(head, self.word);
        let zero = self.builder.ins().iconst(self.word, 0);
        self.builder.ins().jump(head, &[BlockArg::Value(zero)]);
        self.builder.switch_to_block(head);
        let last = self.lane(Some(lane), uniform);
        let next = self.builder.ins().iadd_imm_s(lane, 1);
        let more = self.builder.ins().icmp(cranelift_codegen::ir::condcodes::IntCC::UnsignedLessThan, next, self.frame.lanes);
        self.builder.ins().brif(more, head, &[BlockArg::Value(next)], done, &[]);
        self.builder.switch_to_block(done);
        last
    }

    /// One lane over time: its carries afterwards, and how many steps were left.
    fn lane(&mut self, lane: Option<Value>, uniform: &Carries) -> (Carries, Value) {
        let unit = self.load_carries(Lane::Unit, lane);
        let before: Vec<Value> = self.kernel.carries.ids().filter_map(|c| uniform[c].or(unit[c])).collect();
        let after = self.steps(lane, before);
        self.store_carries(Lane::Unit, lane, &after.0);
        after
    }

    /// The loop over time. Its variables: the number of steps that remain, the carries, the addresses.
    fn steps(&mut self, lane: Option<Value>, carries: Vec<Value>) -> (Carries, Value) {
        let touched = self.touched.clone();
        let addresses: Vec<Value> = touched.iter().map(|&m| self.address(m, lane)).collect();
        let strides: Vec<Value> = touched.iter().map(|&m| self.entry(self.frame.strides, m)).collect();
        let end = self.builder.ins().iadd(self.frame.first, self.frame.steps);
        let step = self.builder.create_block();
        let initial: Vec<Value> = [self.frame.steps].into_iter().chain(carries).chain(addresses).collect();
        let variables: Vec<Value> = initial.iter().map(|&v| self.variable(step, v)).collect();
        self.jump(step, &initial);
        self.builder.switch_to_block(step);

        let remaining = variables[0];
        let (carries, addresses) = variables[1..].split_at(self.kernel.carries.len());
        let mut start =
            Start { addresses: self.kernel.mems.iter().map(|_| None).collect(), carries: carries.iter().copied().collect(), step: None };
        touched.iter().zip(addresses).for_each(|(&m, &a)| start.addresses[m] = Some(a));
        start.step = Some(self.builder.ins().isub(end, remaining));
        let values = body::emit(self.builder, self.kernel, &self.needed, &start);
        for store in &self.kernel.stores {
            let (value, address) = (values[store.value].expect("a stored value"), start.addresses[store.mem].expect("its address"));
            self.builder.ins().store(flags(), value, address, 0);
        }
        let after: Carries = self.kernel.carries.iter().map(|c| values[c.next]).collect();
        let moved = addresses.iter().zip(&strides).map(|(&a, &s)| self.builder.ins().iadd(a, s));
        let moved: Vec<Value> = moved.collect();
        let left = self.builder.ins().iadd_imm_s(remaining, -1);
        let next: Vec<Value> = [left].into_iter().chain(after.iter().flatten().copied()).chain(moved).collect();
        self.again(step, &next, self.kernel.stop.and_then(|r| values[r]), left);
        (after, left)
    }

    /// To the next step, or out of the loop: the block that follows is the current one.
    fn again(&mut self, step: Block, next: &[Value], stop: Option<Value>, left: Value) {
        let leave = self.builder.create_block();
        if let Some(stop) = stop {
            let go = self.builder.create_block();
            self.builder.ins().brif(stop, leave, &[], go, &[]);
            self.builder.switch_to_block(go);
        }
        let args: Vec<BlockArg> = next.iter().map(|&v| BlockArg::Value(v)).collect();
        self.builder.ins().brif(left, step, &args, leave, &[]);
        self.builder.switch_to_block(leave);
    }

    /// A variable of a loop.
    fn variable(&mut self, head: Block, initial: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(initial);
        self.builder.append_block_param(head, ty)
    }

    fn jump(&mut self, to: Block, args: &[Value]) {
        let args: Vec<BlockArg> = args.iter().map(|&v| BlockArg::Value(v)).collect();
        self.builder.ins().jump(to, &args);
    }
}
