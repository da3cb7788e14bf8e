//! PTX, interpreted: one thread after the other, in an order that nobody should rely on.

use super::parse::{Arg, Code, Inst, Program, Round, Ty};

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

/// Runs all threads of a launch; the last ones first where `backwards`.
///
/// # Errors
/// The number of the first fault.
pub fn run(program: &Program, [blocks, threads]: [u32; 2], params: &[u8], memory: &mut dyn Words, backwards: bool) -> Result<(), u32> {
    let all = u64::from(blocks) * u64::from(threads);
    let mut registers = vec![0; program.registers.len()];
    for k in 0..all {
        let k = if backwards { all - 1 - k } else { k };
        let place = [k % u64::from(threads), u64::from(threads), k / u64::from(threads)];
        // What a register holds before it is written is anybody's guess.
        registers.iter_mut().zip(&program.registers).for_each(|(r, ty)| *r = 0xa5a5_a5a5_5a5a_5a5a & mask(*ty));
        thread(program, place, params, memory, &mut registers)?;
    }
    Ok(())
}

fn thread(program: &Program, place: [u64; 3], params: &[u8], memory: &mut dyn Words, registers: &mut [u64]) -> Result<(), u32> {
    let mut at = 0;
    while let Some(inst) = program.body.get(at) {
        at += 1;
        if inst.guard.is_some_and(|(r, holds)| (registers[r] != 0) != holds) {
            continue;
        }
        let arg = |k: usize| match inst.args[k] {
            Arg::Reg(r) => registers[r],
            Arg::Bits(bits) => bits,
            Arg::Special(s) => place[s],
        };
        let bytes = inst.ty.bits() as usize / 8;
        let value = match inst.code {
            Code::Ret => return Ok(()),
            Code::Bra(target) => {
                at = target;
                continue;
            }
            Code::Load => memory.load(arg(0).wrapping_add(inst.by as u64), bytes)?,
            Code::Store => {
                memory.store(arg(0).wrapping_add(inst.by as u64), bytes, arg(1))?;
                continue;
            }
            Code::LoadParam => {
                let mut word = [0; 8];
                word[..bytes].copy_from_slice(&params[inst.by as usize..inst.by as usize + bytes]);
                u64::from_le_bytes(word)
            }
            _ => value(inst, [arg(0), arg(1), arg(2)]),
        };
        registers[inst.to] = value & mask(program.registers[inst.to]);
    }
    Ok(())
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
