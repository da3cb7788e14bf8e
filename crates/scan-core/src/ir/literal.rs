//! Numbers and constant arrays in the text form, exact both ways.

use super::parse::RESERVED;
use crate::dispatch;
use crate::types::array::Data;
use crate::types::{Array, DType, Element};
use rustc_hash::{FxHashMap, FxHashSet};

/// An element as text: shortest digits that read back to the same bits.
pub(crate) trait Literal: Element {
    /// Its text.
    fn show(self) -> String;
    /// Its value; `None` where the text is no such number or out of range.
    fn read(text: &str) -> Option<Self>;
}

macro_rules! plain {
    ($($t:ty),+) => {$(
        impl Literal for $t {
            fn show(self) -> String {
                self.to_string()
            }
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )+};
}
plain!(bool, i8, i16, i32, i64, u8, u16, u32, u64);

/// A NaN other than the usual one shows its sign, or all its bits: `nan`, `-nan`, `nan(0x7ff8000000000001)`.
macro_rules! float {
    ($($t:ty),+) => {$(
        impl Literal for $t {
            fn show(self) -> String {
                let bits = self.to_bits();
                match () {
                    _ if !self.is_nan() => format!("{self:?}"),
                    _ if bits == <$t>::NAN.to_bits() => "nan".into(),
                    _ if bits == (-<$t>::NAN).to_bits() => "-nan".into(),
                    _ => format!("nan({bits:#x})"),
                }
            }
            fn read(text: &str) -> Option<Self> {
                match text {
                    "inf" => Some(<$t>::INFINITY),
                    "-inf" => Some(<$t>::NEG_INFINITY),
                    "nan" => Some(<$t>::NAN),
                    "-nan" => Some(-<$t>::NAN),
                    _ if text.starts_with("nan(0x") => {
                        let bits = text.strip_prefix("nan(0x")?.strip_suffix(')')?;
                        Some(<$t>::from_bits(u64::from_str_radix(bits, 16).ok()?.try_into().ok()?)).filter(|x| x.is_nan())
                    }
                    _ => text.parse::<$t>().ok().filter(|x| x.is_finite()),
                }
            }
        }
    )+};
}
float!(f32, f64);

/// An array as an operand: `2.0:f64`, `true`, `f64[2]{1.0, -0.0}`.
pub(crate) fn show(array: &Array) -> String {
    let elements = elements(array);
    if array.rank() > 0 {
        let dims: Vec<String> = array.shape().iter().map(usize::to_string).collect();
        return format!("{}[{}]{{{}}}", array.dtype().short(), dims.join(", "), elements.join(", "));
    }
    match array.dtype() {
        DType::Bool => elements.concat(),
        dtype => format!("{}:{}", elements.concat(), dtype.short()),
    }
}

fn elements(array: &Array) -> Vec<String> {
    macro_rules! show {
        ($($variant:ident),+) => {
            match array.data() { $(Data::$variant(v) => v.iter().map(|x| x.show()).collect()),+ }
        };
    }
    show!(Bool, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64)
}

/// The array of these elements; `Err` has the position of the first that does not fit. Their number is that of the shape.
pub(crate) fn read(dtype: DType, shape: &[usize], texts: &[String]) -> Result<Array, usize> {
    dispatch!(dtype, T => {
        let element = |(i, t): (usize, &String)| <T as Literal>::read(t).ok_or(i);
        Ok(Array::new(shape, texts.iter().enumerate().map(element).collect::<Result<Vec<T>, usize>>()?))
    })
}

/// Names of one scope: each claimed once.
#[derive(Default)]
pub(crate) struct Names {
    taken: FxHashSet<String>,
    suffix: FxHashMap<String, usize>,
}

impl Names {
    /// The name itself where it is a free identifier, else the nearest one that is.
    pub fn claim(&mut self, name: &str) -> String {
        let base = identifier(name);
        let mut name = base.clone();
        while RESERVED.contains(&name.as_str()) || DType::parse(&name).is_some() || self.taken.contains(&name) {
            let next = self.suffix.entry(base.clone()).or_insert(0);
            *next += 1;
            name = format!("{base}_{next}");
        }
        self.taken.insert(name.clone());
        name
    }
}

/// A name with what no identifier may hold replaced by `_`.
pub(crate) fn identifier(name: &str) -> String {
    let clean: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    if clean.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_') { clean } else { format!("_{clean}") }
}

/// A word in quotes.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            '\r' => out += "\\r",
            '\t' => out += "\\t",
            c if c.is_control() => out += &format!("\\u{{{:x}}}", c as u32),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round<T: Literal>(values: &[T]) {
        let array = Array::vector(values);
        let texts = elements(&array);
        assert_eq!(read(T::DTYPE, &[values.len()], &texts), Ok(array), "{texts:?}");
    }

    #[test]
    fn numbers_round_trip_exactly() {
        round(&[
            0.0,
            -0.0,
            1.5,
            1e300,
            5e-324,
            0.1,
            f64::MAX,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            -f64::NAN,
            f64::from_bits(0x7ff8_0000_0000_0001),
        ]);
        round(&[0.1f32, f32::MIN_POSITIVE, -f32::NAN, f32::from_bits(0x7fc0_0001), f32::MAX]);
        round(&[i64::MIN, i64::MAX, 0]);
        round(&[u64::MAX, 0]);
        round(&[i8::MIN, i8::MAX]);
        round(&[true, false]);
        assert_eq!(read(DType::U8, &[2], &["1".into(), "256".into()]), Err(1));
        assert_eq!(read(DType::F32, &[1], &["1e300".into()]), Err(0));
    }

    #[test]
    fn names_are_unique_identifiers() {
        let mut names = Names::default();
        let claimed: Vec<String> = ["h", "h", "h_1", "a b", "1", "", "return", "f64", "θ"].iter().map(|n| names.claim(n)).collect();
        assert_eq!(claimed, ["h", "h_1", "h_1_1", "a_b", "_1", "_", "return_1", "f64_1", "θ"]);
    }
}
