//! Loop distribution (Allen and Kennedy, "Optimizing compilers for modern architectures", 2001, section 2.4): a kernel of one lane as several, each of
//! which runs all steps of a block before the next one begins.
//!
//! ```text
//! h ← a·h + x²           for all steps:     u = x·x                 steps are lanes
//! s ← s + log(h)         in order:          h ← a·h + u;   v = h    what waits for the step before
//!                        for all steps:     w = log(v)              steps are lanes
//!                        in order:          s ← s + w
//! ```
//!
//! What one step hands to the next stays in order; what no step waits for is computed for all steps of the block at once. Values that one stage makes
//! and another one uses lie in memory between. Each instruction gives the bits that it gave.

use super::kir::{Bin, Carry, CarryId, Inst, Kernel, Lane, Mem, MemId, Op, Reg, Un};
use super::record::Builder;
use crate::base::{Id, IdxVec};
use crate::types::DType;
use rustc_hash::FxHashMap;

/// One of the kernels.
pub struct Stage {
    /// It.
    pub kernel: Kernel,
    /// The steps are its lanes.
    pub lanes: bool,
    /// Where its operands lie.
    pub operands: Vec<Source>,
}

/// An operand of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// One of the kernel's.
    Operand(MemId),
    /// Between stages: which of these values.
    Between(usize),
}

/// A kernel in stages.
pub struct Distributed {
    /// In order.
    pub stages: Vec<Stage>,
    /// Dtypes of the values between them, of which there is one for each step.
    pub between: Vec<DType>,
    /// Per instruction of the kernel: it waits for the step before.
    pub waits: IdxVec<Reg, bool>,
}

impl Distributed {
    /// Nanoseconds, about, that a step of the kernel waits for the one before: the longest chain of what depends on it.
    pub fn chain(&self, kernel: &Kernel) -> f64 {
        let mut till: IdxVec<Reg, f64> = IdxVec::new();
        for (r, inst) in kernel.body.enumerate() {
            let before = inst.op.uses().iter().filter(|&&u| self.waits[u]).map(|&u| till[u]).fold(0.0, f64::max);
            till.push(before + if self.waits[r] { latency(inst) } else { 0.0 });
        }
        kernel.carries.iter().map(|carry| till[carry.next]).fold(0.0, f64::max)
    }
}

/// Nanoseconds, about, until an instruction's value is there.
fn latency(inst: &Inst) -> f64 {
    match inst.op {
        Op::Call(..) => 20.0,
        Op::Bin(Bin::Div, ..) | Op::Un(Un::Sqrt, _) => 4.0,
        Op::Bin(bin, ..) if bin.divides_integers() => 5.0,
        Op::Carry(_) | Op::Const(_) | Op::Load(_) => 0.0,
        _ if inst.dtype.is_float() => 1.0,
        _ => 0.4,
    }
}

/// So many carries are told apart.
const CARRIES: usize = 64;

/// The stages of a kernel of one lane; `lane` is an operand whose elements at the steps are those of lanes, where it can be one. `None` where all is one
/// stage, or the kernel runs with one lane alone.
pub fn distributed(kernel: &Kernel, lane: &dyn Fn(MemId) -> Option<Mem>) -> Option<Distributed> {
    if kernel.is_single() || kernel.carries.is_empty() || kernel.carries.len() > CARRIES {
        return None;
    }
    let needed = kernel.needed();
    let wide: IdxVec<MemId, Option<Mem>> = kernel.mems.ids().map(lane).collect();
    let waits = Waits::of(kernel, &needed);
    let levels = Levels::of(kernel, &needed, &wide, &waits)?;
    let mut split = Split { kernel, needed: &needed, wide: &wide, levels: &levels, between: FxHashMap::default(), dtypes: vec![] };
    split.name_values();
    let stages: Vec<Stage> = (0..=levels.last).filter_map(|level| split.stage(level)).collect();
    let any = stages.iter().any(|stage| stage.lanes);
    let waits = kernel.body.ids().map(|r| waits.group[r].is_some()).collect();
    (any && stages.len() > 1).then(|| Distributed { stages, between: split.dtypes, waits })
}

/// What waits for the step before: the carries that depend on each other, and the instructions between.
struct Waits {
    /// Per instruction: the first of the carries that depend on each other and on it.
    group: IdxVec<Reg, Option<usize>>,
    /// Per carry the same.
    of_carry: Vec<Option<usize>>,
    /// The instructions and carries of each.
    groups: Vec<(Vec<Reg>, Vec<usize>)>,
}

impl Waits {
    fn of(kernel: &Kernel, needed: &IdxVec<Reg, bool>) -> Waits {
        let n = kernel.carries.len();
        // The carries that an instruction depends on in this step, and those whose next values depend on it.
        let (mut from, mut to): (IdxVec<Reg, u64>, IdxVec<Reg, u64>) = (IdxVec::new(), kernel.body.iter().map(|_| 0).collect());
        for inst in kernel.body.iter() {
            let own = if let Op::Carry(carry) = inst.op { 1 << carry.idx() } else { 0 };
            from.push(inst.op.uses().iter().fold(own, |all, &r| all | from[r]));
        }
        kernel.carries.iter().enumerate().for_each(|(c, carry)| to[carry.next] |= 1 << c);
        for (r, inst) in kernel.body.enumerate().rev() {
            inst.op.uses().iter().for_each(|&u| to[u] |= to[r]);
        }
        // Per carry: those whose next values depend on it, at once or by way of others.
        let at_once = |c: usize| kernel.carries.iter().enumerate().fold(0, |all, (d, carry)| all | (from[carry.next] >> c & 1) << d);
        let mut reach: Vec<u64> = (0..n).map(at_once).collect();
        for through in 0..n {
            for c in 0..n {
                if reach[c] >> through & 1 == 1 {
                    reach[c] |= reach[through];
                }
            }
        }
        let of_carry: Vec<Option<usize>> = (0..n).map(|c| (0..n).find(|&d| reach[c] >> d & 1 == 1 && reach[d] >> c & 1 == 1)).collect();
        let all = |group: usize| (0..n).filter(|&c| of_carry[c] == Some(group)).collect::<Vec<usize>>();
        let mut groups: Vec<(Vec<Reg>, Vec<usize>)> = (0..n).map(|group| (vec![], all(group))).collect();
        let sets: Vec<u64> = groups.iter().map(|(_, carries)| carries.iter().fold(0, |set, c| set | 1 << c)).collect();
        let of_reg = |r: Reg| (0..n).find(|&group| needed[r] && from[r] & sets[group] != 0 && to[r] & sets[group] != 0);
        let group: IdxVec<Reg, Option<usize>> = kernel.body.ids().map(of_reg).collect();
        group.enumerate().filter_map(|(r, group)| Some((r, (*group)?))).for_each(|(r, group)| groups[group].0.push(r));
        groups.retain(|(_, carries)| !carries.is_empty());
        Waits { group, of_carry, groups }
    }
}

/// In which stage everything is: even ones have steps as lanes, odd ones run in order.
struct Levels {
    of: IdxVec<Reg, usize>,
    /// Per carry.
    carries: Vec<usize>,
    last: usize,
}

impl Levels {
    /// `None` where they find no end, which would be a fault in what waits for what.
    fn of(kernel: &Kernel, needed: &IdxVec<Reg, bool>, wide: &IdxVec<MemId, Option<Mem>>, waits: &Waits) -> Option<Levels> {
        let mut levels = Levels { of: kernel.body.iter().map(|_| 0).collect(), carries: vec![1; kernel.carries.len()], last: 0 };
        let most = 2 * (kernel.body.len() + kernel.carries.len());
        (0..=most).find(|_| !levels.rise(kernel, needed, wide, waits))?;
        let stores = kernel.stores.iter().map(|store| levels.store(kernel, wide, store.mem, store.value));
        levels.last = levels.of.iter().copied().chain(levels.carries.iter().copied()).chain(stores).max().unwrap_or(0);
        Some(levels)
    }
    /// Puts everything behind what it depends on, as far as that is known; true where something has risen.
    fn rise(&mut self, kernel: &Kernel, needed: &IdxVec<Reg, bool>, wide: &IdxVec<MemId, Option<Mem>>, waits: &Waits) -> bool {
        let before = (self.of.clone(), self.carries.clone());
        for (r, inst) in kernel.body.enumerate().filter(|(r, _)| needed[*r]) {
            let ordered = match inst.op {
                Op::Carry(_) | Op::Step => true,
                Op::Load(m) | Op::Gather(m, _) => waits.group[r].is_some() || wide[m].is_none(),
                _ => waits.group[r].is_some(),
            };
            let own = if let Op::Carry(carry) = inst.op { self.carries[carry.idx()] } else { usize::from(ordered) };
            self.of[r] = inst.op.uses().iter().map(|&u| self.seen(kernel, u, ordered)).fold(own, usize::max);
        }
        let next: Vec<usize> = kernel.carries.iter().map(|carry| self.seen(kernel, carry.next, true)).collect();
        // What depends on each other is one stage.
        for (regs, carries) in &waits.groups {
            let level = regs.iter().map(|&r| self.of[r]).chain(carries.iter().map(|&c| next[c])).max().unwrap_or(1);
            regs.iter().for_each(|&r| self.of[r] = level);
            carries.iter().for_each(|&c| self.carries[c] = level);
        }
        for (c, &next) in next.iter().enumerate().filter(|(c, _)| waits.of_carry[*c].is_none()) {
            self.carries[c] = self.carries[c].max(next);
        }
        before.0 != self.of || before.1 != self.carries
    }
    /// The first stage, in order or not, that can use a value.
    fn seen(&self, kernel: &Kernel, r: Reg, ordered: bool) -> usize {
        match kernel.body[r].op {
            Op::Const(_) => usize::from(ordered),
            _ if (self.of[r] % 2 == 1) == ordered => self.of[r],
            _ => self.of[r] + 1,
        }
    }
    /// The stage that stores a value.
    fn store(&self, kernel: &Kernel, wide: &IdxVec<MemId, Option<Mem>>, mem: MemId, value: Reg) -> usize {
        let lanes = wide[mem].as_ref().is_some_and(|mem| mem.lane.varies());
        if lanes { self.of[value] } else { self.seen(kernel, value, true) }
    }
}

/// A kernel on its way into stages.
struct Split<'a> {
    kernel: &'a Kernel,
    needed: &'a IdxVec<Reg, bool>,
    wide: &'a IdxVec<MemId, Option<Mem>>,
    levels: &'a Levels,
    /// Which value between stages an instruction's is.
    between: FxHashMap<Reg, usize>,
    dtypes: Vec<DType>,
}

impl Split<'_> {
    /// True for what each stage makes for itself.
    fn is_made_again(&self, r: Reg) -> bool {
        match self.kernel.body[r].op {
            Op::Const(_) => true,
            Op::Load(m) => self.wide[m].is_some() && self.kernel.stores.iter().all(|s| s.mem != m),
            _ => false,
        }
    }
    /// The values that other stages use than the one that makes them.
    fn name_values(&mut self) {
        let mut used: Vec<(usize, Reg)> = vec![];
        for (r, inst) in self.kernel.body.enumerate().filter(|(r, _)| self.needed[*r]) {
            used.extend(inst.op.uses().iter().map(|&u| (self.levels.of[r], u)));
        }
        used.extend(self.kernel.carries.iter().zip(&self.levels.carries).map(|(carry, &level)| (level, carry.next)));
        used.extend(self.kernel.stores.iter().map(|s| (self.levels.store(self.kernel, self.wide, s.mem, s.value), s.value)));
        for (level, r) in used {
            if level != self.levels.of[r] && !self.is_made_again(r) && !self.between.contains_key(&r) {
                self.between.insert(r, self.dtypes.len());
                self.dtypes.push(self.kernel.dtype(r));
            }
        }
    }
    /// The kernel of a stage; `None` where there is nothing to do.
    fn stage(&self, level: usize) -> Option<Stage> {
        let mut making = Making {
            split: self,
            level,
            lanes: level.is_multiple_of(2),
            builder: Builder::new(),
            mems: FxHashMap::default(),
            operands: vec![],
            image: FxHashMap::default(),
        };
        making.carries();
        for (r, inst) in self.kernel.body.enumerate() {
            if self.needed[r] && self.levels.of[r] == level && !matches!(inst.op, Op::Carry(_) | Op::Const(_) | Op::Load(_)) {
                making.instruction(r, inst);
            }
        }
        making.ends();
        let Making { builder, operands, lanes, .. } = making;
        let kernel = builder.finish();
        (!kernel.stores.is_empty() || !kernel.carries.is_empty()).then_some(Stage { kernel, lanes, operands })
    }
}

/// A stage under construction.
struct Making<'a, 'b> {
    split: &'a Split<'b>,
    level: usize,
    lanes: bool,
    builder: Builder,
    mems: FxHashMap<Source, MemId>,
    operands: Vec<Source>,
    image: FxHashMap<Reg, Reg>,
}

impl Making<'_, '_> {
    fn mem(&mut self, source: Source) -> MemId {
        if let Some(&known) = self.mems.get(&source) {
            return known;
        }
        let mem = match source {
            Source::Operand(m) => {
                let wide = self.split.wide[m].as_ref().filter(|_| self.lanes);
                // Where there is one lane, how operands lie for others is nobody's business.
                let narrow = || Mem { lane: Lane::Uniform, ..self.split.kernel.mems[m].clone() };
                Mem { beside: None, ..wide.cloned().unwrap_or_else(narrow) }
            }
            Source::Between(at) => {
                let dtype = self.split.dtypes[at];
                let lane = if self.lanes { Lane::Unit } else { Lane::Uniform };
                Mem { stride: (!self.lanes).then_some(dtype.size() as i32), ..Mem::new(dtype, lane) }
            }
        };
        let made = self.builder.operand(mem);
        self.operands.push(source);
        self.mems.insert(source, made);
        made
    }
    fn own_carries(&self) -> Vec<(CarryId, Carry)> {
        let own = self.split.kernel.carries.enumerate().filter(|(c, _)| self.split.levels.carries[c.idx()] == self.level);
        own.map(|(c, carry)| (c, carry.clone())).collect()
    }
    /// What is handed on here. All carries of the stage are there before anything else.
    fn carries(&mut self) {
        let mut regs = FxHashMap::default();
        for (c, carry) in self.own_carries() {
            let mem = self.mem(Source::Operand(carry.mem));
            regs.insert(c, self.builder.carry(mem).1);
        }
        for (r, inst) in self.split.kernel.body.enumerate() {
            if let Op::Carry(c) = inst.op
                && let Some(&made) = regs.get(&c)
            {
                self.image.insert(r, made);
            }
        }
    }
    /// A value as this stage has it.
    fn value(&mut self, r: Reg) -> Reg {
        if let Some(&known) = self.image.get(&r) {
            return known;
        }
        let inst = &self.split.kernel.body[r];
        let made = match inst.op {
            Op::Const(bits) => self.builder.raw(inst.dtype, bits),
            Op::Load(m) if self.split.is_made_again(r) || self.split.levels.of[r] == self.level => {
                let mem = self.mem(Source::Operand(m));
                self.builder.load(mem)
            }
            _ => {
                let mem = self.mem(Source::Between(self.split.between[&r]));
                self.builder.load(mem)
            }
        };
        self.image.insert(r, made);
        made
    }
    fn instruction(&mut self, r: Reg, inst: &Inst) {
        let uses = inst.op.uses();
        let args: Vec<Reg> = uses.iter().map(|&u| self.value(u)).collect();
        let arg = |u: Reg| uses.iter().position(|&x| x == u).map_or(u, |at| args[at]);
        let made = match inst.op {
            Op::Gather(m, index) => {
                let table = self.mem(Source::Operand(m));
                self.builder.gather(table, arg(index))
            }
            _ => self.builder.again(&inst.op.of(arg), inst.dtype),
        };
        self.image.insert(r, made);
    }
    /// What the stage hands on and stores: for the kernel, and for other stages.
    fn ends(&mut self) {
        let kernel = self.split.kernel;
        for (at, (_, carry)) in self.own_carries().into_iter().enumerate() {
            let next = self.value(carry.next);
            self.builder.set_next(Id::new(at), next);
        }
        for store in kernel.stores.iter() {
            if self.split.levels.store(kernel, self.split.wide, store.mem, store.value) == self.level {
                let value = self.value(store.value);
                let mem = self.mem(Source::Operand(store.mem));
                self.builder.store(mem, value);
            }
        }
        let mut given: Vec<(Reg, usize)> = self.split.between.iter().map(|(r, at)| (*r, *at)).collect();
        given.retain(|(r, _)| self.split.levels.of[*r] == self.level);
        given.sort_unstable();
        for (r, at) in given {
            let value = self.value(r);
            let mem = self.mem(Source::Between(at));
            self.builder.store(mem, value);
        }
    }
}

#[cfg(test)]
mod tests;
