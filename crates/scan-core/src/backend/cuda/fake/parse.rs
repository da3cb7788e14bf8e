//! The subset of PTX that kernels are written in, read from text.
//!
//! It refuses what an assembler refuses, and what kernels must not say: float arithmetic without a rounding, which may be contracted, and
//! `.ftz`.

use super::opcodes::{Code, Ty, code};
use rustc_hash::FxHashMap;

/// What an instruction reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// A register.
    Reg(usize),
    /// Bits.
    Bits(u64),
    /// `%tid.x`, `%ntid.x`, `%ctaid.x`, `%nctaid.x`
    Special(usize),
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// The register that decides whether it is done, and for which value.
    pub guard: Option<(usize, bool)>,
    pub code: Code,
    pub ty: Ty,
    pub to: usize,
    pub args: [Arg; 3],
    /// Bytes behind an address.
    pub by: i64,
}

/// A function.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub name: String,
    pub body: Vec<Inst>,
    /// The types of the registers.
    pub registers: Vec<Ty>,
    /// Parameters: where each begins, and bytes of all.
    pub params: FxHashMap<String, u64>,
    pub bytes: u64,
    /// The most threads of a block.
    pub threads: u32,
    /// Bytes of the memory that they share; launches tell more where they may.
    pub shared: usize,
    pub told: bool,
}

type Read<T> = Result<T, String>;

/// The function of a module.
///
/// # Errors
/// The line that is not understood, and why.
pub fn parse(text: &str) -> Read<Program> {
    let mut reader = Reader::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.split("//").next().unwrap_or_default().trim();
        reader.line(line).map_err(|why| format!("line {}: {why}: `{line}`", number + 1))?;
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    program: Program,
    /// Names of registers, without their numbers: the first one, how many, and their type.
    classes: Vec<(String, usize, usize, Ty)>,
    labels: FxHashMap<String, usize>,
    /// Branches whose label was not read yet.
    jumps: Vec<(usize, String)>,
    inside: bool,
    /// The version, and the target.
    target: Option<(u32, u32, u32)>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Read<()> {
        if line.is_empty() || line == "{" || line == ")" {
            self.inside |= line == "{";
            return Ok(());
        }
        if line == "}" {
            self.inside = false;
            return Ok(());
        }
        match line.split_whitespace().next().unwrap_or_default() {
            _ if self.inside && !line.starts_with('.') => self.statement(line),
            ".reg" => self.registers(line),
            ".param" => self.param(line),
            ".visible" => {
                let name = line.strip_prefix(".visible .entry ").and_then(|l| l.strip_suffix('(')).ok_or("an entry")?;
                self.program.name = name.to_string();
                Ok(())
            }
            ".maxntid" => {
                let first = line[".maxntid".len()..].split(',').next().unwrap_or_default();
                self.program.threads = number(first.trim())? as u32;
                Ok(())
            }
            ".shared" => {
                let count = line.strip_prefix(".shared .align 16 .b8 s[").and_then(|l| l.strip_suffix("];")).ok_or("an array")?;
                self.program.shared = number(count)? as usize;
                Ok(())
            }
            ".extern" if line == ".extern .shared .align 16 .b8 s[];" => {
                self.program.told = true;
                Ok(())
            }
            ".version" | ".target" | ".address_size" => self.head(line),
            _ => Err("not a directive".into()),
        }
    }

    fn head(&mut self, line: &str) -> Read<()> {
        let (word, value) = line.split_once(' ').ok_or("a value")?;
        match word {
            ".address_size" if value != "64" => Err("addresses of 64 bits".into()),
            ".target" if !value.starts_with("sm_") => Err("a target".into()),
            ".target" => {
                let (.., target) = self.target.as_mut().ok_or("a version before the target")?;
                *target = number(&value["sm_".len()..])? as u32;
                Ok(())
            }
            ".version" => {
                let (major, minor) = value.split_once('.').ok_or("a version")?;
                self.target = Some((number(major)? as u32, number(minor)? as u32, 0));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn registers(&mut self, line: &str) -> Read<()> {
        let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
        let [_, ty, names] = words[..] else { return Err("a type and names".into()) };
        let ty = Ty::of(&ty[1..]).ok_or("a type of registers")?;
        let (prefix, count) = names.trim_end_matches('>').split_once('<').ok_or("a number of registers")?;
        let count = number(count)? as usize;
        self.classes.push((prefix.to_string(), self.program.registers.len(), count, ty));
        self.program.registers.extend(std::iter::repeat_n(ty, count));
        Ok(())
    }

    fn param(&mut self, line: &str) -> Read<()> {
        let words: Vec<&str> = line.trim_end_matches(',').split_whitespace().collect();
        let (align, bytes, name) = match words[..] {
            [_, ty, name] => {
                let bytes = u64::from(Ty::of(&ty[1..]).ok_or("a type")?.bits()) / 8;
                (bytes, bytes, name)
            }
            [_, ".align", align, ".b8", array] => {
                let (name, count) = array.trim_end_matches(']').split_once('[').ok_or("an array")?;
                (number(align)?, number(count)?, name)
            }
            _ => return Err("a parameter".into()),
        };
        let at = self.program.bytes.next_multiple_of(align);
        self.program.params.insert(name.to_string(), at);
        self.program.bytes = at + bytes;
        Ok(())
    }

    fn statement(&mut self, line: &str) -> Read<()> {
        if let Some(label) = line.strip_suffix(':') {
            let again = self.labels.insert(label.to_string(), self.program.body.len());
            return if again.is_some() { Err("a label twice".into()) } else { Ok(()) };
        }
        let mut rest = line.strip_suffix(';').ok_or("no `;`")?;
        let mut guard = None;
        if let Some(guarded) = rest.strip_prefix('@') {
            let (name, inst) = guarded.split_once(' ').ok_or("an instruction")?;
            let (register, ty) = self.register(name.trim_start_matches('!'))?;
            if ty != Ty::Pred {
                return Err("a guard that is no predicate".into());
            }
            (guard, rest) = (Some((register, !name.starts_with('!'))), inst);
        }
        let (opcode, operands) = rest.split_once(' ').unwrap_or((rest, ""));
        if let Some((count, ty)) = opcode.strip_prefix("ld.shared.v").and_then(|rest| rest.split_once('.')) {
            return self.vector(guard, count, ty, operands);
        }
        let mut inst = self.instruction(opcode, operands)?;
        inst.guard = guard;
        self.program.body.push(inst);
        Ok(())
    }

    /// A load of several values that lie beside each other: from a multiple of their bytes, one after the other.
    fn vector(&mut self, guard: Option<(usize, bool)>, count: &str, ty: &str, operands: &str) -> Read<()> {
        let [values, place] = &split(operands)[..] else { return Err("two operands".into()) };
        let values: Vec<String> = values.trim_matches(['{', '}']).split(',').map(|v| v.trim().to_string()).collect();
        let ty = Ty::of(ty).ok_or("no type")?;
        let (each, all) = (i64::from(ty.bits() / 8), ty.bits() as usize / 8 * values.len());
        if number(count)? as usize != values.len() || ![8, 16].contains(&all) {
            return Err("so many values".into());
        }
        for (k, value) in values.into_iter().enumerate() {
            let inst = self.access(Code::LoadShared, ty, &[value, place.clone()])?;
            if k == 0 {
                self.program.body.push(Inst { guard, code: Code::Aligned(all), ..inst.clone() });
            }
            self.program.body.push(Inst { guard, by: inst.by + k as i64 * each, ..inst });
        }
        Ok(())
    }

    fn register(&self, name: &str) -> Read<(usize, Ty)> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let (_, first, count, ty) = self.classes.iter().find(|c| c.0 == prefix).ok_or_else(|| format!("no register {name}"))?;
        let k = number(&name[prefix.len()..])? as usize;
        if k < *count { Ok((first + k, *ty)) } else { Err(format!("no register {name}")) }
    }

    fn instruction(&mut self, opcode: &str, operands: &str) -> Read<Inst> {
        let words: Vec<&str> = opcode.split('.').collect();
        let operands: Vec<String> = split(operands);
        let ret = Inst { guard: None, code: Code::Ret, ty: Ty::B32, to: 0, args: [Arg::Bits(0); 3], by: 0 };
        match words[..] {
            ["ret"] => return Ok(ret),
            ["bar", "sync"] if operands == ["0"] => return Ok(Inst { code: Code::Barrier, ..ret }),
            ["cp", "async", ..] => return self.background(&words[2..], &operands, ret),
            ["bra"] => {
                self.jumps.push((self.program.body.len(), operands.concat()));
                return Ok(Inst { code: Code::Bra(0), ..ret });
            }
            _ => {}
        }
        let ty = Ty::of(words[words.len() - 1]).ok_or("no type")?;
        let (code, count) = code(&words[..words.len() - 1], ty)?;
        match code {
            Code::Load | Code::LoadParam | Code::Store | Code::LoadShared | Code::StoreShared | Code::AddTo => {
                self.access(code, ty, &operands)
            }
            _ => self.arithmetic(code, count, ty, &operands),
        }
    }

    /// What copies in the background.
    fn background(&self, words: &[&str], operands: &[String], ret: Inst) -> Read<Inst> {
        if self.target.is_none_or(|target| target.2 < 80) {
            return Err("not for this target".into());
        }
        let code = match (words, operands) {
            (["commit_group"], []) => Code::Commit,
            (["wait_all"], []) => Code::Landed(0),
            (["wait_group"], [count]) => Code::Landed(number(count)? as usize),
            (["ca", "shared", "global"], [to, from, bytes]) => {
                let bytes = number(bytes)? as usize;
                let to = self.access(Code::LoadShared, Ty::B32, &["%r0".to_string(), to.clone()])?;
                let from = self.access(Code::Load, Ty::B32, &["%r0".to_string(), from.clone()])?;
                let args = [to.args[0], from.args[0], Arg::Bits(from.by as u64)];
                return if [4, 8, 16].contains(&bytes) {
                    Ok(Inst { code: Code::CopyAsync(bytes), args, by: to.by, ..ret })
                } else {
                    Err("4, 8 or 16 bytes".into())
                };
            }
            _ => return Err("no such copy".into()),
        };
        Ok(Inst { code, ..ret })
    }

    fn access(&self, code: Code, ty: Ty, operands: &[String]) -> Read<Inst> {
        let [first, second] = operands else { return Err("two operands".into()) };
        let stores = matches!(code, Code::Store | Code::StoreShared | Code::AddTo);
        let (place, other) = if stores { (first, second) } else { (second, first) };
        let place = place.strip_prefix('[').and_then(|p| p.strip_suffix(']')).ok_or("an address")?;
        let (name, by) = place.split_once('+').map_or((place, Ok(0)), |(name, by)| (name, distance(by)));
        let mut inst = Inst { guard: None, code, ty, to: 0, args: [Arg::Bits(0); 3], by: by? };
        if code == Code::LoadParam {
            inst.by += *self.program.params.get(name).ok_or("no such parameter")? as i64;
        } else {
            let (register, has) = self.register(name)?;
            let wide = if matches!(code, Code::LoadShared | Code::StoreShared) { Ty::U32 } else { Ty::U64 };
            if !has.serves(wide) {
                return Err(format!("an address has {} bits", wide.bits()));
            }
            inst.args[0] = Arg::Reg(register);
        }
        if stores {
            inst.args[1] = self.arg(other, ty)?;
        } else {
            inst.to = self.target_of(other, ty)?;
        }
        Ok(inst)
    }

    fn arithmetic(&self, code: Code, count: usize, ty: Ty, operands: &[String]) -> Read<Inst> {
        let (to, from) = operands.split_first().ok_or("no operands")?;
        if let [pair] = from
            && pair.starts_with('{')
        {
            let halves: Vec<&str> = pair.trim_matches(['{', '}']).split(',').map(str::trim).collect();
            let [low, high] = halves[..] else { return Err("two halves".into()) };
            let args = [self.arg(low, Ty::B32)?, self.arg(high, Ty::B32)?, Arg::Bits(0)];
            return Ok(Inst { guard: None, code: Code::Pack, ty, to: self.target_of(to, ty)?, args, by: 0 });
        }
        if from.len() != count {
            return Err(format!("{count} operands"));
        }
        // The type of what it gives, and of each that it reads.
        let (gives, reads) = match code {
            Code::Setp(_) => (Ty::Pred, [ty; 3]),
            Code::Selp => (ty, [ty, ty, Ty::Pred]),
            Code::MulWide | Code::MadWide => {
                let wide = if ty.is_signed() { Ty::S64 } else { Ty::U64 };
                (wide, [ty, ty, wide])
            }
            Code::Shl | Code::Shr => (ty, [ty, Ty::U32, Ty::U32]),
            // The last type of a conversion is the one that it reads.
            Code::Cvt(to, _) => (widened(to), [widened(ty); 3]),
            _ => (ty, [ty; 3]),
        };
        let mut args = [Arg::Bits(0); 3];
        for (k, operand) in from.iter().enumerate() {
            args[k] = self.arg(operand, reads[k])?;
        }
        Ok(Inst { guard: None, code, ty, to: self.target_of(to, gives)?, args, by: 0 })
    }

    fn target_of(&self, name: &str, ty: Ty) -> Read<usize> {
        let (register, has) = self.register(name)?;
        if has.serves(ty) { Ok(register) } else { Err(format!("{name} is no {ty:?}")) }
    }

    fn arg(&self, text: &str, ty: Ty) -> Read<Arg> {
        if let Some(k) = ["%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x"].iter().position(|s| *s == text) {
            return Ok(Arg::Special(k));
        }
        if text.starts_with('%') {
            return self.target_of(text, ty).map(Arg::Reg);
        }
        if text == "s" && (self.program.shared > 0 || self.program.told) && ty == Ty::U32 {
            return Ok(Arg::Bits(0));
        }
        if let Some(hex) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0d")) {
            let whole = hex.len() == ty.bits() as usize / 4 && ty.is_float();
            let bits = u64::from_str_radix(hex, 16).ok().filter(|_| whole);
            return bits.map(Arg::Bits).ok_or_else(|| "a float constant".to_string());
        }
        if ty.is_float() || ty == Ty::Pred {
            return Err("an integer where another type stands".into());
        }
        let mask = u64::MAX >> (64 - ty.bits());
        let value = match text.strip_prefix('-') {
            Some(positive) => number(positive)?.wrapping_neg(),
            None => number(text)?,
        };
        Ok(Arg::Bits(value & mask))
    }

    fn finish(mut self) -> Read<Program> {
        for (at, label) in &self.jumps {
            let target = *self.labels.get(label).ok_or_else(|| format!("no label {label}"))?;
            self.program.body[*at].code = Code::Bra(target);
        }
        if self.program.name.is_empty() { Err("no entry".into()) } else { Ok(self.program) }
    }
}

/// Registers hold integers of 8 and 16 bits in 32.
fn widened(ty: Ty) -> Ty {
    match ty {
        Ty::U8 | Ty::U16 => Ty::U32,
        Ty::S8 | Ty::S16 => Ty::S32,
        ty => ty,
    }
}

/// A number with a sign, of 32 bits.
fn distance(text: &str) -> Read<i64> {
    let away = text.strip_prefix('-').map_or_else(|| number(text).map(|n| n as i64), |n| number(n).map(|n| -(n as i64)))?;
    i32::try_from(away).map(i64::from).map_err(|_| "too far".to_string())
}

fn number(text: &str) -> Read<u64> {
    let found = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    found.map_err(|_| format!("{text:?} is no number"))
}

/// Operands, of which one in braces has several parts.
fn split(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0;
    for c in text.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => found.push(String::new()),
            c => found.last_mut().expect("one at least").push(c),
        }
    }
    found.into_iter().map(|f| f.trim().to_string()).filter(|f| !f.is_empty()).collect()
}
