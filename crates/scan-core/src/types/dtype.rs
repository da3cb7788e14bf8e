//! Element types and NumPy's promotion between them.

/// The element type of an array. Complex types are not supported.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert_eq!(DType::I32.promote(DType::F32), DType::F64);
/// assert_eq!(DType::parse("float32"), Some(DType::F32));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DType {
    /// Truth values.
    Bool,
    /// 8-bit signed integers.
    I8,
    /// 16-bit signed integers.
    I16,
    /// 32-bit signed integers.
    I32,
    /// 64-bit signed integers.
    I64,
    /// 8-bit unsigned integers.
    U8,
    /// 16-bit unsigned integers.
    U16,
    /// 32-bit unsigned integers.
    U32,
    /// 64-bit unsigned integers.
    U64,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

/// Every dtype with its NumPy name and its short name in the text form.
pub const DTYPES: [(DType, &str, &str); 11] = [
    (DType::Bool, "bool", "bool"),
    (DType::I8, "int8", "i8"),
    (DType::I16, "int16", "i16"),
    (DType::I32, "int32", "i32"),
    (DType::I64, "int64", "i64"),
    (DType::U8, "uint8", "u8"),
    (DType::U16, "uint16", "u16"),
    (DType::U32, "uint32", "u32"),
    (DType::U64, "uint64", "u64"),
    (DType::F32, "float32", "f32"),
    (DType::F64, "float64", "f64"),
];

impl DType {
    /// NumPy's name, `float64`.
    pub fn name(self) -> &'static str {
        DTYPES[self as usize].1
    }
    /// The name in the text form, `f64`.
    pub fn short(self) -> &'static str {
        DTYPES[self as usize].2
    }
    /// The dtype of a NumPy or short name.
    pub fn parse(name: &str) -> Option<DType> {
        DTYPES.iter().find(|(_, n, s)| *n == name || *s == name).map(|d| d.0)
    }
    /// Bytes per element.
    pub fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }
    /// True for f32 and f64.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }
    /// True for signed and unsigned integers (not bool).
    pub fn is_int(self) -> bool {
        !self.is_float() && self != DType::Bool
    }
    /// True for signed integers.
    pub fn is_signed_int(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }
    /// True for unsigned integers.
    pub fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// NumPy's `promote_types`: the smallest dtype that holds both.
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        let (a, b) = if self <= other { (self, other) } else { (other, self) };
        match (a, b) {
            _ if a == b => a,
            (Bool, _) => b,
            (_, F64) => F64,
            (I8 | I16 | U8 | U16, F32) => F32,
            (_, F32) => F64,
            (_, I64 | I32 | I16) if a.is_signed_int() => b,
            (_, U16 | U32 | U64) if a.is_unsigned() => b,
            (I8, U8) => I16,
            (I8 | I16, U8 | U16) => {
                if b == U8 {
                    I16
                } else {
                    I32
                }
            }
            (I8 | I16 | I32, U8 | U16 | U32) => {
                if b == U32 {
                    I64
                } else {
                    I32
                }
            }
            (I64, U8 | U16 | U32) => I64,
            (_, U64) => F64,
            _ => F64,
        }
    }

    /// The float dtype that a float-only function of this dtype gives, as NumPy does
    /// except that small integers give f64 (there is no f16).
    pub fn to_float(self) -> DType {
        if self == DType::F32 { DType::F32 } else { DType::F64 }
    }

    /// The dtype of a sum or product over this dtype: small ints widen to 64 bit.
    pub fn accumulator(self) -> DType {
        match self {
            DType::F32 | DType::F64 => self,
            d if d.is_unsigned() => DType::U64,
            _ => DType::I64,
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::DType::{self, *};

    /// Rows of `np.promote_types`, order as in `DTYPES`, recorded from NumPy 2.
    const TABLE: [[DType; 11]; 11] = [
        [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64],
        [I8, I8, I16, I32, I64, I16, I32, I64, F64, F32, F64],
        [I16, I16, I16, I32, I64, I16, I32, I64, F64, F32, F64],
        [I32, I32, I32, I32, I64, I32, I32, I64, F64, F64, F64],
        [I64, I64, I64, I64, I64, I64, I64, I64, F64, F64, F64],
        [U8, I16, I16, I32, I64, U8, U16, U32, U64, F32, F64],
        [U16, I32, I32, I32, I64, U16, U16, U32, U64, F32, F64],
        [U32, I64, I64, I64, I64, U32, U32, U32, U64, F64, F64],
        [U64, F64, F64, F64, F64, U64, U64, U64, U64, F64, F64],
        [F32, F32, F32, F64, F64, F32, F32, F64, F64, F32, F64],
        [F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, F64],
    ];

    #[test]
    fn promotion_is_numpys() {
        for (i, (a, ..)) in super::DTYPES.iter().enumerate() {
            for (j, (b, ..)) in super::DTYPES.iter().enumerate() {
                assert_eq!(a.promote(*b), TABLE[i][j], "{a} {b}");
            }
        }
    }
}
