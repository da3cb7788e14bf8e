//! The text form of a kernel, read. What it names is there, and before it is used; whether dtypes and operands fit, [`verify`](super::verify())
//! tells. No text makes this module panic or overflow the stack.

use super::{Argument, Bin, Carry, CarryId, Cmp, HostFn, Inst, Kernel, Lane, Loop, Mem, MemId, Op, Reg, Store, Un};
use crate::base::Result;
use crate::base::words::{Cursor, Tok};
use crate::types::DType;
use smallvec::SmallVec;
use std::sync::Arc;

/// Loops stand in loops so deep at most, as those of graphs do.
const DEPTH: usize = 100;

/// Reads a kernel.
///
/// # Errors
/// `E0903` text outside the grammar, `E0904` a name that is unknown or out of order, `E0906` a number outside the limits.
pub fn parse(text: &str) -> Result<Kernel> {
    let mut cursor = Cursor::new(text, usize::MAX)?;
    let kernel = kernel(&mut cursor)?;
    if *cursor.peek() == Tok::End { Ok(kernel) } else { cursor.unexpected("the end of the text") }
}

/// A kernel up to the closing brace around it, or to the end of the text.
pub(crate) fn kernel(cursor: &mut Cursor) -> Result<Kernel> {
    Reader { cursor, depth: 0 }.kernel()
}

struct Reader<'c, 't> {
    cursor: &'c mut Cursor<'t>,
    depth: usize,
}

impl Reader<'_, '_> {
    fn kernel(&mut self) -> Result<Kernel> {
        let mut kernel = Kernel::default();
        while self.declared("m", kernel.mems.len())? {
            kernel.mems.push(self.mem()?);
        }
        while self.declared("c", kernel.carries.len())? {
            let mem = MemId(self.cursor.numbered("m")?);
            self.cursor.expect_word("next")?;
            kernel.carries.push(Carry { mem, next: Reg(self.cursor.numbered("r")?) });
        }
        while self.declared("r", kernel.body.len())? {
            let dtype = self.cursor.named("a dtype", DType::parse)?;
            self.cursor.expect('=')?;
            let op = self.op(dtype)?;
            kernel.body.push(Inst { op, dtype });
        }
        while self.cursor.eat_word("store") {
            let mem = MemId(self.cursor.numbered("m")?);
            let at = if self.cursor.is('[') { Some(self.number_in_brackets()?) } else { None };
            self.cursor.expect('=')?;
            kernel.stores.push(Store { mem, value: Reg(self.cursor.numbered("r")?), at });
        }
        if self.cursor.eat_word("stop") {
            kernel.stop = Some(Reg(self.cursor.numbered("r")?));
        }
        Ok(kernel)
    }

    fn reg(&mut self) -> Result<Reg> {
        self.cursor.numbered("r").map(Reg)
    }
    /// `[r3]`
    fn number_in_brackets(&mut self) -> Result<Reg> {
        self.cursor.expect('[')?;
        let at = self.reg()?;
        self.cursor.expect(']')?;
        Ok(at)
    }
    /// `m3:`, where that is what comes next.
    fn declared(&mut self, letter: &str, next: usize) -> Result<bool> {
        let Some(number) = self.cursor.peek_numbered(letter).filter(|_| *self.cursor.peek_at(1) == Tok::Mark(':')) else {
            return Ok(false);
        };
        if number as usize != next {
            return self.cursor.fail(self.cursor.at(), "E0904", format!("expected `{letter}{next}`, got `{letter}{number}`"));
        }
        self.cursor.pos += 2;
        Ok(true)
    }

    fn mem(&mut self) -> Result<Mem> {
        let dtype = self.cursor.named("a dtype", DType::parse)?;
        let lane = match self.cursor.eat_word("per") {
            false => Lane::Uniform,
            true if self.cursor.eat_word("lane") => Lane::Unit,
            true => {
                let apart = self.cursor.whole()?;
                self.cursor.expect_word("lane")?;
                Lane::Apart(apart)
            }
        };
        let stride = if self.cursor.eat_word("by") { Some(self.cursor.whole()?) } else { None };
        let table = if self.cursor.eat_word("table") { self.cursor.amount()? } else { 0 };
        let beside = match self.cursor.eat_word("beside") {
            true => Some((MemId(self.cursor.numbered("m")?), self.cursor.whole()?)),
            false => None,
        };
        Ok(Mem { dtype, lane, stride, table, beside })
    }

    fn op(&mut self, dtype: DType) -> Result<Op> {
        let at = self.cursor.at();
        let Tok::Word(name) = self.cursor.next() else { return self.cursor.fail(at, "E0903", "expected an instruction") };
        Ok(match name {
            "const" => Op::Const(self.constant(dtype)?),
            "step" => Op::Step,
            "load" => Op::Load(MemId(self.cursor.numbered("m")?)),
            "gather" => {
                let mem = MemId(self.cursor.numbered("m")?);
                self.cursor.expect_word("at")?;
                Op::Gather(mem, self.reg()?)
            }
            "carry" => Op::Carry(CarryId(self.cursor.numbered("c")?)),
            "fma" => Op::Fma(self.reg()?, self.reg()?, self.reg()?),
            "select" => Op::Select(self.reg()?, self.reg()?, self.reg()?),
            "convert" => Op::Convert(self.reg()?),
            "bits" => Op::Bits(self.reg()?),
            "call" => self.call()?,
            "loop" => self.looped()?,
            "last" => {
                let carry = CarryId(self.cursor.numbered("c")?);
                self.cursor.expect_word("of")?;
                Op::Last(self.reg()?, carry)
            }
            "left" => {
                let mem = MemId(self.cursor.numbered("m")?);
                self.cursor.expect_word("of")?;
                Op::Left(self.reg()?, mem, self.reg()?)
            }
            _ => self.function(name, at)?,
        })
    }
    /// A function of one or two values.
    fn function(&mut self, name: &str, at: usize) -> Result<Op> {
        if let Some(op) = Un::named(name) {
            return Ok(Op::Un(op, self.reg()?));
        }
        if let Some(op) = Bin::named(name) {
            return Ok(Op::Bin(op, self.reg()?, self.reg()?));
        }
        match Cmp::named(name) {
            Some(op) => Ok(Op::Cmp(op, self.reg()?, self.reg()?)),
            None => self.cursor.fail(at, "E0903", format!("there is no instruction `{name}`")),
        }
    }
    fn call(&mut self) -> Result<Op> {
        let f = self.cursor.named("a function of this machine", HostFn::named)?;
        let args = (0..f.arity()).map(|_| self.reg()).collect::<Result<SmallVec<[Reg; 2]>>>()?;
        Ok(Op::Call(f, args))
    }
    /// The bits of a number of this dtype.
    fn constant(&mut self, dtype: DType) -> Result<u64> {
        let at = self.cursor.at();
        let text = self.cursor.number()?;
        let found = super::print::bits_of(dtype, &text);
        found.map_or_else(|| self.cursor.fail(at, "E0903", format!("expected a number of dtype {dtype}, got `{text}`")), Ok)
    }
    /// `r3 steps { … }`
    fn looped(&mut self) -> Result<Op> {
        let steps = self.reg()?;
        self.cursor.expect_word("steps")?;
        self.depth += 1;
        if self.depth > DEPTH {
            return self.cursor.fail(self.cursor.at(), "E0906", format!("loops nest at most {DEPTH} deep"));
        }
        self.cursor.expect('{')?;
        let mut operands: SmallVec<[Argument; 8]> = SmallVec::new();
        while self.cursor.peek_numbered("m").is_some() && *self.cursor.peek_at(1) == Tok::Word("is") {
            let at = self.cursor.at();
            if self.cursor.numbered("m")? as usize != operands.len() {
                return self.cursor.fail(at, "E0904", format!("expected `m{}`", operands.len()));
            }
            self.cursor.pos += 1;
            operands.push(self.argument()?);
        }
        let mut begin: SmallVec<[(MemId, usize, Reg); 2]> = SmallVec::new();
        while self.cursor.eat_word("begin") {
            let mem = MemId(self.cursor.numbered("m")?);
            self.cursor.expect('[')?;
            let at = self.cursor.amount()?;
            self.cursor.expect(']')?;
            self.cursor.expect('=')?;
            begin.push((mem, at, self.reg()?));
        }
        let kernel = Arc::new(self.kernel()?);
        self.cursor.expect('}')?;
        self.depth -= 1;
        Ok(Op::Loop(Loop { kernel, operands, steps, begin }))
    }
    fn argument(&mut self) -> Result<Argument> {
        if self.cursor.eat_word("own") {
            return Ok(Argument::Own);
        }
        if self.cursor.peek_numbered("r").is_some() {
            return Ok(Argument::Value(self.reg()?));
        }
        let mem = MemId(self.cursor.numbered("m")?);
        if self.cursor.eat_word("of") {
            return Ok(Argument::Left(self.reg()?, mem));
        }
        self.cursor.expect_word("from")?;
        Ok(Argument::Table(mem, self.cursor.amount()?))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::kernel::testing::{Options, case};

    /// Kernels with all there is in them: 2,000 with lanes, 2,000 with loops, tables that are written, and stops.
    #[test]
    fn what_is_printed_is_read_back() {
        let single = Options { stop: true, scatters: true, loops: true, lanes: 1..=1, ..Options::default() };
        for options in [&Options::default(), &single] {
            for seed in 0..2000 {
                let kernel = case(seed, options).kernel;
                let text = kernel.to_string();
                let back = parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
                assert_eq!(back, kernel, "seed {seed}\n{text}");
                assert_eq!(back.to_string(), text);
            }
        }
    }

    /// Any text with one word left out, doubled or in place of another is a kernel or an error.
    #[test]
    fn no_text_makes_it_panic() {
        let options = Options { stop: true, scatters: true, loops: true, lanes: 1..=1, ..Options::default() };
        let mut read = [0, 0];
        for seed in 0..40 {
            let text = case(seed, &options).kernel.to_string();
            let words: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
            for k in 0..words.len() {
                let other = words[(k * 7 + seed as usize) % words.len()];
                for with in ["", other, "-9223372036854775808 ", "r99999999999 ", "-1 ", "{ "] {
                    let changed = [&words[..k], &[with], &words[k + 1..]].concat().concat();
                    read[usize::from(parse(&changed).is_ok())] += 1;
                }
            }
        }
        assert!(read[0] > 1000 && read[1] > 1000, "{read:?}");
    }

    #[test]
    fn errors_name_the_place() {
        let fault = |text: &str| parse(text).expect_err("must fail").title;
        assert_eq!(fault("m0: f64\nm2: f64\n"), "line 2, column 1: expected `m1`, got `m2`");
        assert_eq!(fault("r0: f64 = sinus r1\n"), "line 1, column 11: there is no instruction `sinus`");
        assert_eq!(fault("r0: u8 = const 256\n"), "line 1, column 16: expected a number of dtype uint8, got `256`");
        assert_eq!(fault("r0: f64 = add r1\n"), "line 2, column 1: expected `r` and a number, got the end of the text");
        assert_eq!(fault("m0: f64 by 2147483648"), "line 1, column 12: `2147483648` is out of range");
        assert_eq!(fault("m0: f64 table -9223372036854775808"), "line 1, column 15: `-9223372036854775808` is out of range");
        assert_eq!(fault("m0: f64 table 1099511627777"), "line 1, column 15: `1099511627777` is more than 1099511627776");
        assert_eq!(fault("m0: f64\nstop\n"), "line 3, column 1: expected `r` and a number, got the end of the text");
        assert_eq!(fault("r0: i64 = loop r1 steps { m1 is own }"), "line 1, column 27: expected `m0`");
    }
}
