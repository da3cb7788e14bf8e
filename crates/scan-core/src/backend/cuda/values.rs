//! Values of kernels in PTX: registers, memory, arithmetic, conversions.

use super::text::Text;
use crate::kernel::{Bin, Cmp, Un};
use crate::types::DType;

/// A class of registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A truth value.
    Pred,
    /// 32 bits of an integer.
    Word,
    /// 64 bits of an integer.
    Long,
    /// An f32.
    Single,
    /// An f64.
    Double,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 5] = [Class::Pred, Class::Word, Class::Long, Class::Single, Class::Double];

    /// The class that holds values of a dtype: integers of 8 and 16 bits lie in 32.
    pub fn of(dtype: DType) -> Class {
        match dtype {
            DType::Bool => Class::Pred,
            DType::F32 => Class::Single,
            DType::F64 => Class::Double,
            d if d.size() == 8 => Class::Long,
            _ => Class::Word,
        }
    }
    /// What names of its registers begin with.
    pub fn prefix(self) -> &'static str {
        match self {
            Class::Pred => "%p",
            Class::Word => "%r",
            Class::Long => "%rd",
            Class::Single => "%f",
            Class::Double => "%fd",
        }
    }
    /// The type of its registers.
    pub fn ty(self) -> &'static str {
        match self {
            Class::Pred => "pred",
            Class::Word => "b32",
            Class::Long => "b64",
            Class::Single => "f32",
            Class::Double => "f64",
        }
    }
}

/// The type that instructions name for a dtype, with its sign.
fn ty(dtype: DType) -> &'static str {
    match (Class::of(dtype), dtype.is_unsigned()) {
        (Class::Word, true) => "u32",
        (Class::Word, false) => "s32",
        (Class::Long, true) => "u64",
        (Class::Long, false) => "s64",
        (class, _) => class.ty(),
    }
}

/// Bits of a dtype's elements, without a sign.
fn bits(dtype: DType) -> &'static str {
    if dtype.size() == 8 { "b64" } else { "b32" }
}

/// A constant of these bits, as an operand of an instruction; a bool's as a word.
pub fn literal(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::I8 => format!("{:#x}", bits as i8 as i32 as u32),
        DType::I16 => format!("{:#x}", bits as i16 as i32 as u32),
        DType::F32 => format!("0f{:08X}", bits as u32),
        DType::F64 => format!("0d{bits:016X}"),
        _ => format!("{bits:#x}"),
    }
}

impl Text {
    /// A register gets a constant.
    pub fn constant(&mut self, dtype: DType, to: &str, bits: u64) {
        let value = literal(dtype, bits);
        match Class::of(dtype) {
            Class::Pred => self.line(format!("setp.ne.u32 {to}, {value}, 0;")),
            class => self.line(format!("mov.{} {to}, {value};", class.ty())),
        }
    }

    /// A register gets another one's value.
    pub fn copied(&mut self, dtype: DType, to: &str, from: &str) {
        self.line(format!("mov.{} {to}, {from};", Class::of(dtype).ty()));
    }

    /// A register gets the element at an address.
    pub fn load(&mut self, dtype: DType, to: &str, at: &str) {
        self.load_from("global", dtype, to, at);
    }
    /// The same of a kind of memory.
    pub fn load_from(&mut self, memory: &str, dtype: DType, to: &str, at: &str) {
        match Class::of(dtype) {
            Class::Pred => {
                let word = self.temp(Class::Word);
                self.line(format!("ld.{memory}.u32 {word}, [{at}];"));
                self.line(format!("setp.ne.u32 {to}, {word}, 0;"));
            }
            class => self.line(format!("ld.{memory}.{} {to}, [{at}];", class.ty())),
        }
    }

    /// The element at an address gets a register's value.
    pub fn store(&mut self, dtype: DType, at: &str, value: &str) {
        match Class::of(dtype) {
            Class::Pred => {
                let word = self.temp(Class::Word);
                self.line(format!("selp.u32 {word}, 1, 0, {value};"));
                self.line(format!("st.global.u32 [{at}], {word};"));
            }
            class => self.line(format!("st.global.{} [{at}], {value};", class.ty())),
        }
    }

    /// A register gets an integer brought back to the range of its dtype.
    fn fitted(&mut self, dtype: DType, to: &str, value: &str) {
        match dtype {
            DType::I8 | DType::I16 => self.line(format!("cvt.s32.s{} {to}, {value};", 8 * dtype.size())),
            DType::U8 | DType::U16 => self.line(format!("cvt.u32.u{} {to}, {value};", 8 * dtype.size())),
            _ => self.copied(dtype, to, value),
        }
    }

    /// An instruction whose result may leave the range of a dtype that is narrower than its register.
    fn wrapped(&mut self, dtype: DType, to: &str, inst: &str) {
        if dtype.size() < 4 && dtype != DType::Bool {
            let wide = self.temp(Class::Word);
            self.line(inst.replacen('@', &wide, 1));
            self.fitted(dtype, to, &wide);
        } else {
            self.line(inst.replacen('@', to, 1));
        }
    }

    /// A function of one value.
    pub fn unary(&mut self, op: Un, dtype: DType, to: &str, x: &str) {
        let ty = ty(dtype);
        let inst = match op {
            Un::Neg if dtype.is_float() => format!("neg.{ty}"),
            // There is none for unsigned integers, whose bits are the same.
            Un::Neg => format!("neg.s{}", &bits(dtype)[1..]),
            Un::Abs => format!("abs.{ty}"),
            Un::Not if dtype == DType::Bool => "not.pred".into(),
            Un::Not => format!("not.{}", bits(dtype)),
            Un::Sqrt => format!("sqrt.rn.{ty}"),
            Un::Floor => format!("cvt.rmi.{ty}.{ty}"),
            Un::Ceil => format!("cvt.rpi.{ty}.{ty}"),
            Un::Trunc => format!("cvt.rzi.{ty}.{ty}"),
            Un::Round => format!("cvt.rni.{ty}.{ty}"),
        };
        self.wrapped(dtype, to, &format!("{inst} @, {x};"));
    }

    /// A function of two values.
    pub fn binary(&mut self, op: Bin, dtype: DType, to: &str, x: &str, y: &str) {
        let (float, ty) = (dtype.is_float(), ty(dtype));
        let bits = if dtype == DType::Bool { "pred" } else { bits(dtype) };
        // Without the rounding in its name a product and a sum may become one instruction.
        let inst = match op {
            Bin::Add if float => format!("add.rn.{ty}"),
            Bin::Sub if float => format!("sub.rn.{ty}"),
            Bin::Mul if float => format!("mul.rn.{ty}"),
            Bin::Add => format!("add.{ty}"),
            Bin::Sub => format!("sub.{ty}"),
            Bin::Mul => format!("mul.lo.{ty}"),
            Bin::Div => format!("div.rn.{ty}"),
            Bin::And => format!("and.{bits}"),
            Bin::Or => format!("or.{bits}"),
            Bin::Xor => format!("xor.{bits}"),
            Bin::Shl => format!("shl.{bits}"),
            Bin::Shr => format!("shr.{ty}"),
            // Only of u64, by what is not 0.
            Bin::FloorDiv => format!("div.{ty}"),
            Bin::Mod | Bin::Fmod => format!("rem.{ty}"),
        };
        let y = match (op, Class::of(dtype)) {
            (Bin::Shl | Bin::Shr, Class::Long) => {
                let places = self.temp(Class::Word);
                self.line(format!("cvt.u32.u64 {places}, {y};"));
                places
            }
            _ => y.to_string(),
        };
        self.wrapped(dtype, to, &format!("{inst} @, {x}, {y};"));
    }

    /// Whether a comparison of two values of a dtype holds.
    pub fn compare(&mut self, op: Cmp, dtype: DType, to: &str, x: &str, y: &str) {
        if dtype == DType::Bool {
            return self.compare_truths(op, to, x, y);
        }
        let word = match op {
            Cmp::Eq => "eq",
            // Holds where one of them is NaN, which `ne` of floats does not.
            Cmp::Ne if dtype.is_float() => "neu",
            Cmp::Ne => "ne",
            Cmp::Lt => "lt",
            Cmp::Le => "le",
        };
        self.line(format!("setp.{word}.{} {to}, {x}, {y};", ty(dtype)));
    }

    fn compare_truths(&mut self, op: Cmp, to: &str, x: &str, y: &str) {
        let other = self.temp(Class::Pred);
        let lines = match op {
            Cmp::Ne => [String::new(), format!("xor.pred {to}, {x}, {y};")],
            Cmp::Eq => [format!("xor.pred {other}, {x}, {y};"), format!("not.pred {to}, {other};")],
            Cmp::Lt => [format!("not.pred {other}, {x};"), format!("and.pred {to}, {other}, {y};")],
            Cmp::Le => [format!("not.pred {other}, {x};"), format!("or.pred {to}, {other}, {y};")],
        };
        lines.into_iter().filter(|l| !l.is_empty()).for_each(|l| self.line(l));
    }

    /// A register gets the second value where the first holds, else the third.
    pub fn select(&mut self, dtype: DType, to: &str, [c, x, y]: [&str; 3]) {
        if dtype == DType::Bool {
            self.line(format!("mov.pred {to}, {y};"));
            self.line(format!("@{c} mov.pred {to}, {x};"));
        } else {
            self.line(format!("selp.{} {to}, {x}, {y}, {c};", Class::of(dtype).ty()));
        }
    }

    /// A register gets a value converted by the rule of `types::Cast`.
    pub fn converted(&mut self, from: DType, to: DType, reg: &str, x: &str) {
        match (from, to) {
            _ if from == to => self.copied(to, reg, x),
            (DType::Bool, _) => {
                let one = if to == DType::F32 { u64::from(1f32.to_bits()) } else { 1f64.to_bits() };
                let one = literal(to, if to.is_float() { one } else { 1 });
                self.line(format!("selp.{} {reg}, {one}, {}, {x};", Class::of(to).ty(), literal(to, 0)));
            }
            (_, DType::Bool) => self.line(format!("setp.ne{} {reg}, {x}, {};", numbers(from), literal(from, 0))),
            (DType::F32, DType::F64) => self.line(format!("cvt.f64.f32 {reg}, {x};")),
            (DType::F64, DType::F32) => self.line(format!("cvt.rn.f32.f64 {reg}, {x};")),
            _ if from.is_float() => self.cut(from, to, reg, x),
            _ if to.is_float() => self.line(format!("cvt.rn.{}.{} {reg}, {x};", ty(to), ty(from))),
            _ => self.cast(from, to, reg, x),
        }
    }

    /// Between integers, wrapping.
    fn cast(&mut self, from: DType, to: DType, reg: &str, x: &str) {
        match (Class::of(from), Class::of(to)) {
            (Class::Word, Class::Long) => self.line(format!("cvt.{}64.{} {reg}, {x};", &ty(from)[..1], ty(from))),
            (Class::Long, Class::Word) => self.wrapped(to, reg, &format!("cvt.u32.u64 @, {x};")),
            _ => self.fitted(to, reg, x),
        }
    }

    /// A float cut to an integer: what is too large or too small becomes the last one of the dtype, NaN 0.
    fn cut(&mut self, from: DType, to: DType, reg: &str, x: &str) {
        let class = Class::of(to);
        let mut value = self.temp(class);
        self.line(format!("cvt.rzi.{}.{} {value}, {x};", ty(to), ty(from)));
        if to.size() < 4 {
            let width = 8 * to.size() as u32;
            let (least, most) =
                if to.is_unsigned() { (0, (1i64 << width) - 1) } else { (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1) };
            for (word, limit) in [("max", least), ("min", most)] {
                let inside = self.temp(class);
                self.line(format!("{word}.{} {inside}, {value}, {limit};", ty(to)));
                value = inside;
            }
        }
        // What the instruction makes of NaN depends on the types.
        let number = self.temp(Class::Pred);
        self.line(format!("setp.eq.{} {number}, {x}, {x};", ty(from)));
        self.line(format!("selp.{} {reg}, {value}, 0, {number};", bits(to)));
    }
}

/// The end of `setp.ne` for a dtype: with NaN it holds.
fn numbers(dtype: DType) -> String {
    if dtype.is_float() { format!("u.{}", ty(dtype)) } else { format!(".{}", ty(dtype)) }
}
