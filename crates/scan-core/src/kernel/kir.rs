//! The data of a kernel.
//!
//! ```text
//! for each lane l (independent of each other, any order)        a carry enters with the element that its operand holds
//!     for t in 0 .. steps
//!         body           loads, arithmetic; all reads of a step come before all of its stores
//!         stores
//!         carries ← next
//!         leave, where `stop` holds
//!                                                               and is written back to its operand at the end
//! ```

use super::loops::{Argument, Loop};
use crate::base::IdxVec;
use crate::scalar::called;
use crate::types::DType;
use smallvec::SmallVec;

crate::id! {
    /// A value of a kernel's body: the position of the instruction that makes it.
    Reg,
    /// An operand in memory.
    MemId,
    /// A value that one step hands to the next.
    CarryId,
}

/// How an operand depends on the lane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lane {
    /// One element serves all lanes.
    Uniform,
    /// Lane l has the element l places behind that of lane 0.
    Unit,
    /// Lane l has the element l times so many places behind that of lane 0; 0 places are only read.
    Apart(i32),
}

impl Lane {
    /// Elements from a lane's to that of the next.
    pub fn elements(self) -> isize {
        match self {
            Lane::Uniform => 0,
            Lane::Unit => 1,
            Lane::Apart(n) => n as isize,
        }
    }
    /// True where each lane has an element of its own.
    pub fn varies(self) -> bool {
        self != Lane::Uniform
    }
}

/// An operand. Where it begins and how many bytes it moves from one step to the next (0 or negative allowed) is told by each call;
/// the element of lane l at step t is at `pointer + t · stride + l · lane.elements() · size`, aligned to its size.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mem {
    /// Type of its elements. A bool is a byte, 0 or 1.
    pub dtype: DType,
    /// How it depends on the lane.
    pub lane: Lane,
    /// How many bytes it moves from one step to the next, where every call says the same. What such an operand does not write is not
    /// written during a call by way of another either: an engine may read it whenever it likes, and once where it does not move.
    pub stride: Option<i32>,
    /// So many elements from there on are a table that [`Op::Gather`] reads from, and that nothing but stores [at](Store::at) a number write
    /// during a call; 0 where there is none.
    pub table: usize,
    /// In every call its first element lies so many bytes behind that of another operand, which moves alike along lanes and steps: an engine may
    /// find it by way of that one. Both are only read.
    pub beside: Option<(MemId, i32)>,
}

impl Mem {
    /// Of which nothing else is known.
    pub fn new(dtype: DType, lane: Lane) -> Mem {
        Mem { dtype, lane, stride: None, table: 0, beside: None }
    }
    /// Bytes before and behind the begin of lane 0's first element that a step of so many lanes may touch.
    #[inline]
    pub fn row(&self, lanes: usize) -> (isize, isize) {
        let size = self.dtype.size() as isize;
        let last = self.lane.elements() * (lanes.max(1) as isize - 1);
        (size * last.min(0), size * (last.max(0) + self.table.max(1) as isize))
    }
}

/// A value that one step hands to the next. Before the first step it is loaded from its operand, after the last it is stored
/// there (the operand's stride is not used), so that a run of many steps can be cut into several calls. A uniform carry is the
/// same in all lanes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Carry {
    /// Where it comes from and goes to; no other part of the kernel touches this operand.
    pub mem: MemId,
    /// The value that the next step sees.
    pub next: Reg,
}

/// Writes a value to an operand at the end of each step. A uniform operand is given a value that is the same in all lanes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Store {
    /// Where to.
    pub mem: MemId,
    /// What.
    pub value: Reg,
    /// The number (i64) of the element of the operand's table that is written: the last where that is negative or too large. No other part
    /// of the kernel writes such a table, and it is read by [`Op::Gather`] alone. Such a kernel runs with one lane.
    pub at: Option<Reg>,
}

/// A function of one value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Un {
    /// `−x`: floats flip the sign bit, integers wrap.
    Neg,
    /// |x| of a float: clears the sign bit.
    Abs,
    /// Every bit of an integer turned; the opposite of a bool.
    Not,
    /// `√x`, correctly rounded.
    Sqrt,
    /// Largest integer not above x.
    Floor,
    /// Smallest integer not below x.
    Ceil,
    /// x without its fraction.
    Trunc,
    /// Nearest integer, halves to even.
    Round,
}

/// A function of two values of one dtype. Integers wrap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bin {
    /// `x + y`
    Add,
    /// `x − y`
    Sub,
    /// `x · y`
    Mul,
    /// `x / y` of floats.
    Div,
    /// Bits (or truth) set in both; of integers and bools.
    And,
    /// Bits (or truth) set in either.
    Or,
    /// Bits (or truth) set in one.
    Xor,
    /// `x << y` of integers, `0 <= y < width`.
    Shl,
    /// `x >> y` of integers, `0 <= y < width`: with sign where the dtype has one, with zeros else.
    Shr,
    /// `⌊x / y⌋` of integers; 0 where y = 0, the least integer by −1 wraps.
    FloorDiv,
    /// Remainder of integers with the sign of y; 0 where y = 0.
    Mod,
    /// Remainder of integers with the sign of x; 0 where y = 0.
    Fmod,
}

impl Bin {
    /// True for quotients and remainders of integers, which no vector unit has.
    pub fn divides_integers(self) -> bool {
        matches!(self, Bin::FloorDiv | Bin::Mod | Bin::Fmod)
    }
}

/// A comparison of two values of one dtype. With NaN only `Ne` holds. Bools: false < true.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cmp {
    /// `x == y`
    Eq,
    /// `x != y`
    Ne,
    /// `x < y`
    Lt,
    /// `x <= y`
    Le,
}

/// What an instruction computes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// A constant: the bits of its element, zero-extended.
    Const(u64),
    /// The number of the step, i64: the call's first, plus t.
    Step,
    /// The element of an operand.
    Load(MemId),
    /// An element of a uniform operand's table: the one with this number (i64), or the last where that is negative or too large.
    Gather(MemId, Reg),
    /// The value of a carry before the step.
    Carry(CarryId),
    /// A function of one value.
    Un(Un, Reg),
    /// A function of two values.
    Bin(Bin, Reg, Reg),
    /// `x · y + z` of floats, rounded once.
    Fma(Reg, Reg, Reg),
    /// A comparison, bool.
    Cmp(Cmp, Reg, Reg),
    /// The second where the first (bool) holds, else the third.
    Select(Reg, Reg, Reg),
    /// Converted to the instruction's dtype by the rule of `types::Cast`.
    Convert(Reg),
    /// The same bits as the instruction's dtype, which has the same width: f32 and i32/u32, f64 and i64/u64.
    Bits(Reg),
    /// A function of this machine on one or two f64 values, f64. It has no effects: where only selections use it and none takes it, an
    /// engine may leave it out.
    Call(HostFn, SmallVec<[Reg; 2]>),
    /// A loop that the step runs: how many of its steps ran, i64. Such a kernel runs with one lane.
    Loop(Loop),
    /// A carry of a loop (the value is that of its instruction) behind the last of its steps.
    Last(Reg, CarryId),
    /// An element of the memory of a loop's own behind the last of its steps: the one with this number (i64), or the last where that is negative or
    /// too large. Nobody knows what one is that the loop has not written.
    Left(Reg, MemId, Reg),
}

/// An instruction: what it computes, and the dtype of its value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Inst {
    /// What it computes.
    pub op: Op,
    /// Type of the value.
    pub dtype: DType,
}

/// A kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Kernel {
    /// Operands.
    pub mems: IdxVec<MemId, Mem>,
    /// What one step hands to the next.
    pub carries: IdxVec<CarryId, Carry>,
    /// One step: each instruction uses values before it.
    pub body: IdxVec<Reg, Inst>,
    /// What a step writes, in order.
    pub stores: Vec<Store>,
    /// Leaves after the step in which this bool holds. Such a kernel runs with one lane.
    pub stop: Option<Reg>,
}

impl Op {
    /// The values that it uses.
    pub fn uses(&self) -> SmallVec<[Reg; 3]> {
        match self {
            Op::Const(_) | Op::Step | Op::Load(_) | Op::Carry(_) => SmallVec::new(),
            Op::Un(_, x) | Op::Convert(x) | Op::Bits(x) | Op::Gather(_, x) => SmallVec::from_slice(&[*x]),
            Op::Bin(_, x, y) | Op::Cmp(_, x, y) => SmallVec::from_slice(&[*x, *y]),
            Op::Fma(x, y, z) | Op::Select(x, y, z) => SmallVec::from_slice(&[*x, *y, *z]),
            Op::Call(_, args) => args.iter().copied().collect(),
            Op::Loop(inner) => inner.values().chain([inner.steps]).collect(),
            Op::Last(of, _) => SmallVec::from_slice(&[*of]),
            Op::Left(of, _, number) => SmallVec::from_slice(&[*of, *number]),
        }
    }
    /// The operands that it reads.
    pub fn reads(&self) -> SmallVec<[MemId; 2]> {
        match self {
            Op::Load(mem) | Op::Gather(mem, _) => SmallVec::from_slice(&[*mem]),
            Op::Loop(inner) => inner.operands.iter().filter_map(|argument| argument.table()).collect(),
            _ => SmallVec::new(),
        }
    }
    /// The same of other values.
    pub fn of(&self, f: impl Fn(Reg) -> Reg) -> Op {
        match self {
            Op::Const(_) | Op::Step | Op::Load(_) | Op::Carry(_) => self.clone(),
            Op::Gather(mem, x) => Op::Gather(*mem, f(*x)),
            Op::Un(un, x) => Op::Un(*un, f(*x)),
            Op::Convert(x) => Op::Convert(f(*x)),
            Op::Bits(x) => Op::Bits(f(*x)),
            Op::Bin(bin, x, y) => Op::Bin(*bin, f(*x), f(*y)),
            Op::Cmp(cmp, x, y) => Op::Cmp(*cmp, f(*x), f(*y)),
            Op::Fma(x, y, z) => Op::Fma(f(*x), f(*y), f(*z)),
            Op::Select(x, y, z) => Op::Select(f(*x), f(*y), f(*z)),
            Op::Call(host, args) => Op::Call(*host, args.iter().map(|&r| f(r)).collect()),
            Op::Loop(inner) => {
                let argument = |argument: &Argument| match *argument {
                    Argument::Value(r) => Argument::Value(f(r)),
                    Argument::Left(r, mem) => Argument::Left(f(r), mem),
                    table => table,
                };
                let (operands, begin) = (inner.operands.iter().map(argument), inner.begin.iter().map(|&(mem, at, r)| (mem, at, f(r))));
                Op::Loop(Loop { kernel: inner.kernel.clone(), operands: operands.collect(), steps: f(inner.steps), begin: begin.collect() })
            }
            Op::Last(of, carry) => Op::Last(f(*of), *carry),
            Op::Left(of, mem, number) => Op::Left(f(*of), *mem, f(*number)),
        }
    }
}

impl Kernel {
    /// The dtype of a value.
    pub fn dtype(&self, r: Reg) -> DType {
        self.body[r].dtype
    }
    /// The values that something but instructions uses: stores, with the numbers of elements; carries; the stop.
    pub fn ends(&self) -> impl Iterator<Item = Reg> {
        let stored = self.stores.iter().flat_map(|s| [Some(s.value), s.at]).flatten();
        stored.chain(self.carries.iter().map(|c| c.next)).chain(self.stop)
    }
    /// True per value that a store, a carry or the stop needs.
    pub fn needed(&self) -> IdxVec<Reg, bool> {
        let mut needed: IdxVec<Reg, bool> = self.body.iter().map(|_| false).collect();
        self.ends().for_each(|r| needed[r] = true);
        for (r, inst) in self.body.enumerate().rev() {
            if needed[r] {
                inst.op.uses().iter().for_each(|&u| needed[u] = true);
            }
        }
        needed
    }
    /// True for an operand that it writes: that it stores to, or hands on.
    pub fn writes(&self, mem: MemId) -> bool {
        self.stores.iter().any(|s| s.mem == mem) || self.carries.iter().any(|c| c.mem == mem)
    }
    /// True where it writes elements of tables by their numbers.
    pub fn scatters(&self) -> bool {
        self.stores.iter().any(|s| s.at.is_some())
    }
    /// The loops that a step runs.
    pub fn loops(&self) -> impl Iterator<Item = &Loop> {
        self.body.iter().filter_map(|inst| if let Op::Loop(inner) = &inst.op { Some(inner) } else { None })
    }
    /// True where a step runs loops.
    pub fn has_loops(&self) -> bool {
        self.loops().next().is_some()
    }
    /// Instructions, those of loops in the step too.
    pub fn size(&self) -> usize {
        self.body.len() + self.loops().map(|inner| inner.kernel.size()).sum::<usize>()
    }
    /// True where it runs with one lane: it stops, writes elements of tables by their numbers, or runs loops.
    pub fn is_single(&self) -> bool {
        self.stop.is_some() || self.scatters() || self.has_loops()
    }
    /// True per value that differs between lanes.
    pub fn varying(&self) -> IdxVec<Reg, bool> {
        let mut varying: IdxVec<Reg, bool> = IdxVec::new();
        for inst in self.body.iter() {
            let own = match &inst.op {
                Op::Load(m) => self.mems[*m].lane.varies(),
                Op::Carry(c) => self.mems[self.carries[*c].mem].lane.varies(),
                op => op.uses().iter().any(|&r| varying[r]),
            };
            varying.push(own);
        }
        varying
    }
}

macro_rules! host_fns {
    ($($(#[doc = $doc:literal])+ $Name:ident $kind:ident $f:expr $(, many $many:path)?;)+) => {
        /// Functions that kernels call instead of computing them inline.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum HostFn { $($(#[doc = $doc])+ $Name),+ }

        impl HostFn {
            /// Every function.
            pub const ALL: &'static [HostFn] = &[$(HostFn::$Name),+];
            /// Number of arguments.
            pub fn arity(self) -> usize {
                match self { $(HostFn::$Name => host_fns!(arity $kind)),+ }
            }
            /// Its value; `y` is not used where it takes one argument.
            #[allow(unused_variables)]
            pub fn value(self, x: f64, y: f64) -> f64 {
                match self { $(HostFn::$Name => host_fns!(value $kind $f, x, y)),+ }
            }
            /// True where most calls have the argument +0, in all lanes, because their value is not used: an engine may then put
            /// the function's value at 0 in place of the call.
            pub fn seldom(self) -> bool {
                matches!(self, HostFn::Sin | HostFn::Cos)
            }
            /// The address of `extern "C" fn(f64) -> f64`, or of `extern "C" fn(f64, f64) -> f64`; neither unwinds.
            pub fn address(self) -> usize {
                match self { $(HostFn::$Name => host_fns!(address $kind $f)),+ }
            }
            /// The address of [`called`]'s function for many lanes, where there is one: code for AVX2 calls it.
            #[cfg(target_arch = "x86_64")]
            pub fn many(self) -> Option<usize> {
                match self { $(HostFn::$Name => host_fns!(many $($many)?)),+ }
            }
        }
    };
    (many) => { None };
    (many $many:path) => { Some($many as called::Many as usize) };
    (arity one) => { 1 };
    (arity two) => { 2 };
    (value one $f:expr, $x:ident, $y:ident) => { $f($x) };
    (value two $f:expr, $x:ident, $y:ident) => { $f($x, $y) };
    (address one $f:expr) => {{
        extern "C" fn call(x: f64) -> f64 { $f(x) }
        call as extern "C" fn(f64) -> f64 as usize
    }};
    (address two $f:expr) => {{
        extern "C" fn call(x: f64, y: f64) -> f64 { $f(x, y) }
        call as extern "C" fn(f64, f64) -> f64 as usize
    }};
}

host_fns! {
    /// `xʸ`
    Pow two called::pow::one, many called::pow::many;
    /// `√(x² + y²)`
    Hypot two called::hypot::one, many called::hypot::many;
    /// The angle of the point (second, first).
    Atan2 two called::atan2::one, many called::atan2::many;
    /// Remainder with the sign of x.
    Fmod two |x: f64, y: f64| x % y, many called::fmod::many;
    /// Tangent.
    Tan one f64::tan;
    /// Arcsine.
    Asin one called::asin::one, many called::asin::many;
    /// Arccosine.
    Acos one called::acos::one, many called::acos::many;
    /// Arctangent.
    Atan one called::atan::one, many called::atan::many;
    /// Hyperbolic sine.
    Sinh one called::sinh::one, many called::sinh::many;
    /// Hyperbolic cosine.
    Cosh one called::cosh::one, many called::cosh::many;
    /// Inverse hyperbolic sine.
    Asinh one libm::asinh;
    /// Inverse hyperbolic cosine.
    Acosh one crate::scalar::special::acosh;
    /// Inverse hyperbolic tangent.
    Atanh one libm::atanh;
    /// Error function.
    Erf one called::erf::one, many called::erf::many;
    /// `1 − erf(x)`
    Erfc one called::erfc::one, many called::erfc::many;
    /// Inverse of the error function.
    ErfInv one called::erfinv::one, many called::erfinv::many;
    /// Quantile of the normal distribution.
    NdTri one called::ndtri::one, many called::ndtri::many;
    /// `log |Γ(x)|`
    GammaLn one called::gammaln::one, many called::gammaln::many;
    /// `ψ(x)`
    Digamma one called::digamma::one, many called::digamma::many;
    /// `ψ′(x)`
    Trigamma one called::trigamma::one, many called::trigamma::many;
    /// `ψ″(x)`
    Tetragamma one crate::scalar::special::tetragamma;
    /// Sine.
    Sin one crate::scalar::far_sin;
    /// Cosine.
    Cos one crate::scalar::far_cos;
    /// The first of Box and Muller's two normals of u in (0, 1] and v in [0, 1).
    NormalCos two |u, v| crate::scalar::philox::box_muller(u, v)[0];
    /// The second.
    NormalSin two |u, v| crate::scalar::philox::box_muller(u, v)[1];
    /// `eˣ`
    Exp one f64::exp;
    /// `2ˣ`
    Exp2 one f64::exp2;
    /// `eˣ − 1`
    Expm1 one f64::exp_m1;
    /// Natural logarithm.
    Log one f64::ln;
    /// Logarithm of base 2.
    Log2 one f64::log2;
    /// Logarithm of base 10.
    Log10 one f64::log10;
    /// `log(1 + x)`
    Log1p one f64::ln_1p;
    /// Hyperbolic tangent.
    Tanh one f64::tanh;
}
