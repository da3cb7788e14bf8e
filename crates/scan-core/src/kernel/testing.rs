//! Random kernels with operands, for the tests of engines. A seed and the options tell the case.

mod looped;
pub(crate) mod random;
mod rows;

use super::interp::{self, Operand};
use super::{Bin, Carry, CarryId, Cmp, HostFn, Inst, Kernel, Lane, Mem, MemId, Op, Reg, Store, Un};
use crate::types::{DType, dtype::DTYPES};
use random::Random;
use rows::Rows;
use std::ops::RangeInclusive;

/// A kernel with what one call of it is given.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its seed.
    pub seed: u64,
    /// The kernel.
    pub kernel: Kernel,
    /// Memories, each with elements of one dtype.
    pub memories: Vec<Vec<u8>>,
    /// The dtype of each memory.
    pub dtypes: Vec<DType>,
    /// Where the kernel's operands lie.
    pub operands: Vec<Operand>,
    /// Number of lanes.
    pub lanes: usize,
    /// Number of steps.
    pub steps: usize,
    /// The number of the first step.
    pub first: i64,
}

/// What cases look like.
#[derive(Clone, Debug)]
pub struct Options {
    /// Dtypes of values, besides the bools that comparisons give. The number of the step is used where i64 is among them.
    pub dtypes: Vec<DType>,
    /// Whether kernels stop by themselves (those run with one lane).
    pub stop: bool,
    /// Whether kernels call functions of the machine (where f64 is among the dtypes).
    pub calls: bool,
    /// Whether operands overlap in unusual ways as well: written twice in a step, or read at a row that stays while writes move.
    pub overlaps: bool,
    /// Whether kernels read from tables (where i64 is among the dtypes).
    pub tables: bool,
    /// Whether kernels that run with one lane write elements of tables.
    pub scatters: bool,
    /// Whether steps run loops, in kernels of one lane (where i64 is among the dtypes).
    pub loops: bool,
    /// Number of computing instructions.
    pub insts: RangeInclusive<usize>,
    /// Number of lanes.
    pub lanes: RangeInclusive<usize>,
    /// Number of steps.
    pub steps: RangeInclusive<usize>,
}

impl Default for Options {
    fn default() -> Options {
        let dtypes = DTYPES.iter().map(|d| d.0).collect();
        Options {
            dtypes,
            stop: false,
            calls: true,
            overlaps: false,
            tables: true,
            scatters: false,
            loops: false,
            insts: 0..=30,
            lanes: 1..=70,
            steps: 1..=6,
        }
    }
}

impl Case {
    /// The memories after the interpreter has run the kernel, and the number of steps that ran.
    pub fn expected(&self) -> (Vec<Vec<u8>>, usize) {
        let mut memories = self.memories.clone();
        let ran = interp::run(&self.kernel, &mut memories, &self.operands, self.lanes, self.steps, self.first);
        (memories, ran)
    }
    /// The first difference between two states of the memories; NaNs are equal to each other.
    pub fn difference(&self, expected: &[Vec<u8>], found: &[Vec<u8>]) -> Option<String> {
        for (m, dtype) in self.dtypes.iter().enumerate() {
            let size = dtype.size();
            for (i, (e, f)) in expected[m].chunks(size).zip(found[m].chunks(size)).enumerate() {
                if e != f && !(is_nan(*dtype, e) && is_nan(*dtype, f)) {
                    return Some(format!("memory {m} ({dtype}), element {i}: expected {e:02x?}, found {f:02x?}"));
                }
            }
        }
        None
    }
    /// The case as text.
    pub fn show(&self) -> String {
        let operands: String = self.operands.iter().enumerate().map(|(i, o)| format!("m{i} at {o:?}\n")).collect();
        let Case { seed, lanes, steps, first, kernel, .. } = self;
        format!("seed {seed}: {lanes} lanes, {steps} steps from {first}\n{operands}{kernel}")
    }
}

fn is_nan(dtype: DType, bytes: &[u8]) -> bool {
    match dtype {
        DType::F32 => f32::from_le_bytes(bytes.try_into().expect("four bytes")).is_nan(),
        DType::F64 => f64::from_le_bytes(bytes.try_into().expect("eight bytes")).is_nan(),
        _ => false,
    }
}

/// The case of a seed.
pub fn case(seed: u64, options: &Options) -> Case {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let lanes = if options.stop { 1 } else { random.within(&options.lanes) };
    let case = Case {
        seed,
        kernel: Kernel::default(),
        memories: vec![],
        dtypes: vec![],
        operands: vec![],
        lanes,
        steps: random.within(&options.steps),
        first: random.below(5) as i64 - 2,
    };
    let mut gen_ = Generator { random, options, case, pending: vec![], depth: 0 };
    gen_.inputs();
    for _ in 0..gen_.random.within(&options.insts) {
        gen_.compute();
    }
    if options.loops {
        gen_.looped();
    }
    gen_.outputs();
    gen_.case
}

struct Generator<'a> {
    random: Random,
    options: &'a Options,
    case: Case,
    /// Operands that a store is still to be made for.
    pending: Vec<MemId>,
    /// In so many loops of a step.
    depth: usize,
}

impl Generator<'_> {
    fn dtype(&mut self) -> DType {
        self.random.pick(&self.options.dtypes)
    }

    fn lane(&mut self) -> Lane {
        match self.random.below(15) {
            0..=2 => Lane::Apart(self.random.pick(&[2, 3, 7, -1, -4])),
            3..=6 => Lane::Uniform,
            _ => Lane::Unit,
        }
    }

    /// Bytes behind an operand where others of its kind are: those whose lanes lie apart leave room between them.
    fn shares(&mut self, dtype: DType, lane: Lane) -> &'static [usize] {
        let roomy = matches!(lane, Lane::Apart(n) if n.abs() > 1) && self.random.one_in(2);
        match (roomy, dtype.size()) {
            (false, _) => &[0],
            (_, 1) => &[0, 1],
            (_, 2) => &[0, 2],
            (_, 4) => &[0, 4],
            _ => &[0, 8],
        }
    }

    /// A new memory of as many rows as all steps together see, where each sees `span`.
    fn rows(&mut self, dtype: DType, lane: Lane, span: usize, signs: &[isize]) -> Rows {
        let (size, random) = (dtype.size(), &mut self.random);
        let (before, behind) = Mem::new(dtype, lane).row(self.case.lanes);
        let lead = random.below(3) * size + before.unsigned_abs();
        let room = (lane.elements().unsigned_abs().max(1) - 1) * size;
        let bytes = (behind - before).unsigned_abs() + room + random.below(3) * size;
        let sign = random.pick(signs);
        let count = if sign == 0 { span } else { self.case.steps - 1 + span };
        let elements = (lead + bytes * count) / size + random.below(2);
        let memory: Vec<u8> = (0..elements).flat_map(|_| random.element(dtype).to_le_bytes()[..size].to_vec()).collect();
        self.case.memories.push(memory);
        self.case.dtypes.push(dtype);
        Rows { memory: self.case.memories.len() - 1, lead, bytes, last: count - 1, stride: sign * bytes as isize }
    }

    fn mem(&mut self, dtype: DType, lane: Lane, operand: Operand) -> MemId {
        self.case.operands.push(operand);
        self.case.kernel.mems.push(Mem::new(dtype, lane))
    }

    /// Often tells the kernel how far an operand moves.
    fn know_stride(&mut self, mem: MemId) {
        if self.case.seed.is_multiple_of(3) && self.random.one_in(2) {
            let stride = self.case.operands[mem.0 as usize].stride;
            self.case.kernel.mems[mem].stride = i32::try_from(stride).ok();
        }
    }

    /// Reads elements beside those of an operand, too, where there are such.
    fn beside(&mut self, other: MemId) {
        let (mem, operand) = (self.case.kernel.mems[other].clone(), self.case.operands[other.0 as usize]);
        let bytes = self.random.pick(&[1, 2, -1]) * mem.dtype.size() as isize;
        let (first, span) = (operand.offset as isize + bytes, operand.stride * (self.case.steps as isize - 1));
        let (before, behind) = mem.row(self.case.lanes);
        let ends = [first + span.min(0) + before, first + span.max(0) + behind];
        if ends[0] >= 0 && ends[1] as usize <= self.case.memories[operand.memory].len() {
            let new = self.mem(mem.dtype, mem.lane, Operand { offset: first as usize, ..operand });
            self.case.kernel.mems[new] = Mem { beside: Some((other, bytes as i32)), ..mem };
            self.push(Op::Load(new), self.case.kernel.mems[new].dtype);
        }
    }

    fn push(&mut self, op: Op, dtype: DType) -> Reg {
        self.case.kernel.body.push(Inst { op, dtype })
    }

    fn inputs(&mut self) {
        for _ in 0..1 + self.random.below(3) {
            let (dtype, lane) = (self.dtype(), self.lane());
            let rows = self.rows(dtype, lane, 1, &[1, 0, -1]);
            let mem = self.mem(dtype, lane, rows.operand(0));
            self.know_stride(mem);
            self.push(Op::Load(mem), dtype);
            if self.random.one_in(3) {
                self.beside(mem);
            }
        }
        for _ in 0..self.random.below(3) {
            let (dtype, lane) = (self.dtype(), self.lane());
            let rows = self.rows(dtype, lane, 1, &[0]);
            for &bytes in self.shares(dtype, lane) {
                let mem = self.mem(dtype, lane, rows.behind(0, bytes));
                let id = self.case.kernel.carries.push(Carry { mem, next: Reg(0) });
                let value = self.push(Op::Carry(id), dtype);
                self.case.kernel.carries[id].next = value;
            }
        }
        for _ in 0..self.random.below(3) {
            self.state();
        }
        if self.options.dtypes.contains(&DType::I64) {
            self.push(Op::Step, DType::I64);
        }
    }

    /// Rows that are read and written, as the states of loops are. Lanes follow each other in any order, so no step may
    /// overwrite what one element of all lanes is read from.
    fn state(&mut self) {
        let (dtype, lane) = (self.dtype(), self.lane());
        let plain = lane == Lane::Uniform && self.case.lanes > 1;
        let (reads, writes): (&[usize], &[usize]) = if plain {
            (&[0], &[1])
        } else {
            self.random.pick(&[(&[0], &[1]), (&[0, 1], &[2]), (&[0], &[0]), (&[1], &[0, 2]), (&[0, 1], &[1, 0])])
        };
        let rows = self.rows(dtype, lane, 3, if plain { &[1, -1] } else { &[1, 1, 0, -1] });
        for &bytes in self.shares(dtype, lane) {
            for &row in reads {
                let mem = self.mem(dtype, lane, rows.behind(row, bytes));
                self.push(Op::Load(mem), dtype);
            }
            for &row in writes {
                let mem = self.mem(dtype, lane, rows.behind(row, bytes));
                self.pending.push(mem);
            }
        }
        if self.options.overlaps && !plain && self.random.one_in(3) {
            let again = self.random.pick(writes);
            let mem = self.mem(dtype, lane, rows.operand(again));
            self.pending.push(mem);
        }
        if self.options.overlaps && !plain && self.random.one_in(2) {
            let stays = self.random.below(3);
            let mem = self.mem(dtype, lane, Operand { stride: 0, ..rows.operand(stays) });
            self.push(Op::Load(mem), dtype);
        }
    }

    /// A value of a dtype: one of those that are there, more often a late one, or a constant.
    fn value(&mut self, dtype: DType) -> Reg {
        let kernel = &self.case.kernel;
        let found: Vec<Reg> = kernel.body.enumerate().filter(|(_, i)| i.dtype == dtype).map(|(r, _)| r).collect();
        if found.is_empty() || self.random.one_in(8) {
            let bits = self.random.element(dtype);
            return self.push(Op::Const(bits), dtype);
        }
        let late = found.len() - found.len().min(3);
        if self.random.one_in(2) { self.random.pick(&found[late..]) } else { self.random.pick(&found) }
    }

    /// A value of a dtype that is the same in all lanes.
    fn uniform(&mut self, dtype: DType) -> Reg {
        let varying = self.case.kernel.varying();
        let found: Vec<Reg> = varying.enumerate().filter(|(r, v)| !**v && self.case.kernel.dtype(*r) == dtype).map(|(r, _)| r).collect();
        if found.is_empty() {
            let bits = self.random.element(dtype);
            return self.push(Op::Const(bits), dtype);
        }
        self.random.pick(&found)
    }

    fn compute(&mut self) {
        let dtype = self.dtype();
        match self.random.below(17) {
            0..=2 => self.unary(dtype),
            3..=7 => self.binary(dtype),
            8 | 9 if dtype.is_float() => {
                let (x, y, z) = (self.value(dtype), self.value(dtype), self.value(dtype));
                self.push(Op::Fma(x, y, z), dtype);
            }
            8..=10 => {
                let op = self.random.pick(&[Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le]);
                let (x, y) = (self.value(dtype), self.value(dtype));
                self.push(Op::Cmp(op, x, y), DType::Bool);
            }
            11 | 12 => {
                let (c, x, y) = (self.value(DType::Bool), self.value(dtype), self.value(dtype));
                self.push(Op::Select(c, x, y), dtype);
            }
            13 => {
                let from = self.dtype();
                let x = self.value(from);
                self.push(Op::Convert(x), dtype);
            }
            14 => self.bits(dtype),
            15 if self.options.loops && self.random.one_in(2) => self.looped(),
            15 => self.gather(dtype),
            _ => self.call(),
        }
    }

    /// An element of a table, by a number that may lie outside.
    fn gather(&mut self, dtype: DType) {
        if !self.options.tables || self.depth > 0 || !self.options.dtypes.contains(&DType::I64) {
            return;
        }
        let (table, size) = (1 + self.random.below(9), dtype.size());
        let rows = self.rows(dtype, Lane::Uniform, 1, &[0]);
        let more: Vec<u8> = (0..table).flat_map(|_| self.random.element(dtype).to_le_bytes()[..size].to_vec()).collect();
        self.case.memories[rows.memory].extend(more);
        let mem = self.mem(dtype, Lane::Uniform, rows.operand(0));
        self.case.kernel.mems[mem].table = table;
        let mut index = self.value(DType::I64);
        if self.random.one_in(2) {
            let mask = self.push(Op::Const(7), DType::I64);
            index = self.push(Op::Bin(Bin::And, index, mask), DType::I64);
        }
        self.push(Op::Gather(mem, index), dtype);
    }

    fn unary(&mut self, dtype: DType) {
        let op = match dtype {
            DType::Bool => Un::Not,
            d if d.is_float() => self.random.pick(&[Un::Neg, Un::Abs, Un::Sqrt, Un::Floor, Un::Ceil, Un::Trunc, Un::Round]),
            _ => self.random.pick(&[Un::Neg, Un::Not]),
        };
        let x = self.value(dtype);
        self.push(Op::Un(op, x), dtype);
    }

    fn binary(&mut self, dtype: DType) {
        let op = match dtype {
            DType::Bool => self.random.pick(&[Bin::And, Bin::Or, Bin::Xor]),
            d if d.is_float() => self.random.pick(&[Bin::Add, Bin::Sub, Bin::Mul, Bin::Div]),
            _ if self.random.one_in(4) => self.random.pick(&[Bin::FloorDiv, Bin::Mod, Bin::Fmod]),
            _ => self.random.pick(&[Bin::Add, Bin::Sub, Bin::Mul, Bin::And, Bin::Or, Bin::Xor, Bin::Shl, Bin::Shr]),
        };
        let (x, mut y) = (self.value(dtype), self.value(dtype));
        if matches!(op, Bin::Shl | Bin::Shr) {
            let mask = self.push(Op::Const(8 * dtype.size() as u64 - 1), dtype);
            y = self.push(Op::Bin(Bin::And, y, mask), dtype);
        }
        self.push(Op::Bin(op, x, y), dtype);
    }

    /// The bits of a float (of which NaN, that has many, is kept away), or a float from bits.
    fn bits(&mut self, dtype: DType) {
        let partners = self.options.dtypes.iter().copied().filter(|d| d.size() == dtype.size() && d.is_float() != dtype.is_float());
        let partners: Vec<DType> = partners.filter(|_| dtype.size() >= 4).collect();
        if partners.is_empty() {
            return;
        }
        let to = self.random.pick(&partners);
        let mut x = self.value(dtype);
        if dtype.is_float() {
            let (number, zero) = (self.push(Op::Cmp(Cmp::Eq, x, x), DType::Bool), self.push(Op::Const(0), dtype));
            x = self.push(Op::Select(number, x, zero), dtype);
        }
        self.push(Op::Bits(x), to);
    }

    fn call(&mut self) {
        if !self.options.calls || !self.options.dtypes.contains(&DType::F64) {
            return;
        }
        let f = self.random.pick(HostFn::ALL);
        let args = (0..f.arity()).map(|_| self.value(DType::F64)).collect();
        self.push(Op::Call(f, args), DType::F64);
    }

    fn outputs(&mut self) {
        for _ in 0..1 + self.random.below(3) {
            let (dtype, lane) = (self.dtype(), self.lane());
            let rows = self.rows(dtype, lane, 1, &[1, 0, -1]);
            for &bytes in self.shares(dtype, lane) {
                let mem = self.mem(dtype, lane, rows.behind(0, bytes));
                self.know_stride(mem);
                self.pending.push(mem);
            }
        }
        if self.options.scatters && self.case.lanes == 1 {
            self.scatters();
        }
        for mem in std::mem::take(&mut self.pending) {
            let value = self.fitting(mem);
            self.case.kernel.stores.push(Store { mem, value, at: None });
        }
        for id in self.case.kernel.carries.ids().collect::<Vec<CarryId>>() {
            self.case.kernel.carries[id].next = self.fitting(self.case.kernel.carries[id].mem);
        }
        if self.options.stop {
            self.case.kernel.stop = Some(self.stop());
        }
    }

    /// Writes elements of tables, by numbers that may lie outside.
    fn scatters(&mut self) {
        for mem in self.case.kernel.mems.ids().filter(|&m| self.case.kernel.mems[m].table > 0).collect::<Vec<_>>() {
            for _ in 0..self.random.below(3) {
                self.case.kernel.mems[mem].stride = Some(0);
                let at = Some(self.uniform(DType::I64));
                let value = self.fitting(mem);
                self.case.kernel.stores.push(Store { mem, value, at });
            }
        }
    }

    /// A value that may be written to an operand.
    fn fitting(&mut self, mem: MemId) -> Reg {
        let Mem { dtype, lane, .. } = self.case.kernel.mems[mem];
        if lane == Lane::Uniform { self.uniform(dtype) } else { self.value(dtype) }
    }

    /// Some step is reached, or some bool holds.
    fn stop(&mut self) -> Reg {
        let steps: Vec<Reg> = self.case.kernel.body.enumerate().filter(|(_, i)| i.op == Op::Step).map(|(r, _)| r).collect();
        let Some(&step) = steps.first().filter(|_| self.random.one_in(2)) else { return self.value(DType::Bool) };
        let limit = self.case.first + self.random.below(self.case.steps + 2) as i64;
        let limit = self.push(Op::Const(limit as u64), DType::I64);
        self.push(Op::Cmp(Cmp::Le, limit, step), DType::Bool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn cases_reach_every_instruction() {
        let cases: Vec<Case> = (0..1000).map(|s| case(s, &Options { stop: s % 4 == 0, ..Default::default() })).collect();
        let kinds: BTreeSet<String> = cases
            .iter()
            .flat_map(|c| c.kernel.body.iter())
            .map(|i| match &i.op {
                Op::Un(op, _) => format!("{op:?} {}", i.dtype),
                Op::Bin(op, ..) => format!("{op:?} {}", i.dtype),
                Op::Fma(..) => format!("fma {}", i.dtype),
                Op::Select(..) => format!("select {}", i.dtype),
                _ => String::new(),
            })
            .collect();
        let unary = 2 * 7 + 8 * 2 + 1;
        let binary = 2 * 4 + 8 * 11 + 3;
        assert_eq!(kinds.len(), 1 + unary + binary + 2 + 11, "{kinds:?}");
        assert!(cases.iter().any(|c| c.expected().1 < c.steps), "some kernel stops early");
        assert!(cases.iter().any(|c| c.expected().0 != c.memories), "kernels write");
        let mems = || cases.iter().flat_map(|c| c.kernel.mems.iter());
        let share = |of: &dyn Fn(&Mem) -> bool| mems().filter(|m| of(m)).count() * 50 > mems().count();
        assert!(share(&|m| matches!(m.lane, Lane::Apart(_))), "lanes lie apart");
        let apart = |c: &Case, m: MemId| matches!(c.kernel.mems[m].lane, Lane::Apart(_));
        assert!(cases.iter().filter(|c| c.kernel.stores.iter().any(|s| apart(c, s.mem))).count() > 300, "and are written");
        assert!(cases.iter().filter(|c| c.kernel.carries.iter().any(|s| apart(c, s.mem))).count() > 150, "and are carries");
        assert!(share(&|m| m.beside.is_some()), "operands lie beside each other");
    }

    #[test]
    fn a_difference_is_found_and_nan_is_nan() {
        let dtypes = vec![DType::F32, DType::I8];
        let c = Case { dtypes, ..case(1, &Options::default()) };
        let with = |x: f32, y: u8| vec![x.to_le_bytes().to_vec(), vec![0, y]];
        assert_eq!(c.difference(&with(f32::NAN, 1), &with(-f32::NAN, 1)), None);
        assert!(c.difference(&with(0.0, 1), &with(-0.0, 1)).is_some());
        assert!(c.difference(&with(0.0, 1), &with(0.0, 2)).is_some_and(|d| d.starts_with("memory 1 (int8), element 1")));
    }
}
