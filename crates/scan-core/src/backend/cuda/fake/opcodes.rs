//! What instructions of PTX do, and on which types.

/// Types of instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ty {
    Pred,
    B32,
    B64,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F32,
    F64,
}

impl Ty {
    pub fn of(word: &str) -> Option<Ty> {
        use Ty::*;
        let all = [Pred, B32, B64, U8, U16, U32, U64, S8, S16, S32, S64, F32, F64];
        all.into_iter().find(|t| format!("{t:?}").to_lowercase() == word)
    }
    /// Bits of a value.
    pub fn bits(self) -> u32 {
        match self {
            Ty::Pred => 1,
            Ty::U8 | Ty::S8 => 8,
            Ty::U16 | Ty::S16 => 16,
            Ty::B32 | Ty::U32 | Ty::S32 | Ty::F32 => 32,
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::F64 => 64,
        }
    }
    pub fn is_float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F64)
    }
    pub fn is_signed(self) -> bool {
        matches!(self, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64)
    }
    pub fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, Ty::Pred | Ty::B32 | Ty::B64)
    }
    /// Whether a register of this type may stand where an instruction says `wanted`: types of bits go with every one of their width.
    pub fn serves(self, wanted: Ty) -> bool {
        let untyped = |t: Ty| matches!(t, Ty::B32 | Ty::B64);
        self == wanted || self.bits() == wanted.bits() && (untyped(self) || untyped(wanted)) && self != Ty::Pred
    }
}

/// What an instruction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    Mov,
    Pack,
    LoadParam,
    Load,
    Store,
    Add,
    Sub,
    Mul,
    MulWide,
    MadWide,
    Mad,
    Div,
    Rem,
    Fma,
    Sqrt,
    Neg,
    Abs,
    Not,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Min,
    Max,
    /// A comparison: what holds for less, equal, greater and unordered.
    Setp([bool; 4]),
    Selp,
    /// A conversion from a type, with the word of its rounding.
    Cvt(Ty, Round),
    Bra(usize),
    Ret,
    /// Of the memory of a block.
    LoadShared,
    StoreShared,
    /// An address is a multiple of so many bytes.
    Aligned(usize),
    /// All threads of a block wait for each other.
    Barrier,
    /// Memory is added to.
    AddTo,
    /// A copy of so many bytes to the memory of a block, in the background; what was asked for is a group; all but so many groups are there.
    CopyAsync(usize),
    Commit,
    Landed(usize),
}

/// How a conversion rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    None,
    Nearest,
    Even,
    Zero,
    Down,
    Up,
}

/// The code of an instruction's words before its last type, and how many values it reads.
pub fn code(words: &[&str], ty: Ty) -> Result<(Code, usize), String> {
    let bits = matches!(ty, Ty::B32 | Ty::B64 | Ty::Pred);
    let (ints, floats) = (ty.is_int() && ty.bits() >= 32, ty.is_float());
    let (code, count, fits) = match words {
        ["mov"] => (Code::Mov, 1, true),
        ["ld", "param"] => (Code::LoadParam, 1, ty != Ty::Pred),
        ["ld", "global"] => (Code::Load, 1, ty != Ty::Pred),
        ["st", "global"] => (Code::Store, 1, ty != Ty::Pred),
        ["ld", "shared"] => (Code::LoadShared, 1, ty != Ty::Pred),
        ["st", "shared"] => (Code::StoreShared, 1, ty != Ty::Pred),
        ["ld", "acquire", "gpu", "global"] => (Code::Load, 1, ty == Ty::U32),
        ["red", "release", "gpu", "global", "add"] => (Code::AddTo, 1, ty == Ty::U32),
        ["add"] => (Code::Add, 2, ints),
        ["sub"] => (Code::Sub, 2, ints),
        ["mul", "lo"] => (Code::Mul, 2, ints),
        ["mul", "wide"] => (Code::MulWide, 2, ints && ty.bits() == 32),
        ["mad", "wide"] => (Code::MadWide, 3, ints && ty.bits() == 32),
        ["mad", "lo"] => (Code::Mad, 3, ints),
        ["div"] => (Code::Div, 2, ints && !ty.is_signed()),
        ["rem"] => (Code::Rem, 2, ints && !ty.is_signed()),
        ["add", "rn"] => (Code::Add, 2, floats),
        ["sub", "rn"] => (Code::Sub, 2, floats),
        ["mul", "rn"] => (Code::Mul, 2, floats),
        ["div", "rn"] => (Code::Div, 2, floats),
        ["fma", "rn"] => (Code::Fma, 3, floats),
        ["sqrt", "rn"] => (Code::Sqrt, 1, floats),
        ["neg"] => (Code::Neg, 1, floats || ints && ty.is_signed()),
        ["abs"] => (Code::Abs, 1, floats),
        ["not"] => (Code::Not, 1, bits),
        ["and"] => (Code::And, 2, bits),
        ["or"] => (Code::Or, 2, bits),
        ["xor"] => (Code::Xor, 2, bits),
        ["shl"] => (Code::Shl, 2, bits && ty != Ty::Pred),
        ["shr"] => (Code::Shr, 2, ints),
        ["min"] => (Code::Min, 2, ints),
        ["max"] => (Code::Max, 2, ints),
        ["selp"] => (Code::Selp, 3, ty != Ty::Pred),
        ["setp", word] => (Code::Setp(relation(word).ok_or("no comparison")?), 2, ints || floats),
        ["cvt", rest @ ..] => return conversion(rest, ty),
        _ => return Err("no such instruction".into()),
    };
    if fits { Ok((code, count)) } else { Err(format!("not of {ty:?}")) }
}

/// What a comparison holds for: less, equal, greater, unordered.
fn relation(word: &str) -> Option<[bool; 4]> {
    let (ordered, unordered) = match word {
        "equ" | "neu" | "ltu" | "leu" | "gtu" | "geu" => (&word[..2], true),
        _ => (word, false),
    };
    let [less, equal, greater] = match ordered {
        "eq" => [false, true, false],
        "ne" => [true, false, true],
        "lt" => [true, false, false],
        "le" => [true, true, false],
        "gt" => [false, false, true],
        "ge" => [false, true, true],
        _ => return None,
    };
    Some([less, equal, greater, unordered])
}

/// A conversion to and from types, which must say how it rounds where it does.
fn conversion(words: &[&str], from: Ty) -> Result<(Code, usize), String> {
    let (round, to) = match words {
        [to] => (Round::None, to),
        [round, to] => {
            let all = [("rn", Round::Nearest), ("rni", Round::Even), ("rzi", Round::Zero), ("rmi", Round::Down), ("rpi", Round::Up)];
            (all.iter().find(|r| r.0 == *round).ok_or("no rounding")?.1, to)
        }
        _ => return Err("a conversion".into()),
    };
    let to = Ty::of(to).ok_or("no type")?;
    let whole = matches!(round, Round::Even | Round::Zero | Round::Down | Round::Up);
    let fits = match (from.is_float(), to.is_float()) {
        (true, true) if from == to => whole,
        (true, true) if to == Ty::F32 => round == Round::Nearest,
        (true, true) => round == Round::None,
        (true, false) => whole && to.is_int(),
        (false, true) => round == Round::Nearest && from.is_int(),
        (false, false) => round == Round::None && from.is_int() && to.is_int(),
    };
    if fits { Ok((Code::Cvt(to, round), 1)) } else { Err("a rounding that is missing or too much".into()) }
}
