//! What a kernel means, bit by bit: slow and obvious. Engines are measured against it.
//!
//! A value is the bits of its element, zero-extended, as in `Op::Const`. Integers are computed in 128 bits and cut.

use super::{Argument, Bin, Cmp, Inst, Kernel, Loop, Mem, MemId, Op, Reg, Un};
use crate::base::{Id, IdxVec};
use crate::dispatch;
use crate::types::Cast;
use crate::types::DType;
use smallvec::SmallVec;

/// An operand of one call. Several may lie in one memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// The number of the memory.
    pub memory: usize,
    /// Bytes before the element of lane 0 at the first step.
    pub offset: usize,
    /// Bytes from one step to the next.
    pub stride: isize,
}

/// Runs a verified kernel on operands in the order of its own; the number of steps that ran. All lanes of a step read before any
/// of them writes.
pub fn run(kernel: &Kernel, memories: &mut [Vec<u8>], operands: &[Operand], lanes: usize, steps: usize, first: i64) -> usize {
    assert_eq!(operands.len(), kernel.mems.len(), "operands of a kernel");
    assert!(!kernel.is_single() || lanes <= 1, "a kernel that stops, writes elements of tables or runs loops has one lane");
    if lanes == 0 || steps == 0 {
        return if lanes == 0 { steps } else { 0 };
    }
    let mut carried: Vec<Vec<u64>> =
        (0..lanes).map(|l| kernel.carries.iter().map(|c| read(kernel, memories, operands, c.mem, l, 0)).collect()).collect();
    let mut ran = 0;
    for t in 0..steps {
        let number = first.wrapping_add(t as i64);
        let reads = |lane| At { kernel, memories, operands, lane, t };
        let values: Vec<_> =
            (0..lanes).map(|l| step(kernel, &reads(l), &carried[l], number, &mut |_| false).expect("nobody halts it")).collect();
        for store in &kernel.stores {
            (0..lanes).for_each(|l| match store.at {
                Some(at) => scattered(kernel, memories, operands, (store.mem, values[l][at]), t, values[l][store.value]),
                None => write(kernel, memories, operands, store.mem, l, t, values[l][store.value]),
            });
        }
        carried = values.iter().map(|v| kernel.carries.iter().map(|c| v[c.next]).collect()).collect();
        ran += 1;
        if kernel.stop.is_some_and(|stop| values[0][stop] != 0) {
            break;
        }
    }
    for (id, carry) in kernel.carries.enumerate() {
        (0..lanes).for_each(|l| write(kernel, memories, operands, carry.mem, l, 0, carried[l][id.0 as usize]));
    }
    ran
}

/// What a step of one lane reads in memory.
pub trait Reads {
    /// The element of an operand.
    fn load(&self, mem: MemId) -> u64;
    /// The element of a table with this number, which is that of one.
    fn element(&self, mem: MemId, number: usize) -> u64;
}

/// The same in a lane and a step.
struct At<'a> {
    kernel: &'a Kernel,
    memories: &'a [Vec<u8>],
    operands: &'a [Operand],
    lane: usize,
    t: usize,
}

impl Reads for At<'_> {
    fn load(&self, mem: MemId) -> u64 {
        read(self.kernel, self.memories, self.operands, mem, self.lane, self.t)
    }
    fn element(&self, mem: MemId, number: usize) -> u64 {
        gathered(self.kernel, self.memories, self.operands, (mem, number as u64), self.t)
    }
}

/// A loop of a step behind the last of its steps.
struct Done {
    of: Reg,
    ran: u64,
    carries: Vec<u64>,
    /// Per operand what it has written, from the first element on, where that is memory of its own.
    own: Vec<Vec<u64>>,
}

impl Done {
    /// An element of memory of its own; what was not written is anything.
    fn element(&self, inner: &Loop, mem: MemId, number: usize) -> u64 {
        self.own[mem.idx()].get(number.min(inner.kernel.mems[mem].table - 1)).copied().unwrap_or(0)
    }
    fn write(&mut self, inner: &Loop, mem: MemId, number: u64, bits: u64) {
        let (at, own) = (number.min(inner.kernel.mems[mem].table as u64 - 1) as usize, &mut self.own[mem.idx()]);
        own.resize(own.len().max(at + 1), 0);
        own[at] = bits;
    }
}

/// The loops of a step so far.
struct Loops<'a> {
    kernel: &'a Kernel,
    done: Vec<Done>,
}

impl Loops<'_> {
    fn of(&self, r: Reg) -> (&Loop, &Done) {
        (self.kernel.loop_at(r), self.done.iter().find(|done| done.of == r).expect("a loop before"))
    }
}

/// What a loop in a step reads.
struct Within<'a> {
    inner: &'a Loop,
    around: &'a dyn Reads,
    values: &'a IdxVec<Reg, u64>,
    loops: &'a Loops<'a>,
    now: &'a Done,
}

impl Reads for Within<'_> {
    fn load(&self, mem: MemId) -> u64 {
        match self.inner.operands[mem.idx()] {
            Argument::Value(r) => self.values[r],
            Argument::Table(table, first) => self.around.element(table, first),
            Argument::Own | Argument::Left(..) => panic!("m{} is a table", mem.0),
        }
    }
    fn element(&self, mem: MemId, number: usize) -> u64 {
        match self.inner.operands[mem.idx()] {
            Argument::Table(table, first) => self.around.element(table, first + number),
            Argument::Own => self.now.element(self.inner, mem, number),
            Argument::Left(r, of) => {
                let (inner, done) = self.loops.of(r);
                done.element(inner, of, number)
            }
            Argument::Value(_) => panic!("m{} is no table", mem.0),
        }
    }
}

/// The values of one lane in the step with this number. `halts` is told of the instructions of each step of a loop in it; `None` where it says
/// that nothing is wanted any more.
pub fn step(
    kernel: &Kernel,
    reads: &dyn Reads,
    carried: &[u64],
    number: i64,
    halts: &mut dyn FnMut(usize) -> bool,
) -> Option<IdxVec<Reg, u64>> {
    let (mut values, mut loops) = (IdxVec::<Reg, u64>::new(), Loops { kernel, done: vec![] });
    for (r, inst) in kernel.body.enumerate() {
        let value = match &inst.op {
            Op::Step => number as u64,
            Op::Load(m) => reads.load(*m),
            Op::Gather(m, index) => reads.element(*m, values[*index].min(kernel.mems[*m].table as u64 - 1) as usize),
            Op::Carry(c) => carried[c.0 as usize],
            Op::Loop(inner) => {
                let done = looped((r, inner), reads, &values, &loops, halts)?;
                let ran = done.ran;
                loops.done.push(done);
                ran
            }
            Op::Last(of, carry) => loops.of(*of).1.carries[carry.idx()],
            Op::Left(of, mem, number) => {
                let (inner, done) = loops.of(*of);
                done.element(inner, *mem, usize::try_from(values[*number]).unwrap_or(usize::MAX))
            }
            _ => {
                let args: SmallVec<[u64; 3]> = inst.op.uses().iter().map(|&r| values[r]).collect();
                let from = inst.op.uses().first().map_or(inst.dtype, |&r| kernel.dtype(r));
                compute(inst, from, &args)
            }
        };
        values.push(value);
    }
    Some(values)
}

/// All steps of a loop in a step.
fn looped(
    (of, inner): (Reg, &Loop),
    around: &dyn Reads,
    values: &IdxVec<Reg, u64>,
    loops: &Loops,
    halts: &mut dyn FnMut(usize) -> bool,
) -> Option<Done> {
    let (kernel, steps) = (&*inner.kernel, values[inner.steps] as i64);
    let mut now = Done { of, ran: 0, carries: vec![], own: vec![vec![]; kernel.mems.len()] };
    inner.begin.iter().for_each(|&(mem, at, r)| now.write(inner, mem, at as u64, values[r]));
    now.carries = kernel.carries.iter().map(|c| Within { inner, around, values, loops, now: &now }.load(c.mem)).collect();
    for t in 0..steps.max(0) {
        if halts(kernel.body.len()) {
            return None;
        }
        let made = step(kernel, &Within { inner, around, values, loops, now: &now }, &now.carries, t, halts)?;
        kernel.stores.iter().for_each(|s| now.write(inner, s.mem, made[s.at.expect("a number")], made[s.value]));
        now.carries = kernel.carries.iter().map(|c| made[c.next]).collect();
        now.ran = t as u64 + 1;
        if kernel.stop.is_some_and(|stop| made[stop] != 0) {
            break;
        }
    }
    Some(now)
}

/// The value of an instruction that depends on its arguments alone; `from` is the dtype of the first.
pub fn compute(inst: &Inst, from: DType, args: &[u64]) -> u64 {
    match inst.op {
        Op::Const(bits) => bits,
        Op::Un(op, _) => un(op, from, args[0]),
        Op::Bin(op, ..) => bin(op, from, args[0], args[1]),
        Op::Fma(..) => fma(from, args[0], args[1], args[2]),
        Op::Cmp(op, ..) => cmp(op, from, args[0], args[1]) as u64,
        Op::Select(..) => args[if args[0] != 0 { 1 } else { 2 }],
        Op::Convert(_) => convert(from, inst.dtype, args[0]),
        Op::Bits(_) => args[0],
        Op::Call(f, _) => f.value(f64::from_bits(args[0]), args.get(1).map_or(0.0, |&y| f64::from_bits(y))).to_bits(),
        Op::Step | Op::Load(_) | Op::Gather(..) | Op::Carry(_) | Op::Loop(_) | Op::Last(..) | Op::Left(..) => {
            panic!("{:?} depends on the step", inst.op)
        }
    }
}

fn place(kernel: &Kernel, operand: &Operand, mem: MemId, lane: usize, t: usize) -> std::ops::Range<usize> {
    let size = kernel.mems[mem].dtype.size();
    let along = kernel.mems[mem].lane.elements() * (lane * size) as isize;
    let at = (operand.offset as isize + t as isize * operand.stride + along) as usize;
    at..at + size
}

fn read(kernel: &Kernel, memories: &[Vec<u8>], operands: &[Operand], mem: MemId, lane: usize, t: usize) -> u64 {
    let operand = &operands[mem.0 as usize];
    let mut bytes = [0; 8];
    let range = place(kernel, operand, mem, lane, t);
    bytes[..range.len()].copy_from_slice(&memories[operand.memory][range]);
    u64::from_le_bytes(bytes)
}

/// Where the element of a table with a number lies.
fn element(kernel: &Kernel, operands: &[Operand], (mem, index): (MemId, u64), t: usize) -> std::ops::Range<usize> {
    let Mem { dtype, table, .. } = kernel.mems[mem];
    let first = place(kernel, &operands[mem.0 as usize], mem, 0, t).start;
    let at = first + index.min(table as u64 - 1) as usize * dtype.size();
    at..at + dtype.size()
}

/// The element of a table with a number.
fn gathered(kernel: &Kernel, memories: &[Vec<u8>], operands: &[Operand], which: (MemId, u64), t: usize) -> u64 {
    let mut bytes = [0; 8];
    let range = element(kernel, operands, which, t);
    bytes[..range.len()].copy_from_slice(&memories[operands[which.0.0 as usize].memory][range]);
    u64::from_le_bytes(bytes)
}

/// Writes the element of a table with a number.
fn scattered(kernel: &Kernel, memories: &mut [Vec<u8>], operands: &[Operand], which: (MemId, u64), t: usize, value: u64) {
    let range = element(kernel, operands, which, t);
    let bytes = &value.to_le_bytes()[..range.len()];
    memories[operands[which.0.0 as usize].memory][range].copy_from_slice(bytes);
}

fn write(kernel: &Kernel, memories: &mut [Vec<u8>], operands: &[Operand], mem: MemId, lane: usize, t: usize, value: u64) {
    let operand = &operands[mem.0 as usize];
    let range = place(kernel, operand, mem, lane, t);
    let size = range.len();
    memories[operand.memory][range].copy_from_slice(&value.to_le_bytes()[..size]);
}

/// An element type whose values are kept as bits.
trait Word {
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! words {
    ($($t:ty: $bits:ident => $of:expr, $value:ident => $back:expr;)+) => {$(
        impl Word for $t {
            fn of($bits: u64) -> $t { $of }
            fn bits(self) -> u64 { let $value = self; $back }
        }
    )+};
}

words! {
    bool: b => b != 0, x => x as u64;
    i8: b => b as i8, x => x as u8 as u64;
    i16: b => b as i16, x => x as u16 as u64;
    i32: b => b as i32, x => x as u32 as u64;
    i64: b => b as i64, x => x as u64;
    u8: b => b as u8, x => x as u64;
    u16: b => b as u16, x => x as u64;
    u32: b => b as u32, x => x as u64;
    u64: b => b, x => x;
    f32: b => f32::from_bits(b as u32), x => x.to_bits() as u64;
    f64: b => f64::from_bits(b), x => x.to_bits();
}

/// An integer or bool, without loss.
fn wide(dtype: DType, bits: u64) -> i128 {
    match dtype {
        DType::I8 => bits as i8 as i128,
        DType::I16 => bits as i16 as i128,
        DType::I32 => bits as i32 as i128,
        DType::I64 => bits as i64 as i128,
        _ => bits as i128,
    }
}

/// The low bits of an integer, as many as the dtype has.
fn cut(dtype: DType, x: i128) -> u64 {
    let mask = if dtype == DType::Bool { 1 } else { u64::MAX >> (64 - 8 * dtype.size()) };
    x as u64 & mask
}

macro_rules! floats {
    ($($t:ident),+) => {$(
        mod $t {
            use super::{Bin, Cmp, Un, Word};
            pub fn un(op: Un, x: u64) -> u64 {
                let x = $t::of(x);
                let value = match op {
                    Un::Neg => -x,
                    Un::Abs => x.abs(),
                    Un::Sqrt => x.sqrt(),
                    Un::Floor => x.floor(),
                    Un::Ceil => x.ceil(),
                    Un::Trunc => x.trunc(),
                    Un::Round => x.round_ties_even(),
                    Un::Not => panic!("{op:?} of a float"),
                };
                value.bits()
            }
            pub fn bin(op: Bin, x: u64, y: u64) -> u64 {
                let (x, y) = ($t::of(x), $t::of(y));
                let value = match op {
                    Bin::Add => x + y,
                    Bin::Sub => x - y,
                    Bin::Mul => x * y,
                    Bin::Div => x / y,
                    _ => panic!("{op:?} of floats"),
                };
                value.bits()
            }
            pub fn fma(x: u64, y: u64, z: u64) -> u64 {
                $t::of(x).mul_add($t::of(y), $t::of(z)).bits()
            }
            pub fn cmp(op: Cmp, x: u64, y: u64) -> bool {
                super::holds(op, $t::of(x), $t::of(y))
            }
        }
    )+};
}

floats!(f32, f64);

fn holds<T: PartialOrd>(op: Cmp, x: T, y: T) -> bool {
    match op {
        Cmp::Eq => x == y,
        Cmp::Ne => x != y,
        Cmp::Lt => x < y,
        Cmp::Le => x <= y,
    }
}

fn un(op: Un, dtype: DType, x: u64) -> u64 {
    let value = match (dtype, op) {
        (DType::F32, _) => return f32::un(op, x),
        (DType::F64, _) => return f64::un(op, x),
        (_, Un::Neg) => wide(dtype, x).wrapping_neg(),
        (_, Un::Not) => !wide(dtype, x),
        _ => panic!("{op:?} of {dtype}"),
    };
    cut(dtype, value)
}

fn bin(op: Bin, dtype: DType, x: u64, y: u64) -> u64 {
    let (a, b) = (wide(dtype, x), wide(dtype, y));
    let value = match (dtype, op) {
        (DType::F32, _) => return f32::bin(op, x, y),
        (DType::F64, _) => return f64::bin(op, x, y),
        (_, Bin::Add) => a.wrapping_add(b),
        (_, Bin::Sub) => a.wrapping_sub(b),
        (_, Bin::Mul) => a.wrapping_mul(b),
        (_, Bin::And) => a & b,
        (_, Bin::Or) => a | b,
        (_, Bin::Xor) => a ^ b,
        (_, Bin::Shl) => a.wrapping_shl(b as u32),
        (_, Bin::Shr) => a.wrapping_shr(b as u32),
        (_, Bin::FloorDiv | Bin::Mod | Bin::Fmod) if b == 0 => 0,
        (_, Bin::FloorDiv) => a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0),
        (_, Bin::Mod) => a.rem_euclid(b) + if b < 0 && a.rem_euclid(b) != 0 { b } else { 0 },
        (_, Bin::Fmod) => a % b,
        (_, Bin::Div) => panic!("{op:?} of {dtype}"),
    };
    cut(dtype, value)
}

fn fma(dtype: DType, x: u64, y: u64, z: u64) -> u64 {
    if dtype == DType::F32 { f32::fma(x, y, z) } else { f64::fma(x, y, z) }
}

fn cmp(op: Cmp, dtype: DType, x: u64, y: u64) -> bool {
    match dtype {
        DType::F32 => f32::cmp(op, x, y),
        DType::F64 => f64::cmp(op, x, y),
        _ => holds(op, wide(dtype, x), wide(dtype, y)),
    }
}

fn convert(from: DType, to: DType, x: u64) -> u64 {
    dispatch!(from, A => dispatch!(to, B => <A as Cast<B>>::cast(A::of(x)).bits()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Carry, Mem, Store};

    fn inst(op: Op, dtype: DType) -> Inst {
        Inst { op, dtype }
    }

    #[test]
    fn integers_wrap_and_shift_by_their_sign() {
        assert_eq!(bin(Bin::Add, DType::I8, 127, 1), 0x80);
        assert_eq!(bin(Bin::Sub, DType::U16, 0, 1), 0xffff);
        assert_eq!(bin(Bin::Mul, DType::U64, u64::MAX, u64::MAX), 1);
        assert_eq!(bin(Bin::Shr, DType::I32, 0x8000_0000, 4), 0xf800_0000);
        assert_eq!(bin(Bin::Shr, DType::U32, 0x8000_0000, 4), 0x0800_0000);
        assert_eq!(bin(Bin::Shl, DType::U8, 0xff, 7), 0x80);
        assert_eq!(un(Un::Neg, DType::I64, i64::MIN as u64), i64::MIN as u64);
        assert_eq!(un(Un::Not, DType::Bool, 0), 1);
        assert_eq!(un(Un::Not, DType::U16, 1), 0xfffe);
        assert!(cmp(Cmp::Lt, DType::I8, 0xff, 0) && !cmp(Cmp::Lt, DType::U8, 0xff, 0));
    }

    #[test]
    fn floats_follow_the_machine_and_casts_the_table() {
        assert_eq!(un(Un::Round, DType::F64, 2.5f64.to_bits()), 2f64.to_bits());
        assert_eq!(un(Un::Neg, DType::F32, 0), (-0f32).to_bits() as u64);
        assert!(cmp(Cmp::Ne, DType::F64, f64::NAN.to_bits(), f64::NAN.to_bits()));
        let (x, y) = (1.0 + f64::EPSILON, 1.0 - f64::EPSILON);
        assert_eq!(fma(DType::F64, x.to_bits(), y.to_bits(), (-1f64).to_bits()), (-f64::EPSILON * f64::EPSILON).to_bits());
        assert_eq!(convert(DType::F64, DType::I8, 1e9f64.to_bits()), 127);
        assert_eq!(convert(DType::F32, DType::U32, f32::NAN.to_bits() as u64), 0);
        assert_eq!(convert(DType::I16, DType::U64, 0xffff), u64::MAX);
    }

    /// s ← s + x[t], stored to y, until s exceeds 2.
    fn running_sum() -> Kernel {
        let mut k = Kernel::default();
        use crate::kernel::Lane;
        for lane in [Lane::Unit, Lane::Uniform, Lane::Unit] {
            k.mems.push(Mem::new(DType::F64, lane));
        }
        let x = k.body.push(inst(Op::Load(MemId(0)), DType::F64));
        let s = k.body.push(inst(Op::Carry(crate::kernel::CarryId(0)), DType::F64));
        let next = k.body.push(inst(Op::Bin(Bin::Add, s, x), DType::F64));
        let limit = k.body.push(inst(Op::Const(2f64.to_bits()), DType::F64));
        k.stop = Some(k.body.push(inst(Op::Cmp(Cmp::Lt, limit, next), DType::Bool)));
        k.carries.push(Carry { mem: MemId(1), next });
        k.stores.push(Store { mem: MemId(2), value: next, at: None });
        k
    }

    #[test]
    fn a_loop_hands_on_stores_and_stops() {
        let bytes = |xs: &[f64]| xs.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let mut memories = vec![bytes(&[4.0, 1.0, 1.0, 0.5]), bytes(&[0.25]), bytes(&[9.0; 4])];
        let operand = |memory, offset, stride| Operand { memory, offset, stride };
        let operands = [operand(0, 24, -8), operand(1, 0, 0), operand(2, 0, 8)];
        assert_eq!(run(&running_sum(), &mut memories, &operands, 1, 4, 0), 3);
        assert_eq!(memories[2], bytes(&[0.75, 1.75, 2.75, 9.0]));
        assert_eq!(memories[1], bytes(&[2.75]));
    }
}
