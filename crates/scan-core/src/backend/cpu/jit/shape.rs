//! The loops around a step: lanes outside, time inside.
//!
//! ```text
//! entry      the frame; constants, elements that no step moves away from; uniform carries
//! lane       addresses of this lane; its carries                 (once, where no operand depends on the lane)
//! step       loads, arithmetic, stores, addresses of the next step; to `halt` where `stop` holds
//! go         to `step` while steps remain
//! halt       how many steps ran
//! leave      the lane's carries; to `lane` while lanes remain
//! done       uniform carries; how many steps ran
//! ```

use super::body::{self, Start, flags, machine};
use super::looped::Fuel;
use super::pool::Pool;
use super::walk::{self, Walk};
use crate::backend::cpu::Frame;
use crate::base::{Id, IdxVec};
use crate::kernel::{CarryId, Inst, Kernel, Lane, MemId, Op, Reg};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Type, Value, types};
use cranelift_frontend::FunctionBuilder;
use rustc_hash::FxHashMap;
use std::mem::offset_of;

/// The loops under construction.
struct Loops<'a, 'b> {
    builder: &'a mut FunctionBuilder<'b>,
    kernel: &'a Kernel,
    /// Type of addresses.
    word: Type,
    /// Values that are needed.
    needed: &'a IdxVec<Reg, bool>,
    /// Operands that a step reads or writes.
    touched: Vec<MemId>,
    frame: Fields,
    /// Constants that are in registers, and what is read once.
    constants: FxHashMap<Reg, Value>,
    pool: &'a Pool,
    fuel: Option<&'a Fuel>,
}

/// What the frame holds.
pub struct Fields {
    /// The array of pointers.
    pub ptrs: Value,
    /// The array of strides.
    pub strides: Value,
    lanes: Value,
    steps: Value,
    first: Value,
    own: Value,
}

/// Emits the whole function; its one parameter is the frame. The constants lie where they are as long as the code lives.
pub fn emit(builder: &mut FunctionBuilder, kernel: &Kernel, word: Type, needed: &IdxVec<Reg, bool>, pool: &Pool) {
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let frame = fields(builder, entry, word);
    let mut constants = pool.loaded(builder, kernel);
    let fuel = Fuel::new(builder, kernel, frame.own);
    let still: Vec<(Reg, MemId)> = still(kernel, needed);
    for &(r, m) in &still {
        let address = walk::first(builder, kernel, word, &frame, m, None);
        constants.insert(r, builder.ins().load(machine(kernel.dtype(r)), flags(), address, 0));
    }
    let touched = touched(kernel, needed, &still);
    let mut loops = Loops { builder, kernel, word, needed, touched, frame, constants, pool, fuel: fuel.as_ref() };
    let uniform = loops.load_carries(false, None);
    let (last, ran) = if loops.many_lanes() { loops.lanes(&uniform) } else { loops.lane(None, &uniform) };
    loops.store_carries(false, None, &last);
    loops.builder.ins().return_(&[ran]);
    fuel.iter().for_each(|fuel| fuel.halt(builder, word));
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
        first: field(types::I64, offset_of!(Frame, first)),
        own: field(word, offset_of!(Frame, own)),
    }
}

/// Loads of elements that stay what they are: read once, before the first step.
fn still(kernel: &Kernel, needed: &IdxVec<Reg, bool>) -> Vec<(Reg, MemId)> {
    let fixed = |m: MemId| kernel.mems[m].stride == Some(0) && kernel.mems[m].lane == Lane::Uniform;
    let written = |m: MemId| kernel.stores.iter().any(|s| s.mem == m);
    let load = |(r, inst): (Reg, &Inst)| match inst.op {
        Op::Load(m) if needed[r] && fixed(m) && !written(m) => Some((r, m)),
        _ => None,
    };
    let carried = kernel.carries.iter().filter(|c| kernel.dtype(c.next).is_float()).count();
    let (floats, others): (Vec<_>, Vec<_>) = kernel.body.enumerate().filter_map(load).partition(|l| kernel.dtype(l.0).is_float());
    floats.into_iter().take(REGISTERS.saturating_sub(carried)).chain(others.into_iter().take(OTHERS)).collect()
}

/// So many floats are in registers from step to step, carries first: the others are needed for what a step computes. A carry that has no
/// register waits in each step for the memory that the step before wrote; what is read anew waits for nothing.
const REGISTERS: usize = 11;
/// The same of other dtypes, beside what tells where operands are.
const OTHERS: usize = 3;

fn touched(kernel: &Kernel, needed: &IdxVec<Reg, bool>, still: &[(Reg, MemId)]) -> Vec<MemId> {
    let reads = |m: MemId| kernel.body.enumerate().any(|(r, inst)| needed[r] && inst.op.reads().contains(&m));
    let writes = |m: MemId| kernel.stores.iter().any(|s| s.mem == m);
    kernel.mems.ids().filter(|&m| (reads(m) || writes(m)) && !still.iter().any(|s| s.1 == m)).collect()
}

/// Values of carries, none for those not asked for.
type Carries = IdxVec<CarryId, Option<Value>>;

impl Loops<'_, '_> {
    /// A kernel that stops has one lane; and one lane is as good as many where none differs.
    fn many_lanes(&self) -> bool {
        self.kernel.stop.is_none() && self.kernel.mems.iter().any(|m| m.lane.varies())
    }

    /// The address of an operand's first element in a lane.
    fn address(&mut self, m: MemId, lane: Option<Value>) -> Value {
        walk::first(self.builder, self.kernel, self.word, &self.frame, m, lane)
    }

    /// Carries that lanes have of their own, or those that they share.
    fn load_carries(&mut self, own: bool, lane: Option<Value>) -> Carries {
        let kernel = self.kernel;
        let load = |carry: &crate::kernel::Carry| {
            let mem = &kernel.mems[carry.mem];
            (mem.lane.varies() == own).then(|| {
                let address = self.address(carry.mem, lane);
                self.builder.ins().load(machine(mem.dtype), flags(), address, 0)
            })
        };
        kernel.carries.iter().map(load).collect()
    }

    fn store_carries(&mut self, own: bool, lane: Option<Value>, values: &Carries) {
        for (id, carry) in self.kernel.carries.enumerate() {
            if self.kernel.mems[carry.mem].lane.varies() == own {
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
        let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, next, self.frame.lanes);
        self.builder.ins().brif(more, head, &[BlockArg::Value(next)], done, &[]);
        self.builder.switch_to_block(done);
        last
    }

    /// One lane over time: its carries afterwards, and how many steps ran.
    fn lane(&mut self, lane: Option<Value>, uniform: &Carries) -> (Carries, Value) {
        let own = self.load_carries(true, lane);
        let before: Vec<Value> = self.kernel.carries.ids().filter_map(|c| uniform[c].or(own[c])).collect();
        let after = self.steps(lane, before);
        self.store_carries(true, lane, &after.0);
        after
    }

    /// The loop over time. Its variables: the number of steps that remain, the carries that a step reads, the addresses.
    fn steps(&mut self, lane: Option<Value>, carries: Vec<Value>) -> (Carries, Value) {
        let (walk, begin) = Walk::begin(self.builder, self.kernel, self.word, &self.frame, &self.touched, lane);
        let step = self.builder.create_block();
        let read: Vec<CarryId> = self.kernel.carries.ids().filter(|&c| self.reads(c)).collect();
        let carried = read.iter().map(|c| carries[c.idx()]);
        let initial: Vec<Value> = [self.frame.steps].into_iter().chain(carried).chain(begin).collect();
        let variables: Vec<Value> = initial.iter().map(|&v| self.variable(step, v)).collect();
        self.jump(step, &initial);
        self.builder.switch_to_block(step);
        let (carried, moving) = variables[1..].split_at(read.len());
        let mut before: Carries = self.kernel.carries.iter().map(|_| None).collect();
        read.iter().zip(carried).for_each(|(&c, &v)| before[c] = Some(v));
        let values = self.step(&walk, variables[0], before, moving);
        let moved = walk.advance(self.builder, &self.frame, moving);
        let after = |c: CarryId| values[self.kernel.carries[c].next];
        let next: Vec<Value> = read.iter().filter_map(|&c| after(c)).chain(moved).collect();
        let (ran, stopped) = self.again(step, variables[0], &next, self.kernel.stop.and_then(|r| values[r]));
        let after = |c: CarryId| if self.tells_stop(c) { stopped } else { after(c) };
        (self.kernel.carries.ids().map(after).collect(), ran)
    }

    /// True where a step needs what the step before handed on.
    fn reads(&self, c: CarryId) -> bool {
        self.kernel.body.enumerate().any(|(r, inst)| self.needed[r] && inst.op == Op::Carry(c))
    }

    /// True where a carry is nothing but whether the loop stops: by which way it is left tells that.
    fn tells_stop(&self, c: CarryId) -> bool {
        Some(self.kernel.carries[c].next) == self.kernel.stop && !self.reads(c)
    }

    /// One step with its stores.
    fn step(&mut self, walk: &Walk, remaining: Value, carries: Carries, moving: &[Value]) -> IdxVec<Reg, Option<Value>> {
        let t = self.builder.ins().isub(self.frame.steps, remaining);
        let start = Start {
            addresses: walk.addresses(self.builder, &self.frame, moving, t),
            carries,
            step: self.number(t),
            constants: &self.constants,
            pool: self.pool,
            fuel: self.fuel,
        };
        let values = body::emit(self.builder, self.kernel, self.needed, &start);
        for store in &self.kernel.stores {
            let (value, first) = (values[store.value].expect("a stored value"), start.addresses[store.mem].expect("its address"));
            let number = store.at.map(|at| values[at].expect("the number of an element"));
            let address = number.map_or(first, |number| body::element(self.builder, &self.kernel.mems[store.mem], first, number));
            self.builder.ins().store(flags(), value, address, 0);
        }
        values
    }

    /// The number of the t-th step.
    fn number(&mut self, t: Value) -> Value {
        let t = if self.word == types::I64 { t } else { self.builder.ins().uextend(types::I64, t) };
        self.builder.ins().iadd(self.frame.first, t)
    }

    /// To the next step, or out of the loop: the block that follows is the current one. How many steps ran, and whether the loop
    /// stopped. Each way out makes its own, so that no step does.
    fn again(&mut self, step: Block, remaining: Value, next: &[Value], stop: Option<Value>) -> (Value, Option<Value>) {
        let Some(stop) = stop else {
            let leave = self.builder.create_block();
            self.count(step, remaining, next, leave);
            self.builder.switch_to_block(leave);
            return (self.frame.steps, None);
        };
        let [halt, go, end, leave] = [(); 4].map(|()| self.builder.create_block());
        let (ran, stopped) = (self.builder.append_block_param(leave, self.word), self.builder.append_block_param(leave, types::I8));
        self.builder.ins().brif(stop, halt, &[], go, &[]);
        self.builder.switch_to_block(go);
        self.count(step, remaining, next, end);
        self.builder.switch_to_block(end);
        let no = self.builder.ins().iconst(types::I8, 0);
        self.jump(leave, &[self.frame.steps, no]);
        self.builder.switch_to_block(halt);
        let before = self.builder.ins().isub(self.frame.steps, remaining);
        let (all, yes) = (self.builder.ins().iadd_imm_s(before, 1), self.builder.ins().iconst(types::I8, 1));
        self.jump(leave, &[all, yes]);
        self.builder.switch_to_block(leave);
        (ran, Some(stopped))
    }

    /// To the next step while steps remain.
    fn count(&mut self, step: Block, remaining: Value, next: &[Value], end: Block) {
        let left = self.builder.ins().iadd_imm_s(remaining, -1);
        let args: Vec<BlockArg> = std::iter::once(&left).chain(next).map(|&v| BlockArg::Value(v)).collect();
        self.builder.ins().brif(left, step, &args, end, &[]);
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
