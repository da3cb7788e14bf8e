//! Loops in a step: blocks of their own between those of the step.
//!
//! ```text
//! …          the step up to the loop; constants, where its tables lie; to `done` where no step is wanted
//! head       one step of the loop; now and then to `ask`; to `head` while steps remain and `stop` does not hold
//! ask        whether whoever waits wants to stop: to `halt`, which leaves the function
//! done       how many steps ran, the carries; the rest of the step
//! ```

use super::body::{self, Body, Start, emit, flags, machine};
use crate::backend::cpu::watch;
use crate::base::{Id, IdxVec};
use crate::kernel::{Argument, Kernel, Loop, MemId, Op, Reg};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, Block, BlockArg, InstBuilder, Signature, Type, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// What loops have in common: memory, and what tells when somebody is to be asked whether they are still wanted.
pub struct Fuel {
    /// Instructions until then.
    left: Variable,
    /// Leaves the function.
    halt: Block,
    /// Where memory of their own begins, and how much of it loops so far have taken.
    own: Value,
    taken: Cell<usize>,
}

impl Fuel {
    /// In the first block of a function whose steps run loops, of which the frame says where their memory is.
    pub fn new(builder: &mut FunctionBuilder, kernel: &Kernel, own: Value) -> Option<Fuel> {
        kernel.has_loops().then(|| {
            let fuel = Fuel { left: builder.declare_var(types::I64), halt: builder.create_block(), own, taken: Cell::new(0) };
            fuel.fill(builder);
            fuel
        })
    }
    /// Where so many bytes lie that are a loop's own.
    fn take(&self, builder: &mut FunctionBuilder, bytes: usize) -> Value {
        let before = self.taken.replace(self.taken.get() + bytes);
        builder.ins().iadd_imm_s(self.own, before as i64)
    }
    fn fill(&self, builder: &mut FunctionBuilder) {
        let all = builder.ins().iconst(types::I64, watch::UNASKED as i64);
        builder.def_var(self.left, all);
    }
    /// The way out, at the end of the function.
    pub fn halt(&self, builder: &mut FunctionBuilder, word: Type) {
        builder.set_cold_block(self.halt);
        builder.switch_to_block(self.halt);
        let none = builder.ins().iconst(word, 0);
        builder.ins().return_(&[none]);
    }
    /// Before a step of so many instructions.
    fn burn(&self, builder: &mut FunctionBuilder, instructions: usize) {
        let (ask, fill, go) = (builder.create_block(), builder.create_block(), builder.create_block());
        let left = builder.use_var(self.left);
        let left = builder.ins().iadd_imm_s(left, -(instructions as i64));
        builder.def_var(self.left, left);
        let empty = builder.ins().icmp_imm_s(IntCC::SignedLessThan, left, 0);
        builder.ins().brif(empty, ask, &[], go, &[]);
        builder.set_cold_block(ask);
        builder.switch_to_block(ask);
        let mut signature = Signature::new(builder.func.signature.call_conv);
        signature.returns.push(AbiParam::new(types::I8));
        let signature = builder.import_signature(signature);
        let address = builder.ins().iconst(types::I64, watch::over as *const () as i64);
        let call = builder.ins().call_indirect(signature, address, &[]);
        let over = builder.inst_results(call)[0];
        builder.ins().brif(over, self.halt, &[], fill, &[]);
        builder.set_cold_block(fill);
        builder.switch_to_block(fill);
        self.fill(builder);
        builder.ins().jump(go, &[]);
        builder.switch_to_block(go);
    }
}

/// A loop of a step that is done.
pub struct Left {
    /// Its carries.
    pub carries: Vec<Value>,
    /// Where its tables lie.
    addresses: IdxVec<MemId, Option<Value>>,
}

/// The loops of a step that are done.
pub type Done = FxHashMap<Reg, Left>;

impl Body<'_, '_> {
    /// The loop of an instruction: how many of its steps ran.
    pub fn looped(&mut self, r: Reg, inner: &Loop) -> Value {
        let (kernel, pool) = (&*inner.kernel, &self.start.pool.inner[&r]);
        let [head, done] = [(); 2].map(|()| self.builder.create_block());
        let steps = self.get(inner.steps);
        let begin: Vec<Value> = kernel.carries.iter().map(|carry| self.argument(inner, carry.mem)).collect();
        let mut constants = pool.loaded(self.builder, kernel);
        for (r, inst) in kernel.body.enumerate() {
            if let Op::Load(mem) = inst.op {
                constants.insert(r, self.argument(inner, mem));
            }
        }
        let addresses: IdxVec<MemId, Option<Value>> = kernel.mems.ids().map(|mem| self.table(inner, mem)).collect();
        for &(mem, at, r) in &inner.begin {
            let (value, table) = (self.get(r), addresses[mem].expect("memory of its own"));
            self.builder.ins().store(flags(), value, table, (at * kernel.mems[mem].dtype.size()) as i32);
        }
        let [t, ran] = [head, done].map(|block| self.builder.append_block_param(block, types::I64));
        let [now, last] = [head, done].map(|block| {
            let carry = |value: &Value| {
                let ty = self.builder.func.dfg.value_type(*value);
                self.builder.append_block_param(block, ty)
            };
            begin.iter().map(carry).collect::<Vec<Value>>()
        });
        let zero = self.builder.ins().iconst(types::I64, 0);
        let first = arguments(zero, &begin);
        let any = self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThan, steps, 0);
        self.builder.ins().brif(any, head, &first, done, &first);
        self.builder.switch_to_block(head);
        if let Some(fuel) = self.start.fuel {
            fuel.burn(self.builder, kernel.body.len());
        }
        let carries = now.into_iter().map(Some).collect();
        let start = Start { addresses, carries, step: t, constants: &constants, pool, fuel: self.start.fuel };
        let values = emit(self.builder, kernel, &kernel.needed(), &start);
        let value = |r: Reg| values[r].expect("a value that the loop hands on");
        for store in &kernel.stores {
            let (table, number) = (start.addresses[store.mem].expect("memory of its own"), value(store.at.expect("a number")));
            let address = body::element(self.builder, &kernel.mems[store.mem], table, number);
            self.builder.ins().store(flags(), value(store.value), address, 0);
        }
        let next = self.builder.ins().iadd_imm_s(t, 1);
        let handed = arguments(next, &kernel.carries.iter().map(|carry| value(carry.next)).collect::<Vec<Value>>());
        if let Some(stop) = kernel.stop {
            let go = self.builder.create_block();
            self.builder.ins().brif(value(stop), done, &handed, go, &[]);
            self.builder.switch_to_block(go);
        }
        let more = self.builder.ins().icmp(IntCC::SignedLessThan, next, steps);
        self.builder.ins().brif(more, head, &handed, done, &handed);
        self.builder.switch_to_block(done);
        self.done.insert(r, Left { carries: last, addresses: start.addresses });
        ran
    }

    /// The value that an operand of a loop is.
    fn argument(&self, inner: &Loop, mem: MemId) -> Value {
        match inner.operands[mem.idx()] {
            Argument::Value(r) => self.get(r),
            Argument::Table(..) | Argument::Own | Argument::Left(..) => panic!("m{} is a table", mem.0),
        }
    }
    /// Where the first element of an operand of a loop lies, which is a table.
    fn table(&mut self, inner: &Loop, mem: MemId) -> Option<Value> {
        let of = &inner.kernel.mems[mem];
        match inner.operands[mem.idx()] {
            Argument::Value(_) => None,
            Argument::Own => Some(self.start.fuel.expect("a step with loops").take(self.builder, of.own())),
            Argument::Left(r, of) => self.done[&r].addresses[of],
            Argument::Table(table, first) => {
                let (address, bytes) = (self.start.addresses[table].expect("the address of a table that is read"), first * of.dtype.size());
                Some(if bytes == 0 { address } else { self.builder.ins().iadd_imm_s(address, bytes as i64) })
            }
        }
    }
    /// An element of what a loop left in memory of its own.
    pub fn left(&mut self, of: Reg, mem: MemId, number: Reg) -> Value {
        let (table, kind) = (self.done[&of].addresses[mem].expect("memory of its own"), &self.kernel.loop_at(of).kernel.mems[mem]);
        let address = body::element(self.builder, kind, table, self.get(number));
        self.builder.ins().load(machine(kind.dtype), flags(), address, 0)
    }
}

fn arguments(first: Value, others: &[Value]) -> Vec<BlockArg> {
    std::iter::once(&first).chain(others).map(|&v| BlockArg::Value(v)).collect()
}
