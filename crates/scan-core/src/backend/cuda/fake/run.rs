//! PTX, interpreted: one thread after the other, in an order that nobody should rely on.

use super::opcodes::{Code, Round, Ty};
use super::parse::{Arg, Inst, Program};
use super::{ILLEGAL_ADDRESS, MISALIGNED_ADDRESS};
use std::collections::VecDeque;

/// Memory that threads reach.
pub trait Words {
    /// So many bytes at an address.
    ///
    /// # Errors
    /// The number of the fault.
    fn load(&mut self, at: u64, bytes: usize) -> Result<u64, u32>;
    /// Writes bytes.
    ///
    /// # Errors
    /// The number of the fault.
    fn store(&mut self, at: u64, bytes: usize, value: u64) -> Result<(), u32>;
}

/// In which order threads run.
#[derive(Clone, Copy, Default)]
pub struct Order {
    /// The last ones first.
    pub backwards: bool,
    /// All blocks at the same time; else one after the other.
    pub together: bool,
}

/// Instructions after which another thread has its turn.
const TURN: usize = 20_000;
/// What the memory of a block holds before it is written.
const DIRT: u8 = 0xa5;
/// Threads wait for one that has ended.
const LAUNCH_FAILED: u32 = 719;

/// Runs all threads of a launch.
///
/// # Errors
/// The number of the first fault.
pub fn run(program: &Program, [blocks, threads, shared]: [u32; 3], params: &[u8], memory: &mut dyn Words, order: Order) -> Result<(), u32> {
    let mut numbers: Vec<u64> = (0..u64::from(blocks)).collect();
    if order.backwards {
        numbers.reverse();
    }
    let at_a_time = if order.together { numbers.len() } else { 1 };
    for some in numbers.chunks(at_a_time) {
        let block = |&k: &u64| Block::new(program, [u64::from(threads), k, u64::from(blocks), u64::from(shared)], order.backwards);
        let mut open: Vec<Block> = some.iter().map(block).collect();
        while !open.is_empty() {
            open.iter_mut().try_for_each(|block| block.go_on(program, params, memory))?;
            open.retain(|block| !block.threads.is_empty());
        }
    }
    Ok(())
}

/// The threads of a block that did not end, of how many, and the memory that they share.
struct Block {
    threads: Vec<Thread>,
    all: usize,
    shared: Vec<u8>,
}

/// A copy in the background: to where in the memory of the block, from where, and how many bytes.
struct Copy(u64, u64, usize);

/// A thread.
struct Thread {
    /// Its number in its block, the threads of a block, the number of the block, and how many blocks there are.
    place: [u64; 4],
    registers: Vec<u64>,
    at: usize,
    state: State,
    /// Copies that were asked for last, and groups of those before.
    asked: Vec<Copy>,
    groups: VecDeque<Vec<Copy>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    GoesOn,
    /// For the others of its block.
    Waits,
    Ended,
}

impl Block {
    fn new(program: &Program, [threads, block, blocks, told]: [u64; 4], backwards: bool) -> Block {
        let thread = |k: u64| {
            let place = [if backwards { threads - 1 - k } else { k }, threads, block, blocks];
            Thread { place, registers: vec![], at: 0, state: State::GoesOn, asked: vec![], groups: VecDeque::new() }
        };
        Block { threads: (0..threads).map(thread).collect(), all: threads as usize, shared: vec![DIRT; program.shared + told as usize] }
    }

    /// Every thread goes on until it ends or waits; those that wait are let go where all do.
    fn go_on(&mut self, program: &Program, params: &[u8], memory: &mut dyn Words) -> Result<(), u32> {
        for thread in self.threads.iter_mut().filter(|thread| thread.state == State::GoesOn) {
            thread.run(program, params, memory, &mut self.shared)?;
        }
        self.threads.retain(|thread| thread.state != State::Ended);
        if self.threads.iter().all(|thread| thread.state == State::Waits) {
            if !self.threads.is_empty() && self.threads.len() < self.all {
                return Err(LAUNCH_FAILED);
            }
            self.threads.iter_mut().for_each(|thread| thread.state = State::GoesOn);
        }
        Ok(())
    }
}

impl Thread {
    /// Goes on until it ends, waits, or others have their turn.
    fn run(&mut self, program: &Program, params: &[u8], memory: &mut dyn Words, shared: &mut [u8]) -> Result<(), u32> {
        if self.registers.is_empty() {
            // What a register holds before it is written is anybody's guess.
            self.registers = program.registers.iter().map(|ty| 0xa5a5_a5a5_5a5a_5a5a & mask(*ty)).collect();
        }
        for _ in 0..TURN {
            let Some(inst) = program.body.get(self.at) else {
                self.state = State::Ended;
                break;
            };
            self.at += 1;
            if inst.guard.is_none_or(|(r, holds)| (self.registers[r] != 0) == holds) {
                self.inst(program, inst, params, memory, shared)?;
            }
            if self.state != State::GoesOn {
                break;
            }
        }
        if self.state == State::Ended {
            self.registers = vec![];
            self.land(0, memory, shared)?;
        }
        Ok(())
    }

    fn inst(&mut self, program: &Program, inst: &Inst, params: &[u8], memory: &mut dyn Words, shared: &mut [u8]) -> Result<(), u32> {
        let arg = |k: usize| match inst.args[k] {
            Arg::Reg(r) => self.registers[r],
            Arg::Bits(bits) => bits,
            Arg::Special(s) => self.place[s],
        };
        let bytes = inst.ty.bits() as usize / 8;
        let place = || arg(0).wrapping_add(inst.by as u64);
        let value = match inst.code {
            Code::Ret => {
                self.state = State::Ended;
                return Ok(());
            }
            Code::Barrier => {
                self.state = State::Waits;
                return Ok(());
            }
            Code::Bra(target) => {
                self.at = target;
                return Ok(());
            }
            Code::CopyAsync(bytes) => {
                let copy = Copy(place(), arg(1).wrapping_add(arg(2)), bytes);
                self.asked.push(copy);
                return Ok(());
            }
            Code::Commit => {
                self.groups.push_back(std::mem::take(&mut self.asked));
                return Ok(());
            }
            Code::Aligned(bytes) => return if place().is_multiple_of(bytes as u64) { Ok(()) } else { Err(MISALIGNED_ADDRESS) },
            Code::Landed(open) => return self.land(open, memory, shared),
            Code::Load => memory.load(place(), bytes)?,
            Code::LoadShared => within(shared, place(), bytes).map(|b| number(b))?,
            Code::Store => return memory.store(place(), bytes, arg(1)),
            Code::StoreShared => {
                let value = arg(1).to_le_bytes();
                within(shared, place(), bytes)?.copy_from_slice(&value[..bytes]);
                return Ok(());
            }
            Code::AddTo => {
                let sum = memory.load(place(), bytes)?.wrapping_add(arg(1));
                return memory.store(place(), bytes, sum);
            }
            Code::LoadParam => number(&params[inst.by as usize..inst.by as usize + bytes]),
            _ => value(inst, [arg(0), arg(1), arg(2)]),
        };
        self.registers[inst.to] = value & mask(program.registers[inst.to]);
        Ok(())
    }

    /// Does copies, as late as it may: all but the last groups.
    fn land(&mut self, open: usize, memory: &mut dyn Words, shared: &mut [u8]) -> Result<(), u32> {
        let now = self.groups.len().saturating_sub(open);
        let last = if open == 0 { std::mem::take(&mut self.asked) } else { vec![] };
        for Copy(to, from, bytes) in self.groups.drain(..now).flatten().chain(last) {
            let value = memory.load(from, bytes)?.to_le_bytes();
            within(shared, to, bytes)?.copy_from_slice(&value[..bytes]);
        }
        Ok(())
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Bytes of the memory of a block.
fn within(shared: &mut [u8], at: u64, bytes: usize) -> Result<&mut [u8], u32> {
    if !at.is_multiple_of(bytes as u64) {
        return Err(MISALIGNED_ADDRESS);
    }
    let at = at as usize;
    shared.get_mut(at..at.saturating_add(bytes)).ok_or(ILLEGAL_ADDRESS)
}

fn mask(ty: Ty) -> u64 {
    u64::MAX >> (64 - ty.bits())
}

fn signed(ty: Ty, bits: u64) -> i64 {
    let away = 64 - ty.bits();
    (bits << away) as i64 >> away
}

/// What an instruction computes of values.
fn value(inst: &Inst, args: [u64; 3]) -> u64 {
    let [x, y, z] = args;
    match inst.code {
        Code::Mov => x,
        Code::Pack => x | y << 32,
        Code::Selp => {
            if z != 0 {
                x
            } else {
                y
            }
        }
        Code::Setp(holds) => u64::from(holds[compared(inst.ty, x, y)]),
        Code::Cvt(to, round) => converted(inst.ty, to, round, x),
        code => match inst.ty {
            Ty::F32 => single(code, [x, y, z].map(|b| f32::from_bits(b as u32))),
            Ty::F64 => double(code, args.map(f64::from_bits)),
            ty => integer(code, ty, args),
        },
    }
}

/// 0: less, 1: equal, 2: greater, 3: one of them is not a number.
fn compared(ty: Ty, x: u64, y: u64) -> usize {
    let order = match ty {
        Ty::F32 => f32::from_bits(x as u32).partial_cmp(&f32::from_bits(y as u32)),
        Ty::F64 => f64::from_bits(x).partial_cmp(&f64::from_bits(y)),
        ty if ty.is_signed() => Some(signed(ty, x).cmp(&signed(ty, y))),
        ty => Some((x & mask(ty)).cmp(&(y & mask(ty)))),
    };
    order.map_or(3, |o| (o as i8 + 1) as usize)
}

fn integer(code: Code, ty: Ty, [x, y, z]: [u64; 3]) -> u64 {
    let (least, most) = if compared(ty, x, y) == 0 { (x, y) } else { (y, x) };
    // An amount of 32 bits; what is beyond the width counts as the width.
    let places = (y as u32).min(ty.bits());
    match code {
        Code::Add => x.wrapping_add(y),
        Code::Sub => x.wrapping_sub(y),
        Code::Mul => x.wrapping_mul(y),
        Code::MulWide if ty.is_signed() => signed(ty, x).wrapping_mul(signed(ty, y)) as u64,
        Code::MulWide => x.wrapping_mul(y),
        Code::MadWide => integer(Code::MulWide, ty, [x, y, z]).wrapping_add(z),
        Code::Mad => x.wrapping_mul(y).wrapping_add(z),
        // By zero it is anything.
        Code::Div => x.checked_div(y).unwrap_or(u64::MAX),
        Code::Rem => x.checked_rem(y).unwrap_or(u64::MAX),
        Code::Neg => x.wrapping_neg(),
        Code::Not => !x,
        Code::And => x & y,
        Code::Or => x | y,
        Code::Xor => x ^ y,
        Code::Shl => x.checked_shl(places).unwrap_or(0),
        Code::Shr if ty.is_signed() => (signed(ty, x) >> places.min(63)) as u64,
        Code::Shr => x.checked_shr(places).unwrap_or(0),
        Code::Min => least,
        Code::Max => most,
        code => unreachable!("{code:?} of {ty:?} is not read"),
    }
}

macro_rules! floats {
    ($name:ident, $t:ty, $nan:expr) => {
        fn $name(code: Code, [x, y, z]: [$t; 3]) -> u64 {
            let value = match code {
                Code::Add => x + y,
                Code::Sub => x - y,
                Code::Mul => x * y,
                Code::Div => x / y,
                Code::Fma => x.mul_add(y, z),
                Code::Sqrt => x.sqrt(),
                Code::Neg => -x,
                Code::Abs => x.abs(),
                code => unreachable!("{code:?} of floats is not read"),
            };
            if value.is_nan() { $nan } else { value.to_bits().into() }
        }
    };
}

floats!(single, f32, 0x7fff_ffff);
floats!(double, f64, 0x7fff_ffff_ffff_ffff);

/// A conversion. The bits of a source beyond its type do not count.
fn converted(from: Ty, to: Ty, round: Round, x: u64) -> u64 {
    let float = match from {
        Ty::F32 => f64::from(f32::from_bits(x as u32)),
        Ty::F64 => f64::from_bits(x),
        _ => return of_integer(from, to, if from.is_signed() { i128::from(signed(from, x)) } else { i128::from(x & mask(from)) }),
    };
    let whole = match round {
        Round::Even => float.round_ties_even(),
        Round::Zero => float.trunc(),
        Round::Down => float.floor(),
        Round::Up => float.ceil(),
        Round::None | Round::Nearest => float,
    };
    match to {
        Ty::F32 if whole.is_nan() => 0x7fff_ffff,
        Ty::F32 => u64::from((whole as f32).to_bits()),
        Ty::F64 => whole.to_bits(),
        // What is not a number is 0, but for types of 64 bits on either side: then the highest bit alone is set.
        _ if whole.is_nan() && from != Ty::F64 && to.bits() < 64 => 0,
        _ if whole.is_nan() => 1 << (to.bits() - 1),
        _ if to.is_signed() => {
            let most = i128::from(i64::MAX >> (64 - to.bits()));
            (whole as i128).clamp(-most - 1, most) as u64
        }
        _ => (whole as i128).clamp(0, i128::from(mask(to))) as u64,
    }
}

fn of_integer(from: Ty, to: Ty, x: i128) -> u64 {
    match to {
        Ty::F32 => u64::from((x as f32).to_bits()),
        Ty::F64 => (x as f64).to_bits(),
        // A wider register gets the value with the sign of the type that is written.
        to if to.is_signed() => signed(if to.bits() < from.bits() { to } else { from }, x as u64) as u64,
        to => x as u64 & mask(to),
    }
}
