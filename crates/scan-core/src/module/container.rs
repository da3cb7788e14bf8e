//! A safetensors file as bytes: arrays by name, texts by key, and a checksum over all of it.
//!
//! Written by hand, so that equal contents give equal bytes, and read through the crate `safetensors`, whose reader every other tool has.
//! Nothing that a file claims is believed before it was compared with the file's length: what it costs to read one is at most four times its
//! length and 64 MB.

use crate::bail;
use crate::base::{Diagnostic, Kind, Result};
use crate::dispatch;
use crate::types::array::Element;
use crate::types::shape::{MAX_RANK, count};
use crate::types::{Array, DType, memory};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The key of the checksum: eight digits, which count as `00000000` in what they are computed of.
pub(super) const CHECKSUM: &str = "rscan.checksum";
/// What stands before the digits.
const BEFORE: &str = "\"rscan.checksum\":\"";
const DIGITS: &str = "00000000";

/// Bytes before the header: its length.
const PREFIX: usize = 8;
/// What stands between two marks of a header (a name, a number) takes up to so many bytes while it is read.
const MARK: usize = 96;
/// What reading headers may cost, however short the file is.
const MARKS: usize = 48 << 20;
/// A word of a program takes up to so many bytes while it is read.
const WORD: usize = 160;
/// What reading a program may cost, however short the file is.
const WORDS: usize = 56 << 20;

/// The longest text in a header that is JSON in its turn: extents of it take up to 16 times their text.
pub(super) const SIDE: usize = 1 << 20;

/// An error where a header has more names and numbers than a file of `len` bytes may have: what takes memory is their number, while texts
/// are as long in memory as they are in the file.
fn check_marks(header: &[u8], len: usize) -> Result<()> {
    let (mut marks, mut quoted, mut escaped) = (0, false, false);
    for &byte in header {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b',' | b':' | b'[' | b'{' if !quoted => marks += 1,
            _ => {}
        }
    }
    let most = (len + MARKS) / MARK;
    if marks > most {
        bail!(Parse, "E0906", "the header has {marks} names and numbers, and that of a file of {len} bytes {most} at most");
    }
    Ok(())
}

/// How many words and marks the text of a program may have in a file of `len` bytes.
pub(super) fn most_words(len: usize) -> usize {
    (len + WORDS) / WORD
}

/// A file's contents.
#[derive(Default)]
pub(super) struct Contents {
    /// Texts by key.
    pub texts: HashMap<String, String>,
    /// Arrays by name.
    pub tensors: HashMap<String, Array>,
}

/// The bytes of a file. Keys and names are written in their order, tensors after those with larger elements, so that each is aligned.
///
/// # Errors
/// `E0906` where the header has more names and numbers than a reader accepts.
pub(super) fn to_bytes(texts: &[(&str, String)], tensors: &[(String, Array)]) -> Result<Vec<u8>> {
    let mut sorted: Vec<&(String, Array)> = tensors.iter().collect();
    sorted.sort_by(|(a, x), (b, y)| (y.dtype().size(), a).cmp(&(x.dtype().size(), b)));
    let mut end = 0;
    let mut header = Map::new();
    for (name, array) in &sorted {
        let start = end;
        end += array.len() * array.dtype().size();
        header.insert(name.clone(), json!({"dtype": tag(array.dtype()), "shape": array.shape(), "data_offsets": [start, end]}));
    }
    let metadata: Map<String, Value> = texts.iter().map(|(key, text)| (key.to_string(), Value::from(text.as_str()))).collect();
    header.insert("__metadata__".into(), metadata.into());
    let mut header = Value::from(header).to_string();
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    let total = PREFIX + header.len() + end;
    check_marks(header.as_bytes(), total)?;
    let mut bytes = memory::room(total);
    bytes.extend_from_slice(&(header.len() as u64).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    sorted.iter().for_each(|(_, array)| dispatch!(array.dtype(), T => T::write(array.as_slice::<T>(), &mut bytes)));
    if let Some(at) = digits(&bytes[..PREFIX + header.len()]) {
        let sum = checksum(&bytes, at);
        bytes[at..at + DIGITS.len()].copy_from_slice(sum.as_bytes());
    }
    Ok(bytes)
}

/// Reads a file. `checked`: it has a checksum of its own.
///
/// # Errors
/// `E0922` where it is no such file, is damaged or not whole; `E0906` where its header has more names and numbers than its length allows.
pub(super) fn from_bytes(bytes: &[u8], checked: bool) -> Result<Contents> {
    let header = bytes.get(..PREFIX).and_then(|n| usize::try_from(u64::from_le_bytes(n.try_into().ok()?)).ok());
    let header = header.and_then(|n| bytes.get(PREFIX..PREFIX.checked_add(n)?)).ok_or_else(|| damaged("it ends before its header does"))?;
    check_marks(header, bytes.len())?;
    let (n, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| damaged(&e.to_string()))?;
    if checked {
        check(bytes, PREFIX + n)?;
    }
    let file = SafeTensors::deserialize(bytes).map_err(|e| damaged(&e.to_string()))?;
    let tensors = file.iter().map(|(name, view)| Ok((name.to_string(), read(name, &view)?))).collect::<Result<_>>()?;
    Ok(Contents { texts: metadata.metadata().clone().unwrap_or_default(), tensors })
}

fn damaged(why: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Parse, "E0922", format!("this is no file that rscan can read: {why}"))
}

/// Where the digits of the checksum begin.
fn digits(header: &[u8]) -> Option<usize> {
    let at = header.windows(BEFORE.len()).position(|w| w == BEFORE.as_bytes())? + BEFORE.len();
    (at + DIGITS.len() <= header.len()).then_some(at)
}

fn checksum(bytes: &[u8], digits: usize) -> String {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&bytes[..digits]);
    sum.update(DIGITS.as_bytes());
    sum.update(&bytes[digits + DIGITS.len()..]);
    format!("{:08x}", sum.finalize())
}

fn check(bytes: &[u8], data: usize) -> Result<()> {
    let at = digits(&bytes[..data]).ok_or_else(|| damaged("it has no checksum of a program of rscan"))?;
    if checksum(bytes, at).as_bytes() != &bytes[at..at + DIGITS.len()] {
        return Err(damaged("its contents are not those that its checksum was computed of")
            .help("copy the file again; who changed it with another tool saves it again with rscan"));
    }
    Ok(())
}

/// The name of a dtype in the header.
fn tag(dtype: DType) -> String {
    dtype.short().to_uppercase()
}

fn read(name: &str, view: &TensorView) -> Result<Array> {
    let dtype = dtype_of(view.dtype());
    let Some(dtype) = dtype else { bail!(Parse, "E0922", "tensor `{name}` holds {}, which rscan does not have", view.dtype()) };
    if count(view.shape()).checked_mul(dtype.size()) != Some(view.data().len()) || view.shape().len() > MAX_RANK {
        return Err(damaged(&format!("tensor `{name}` has another length than its shape says")));
    }
    dispatch!(dtype, T => {
        let elements = T::read(view.data()).ok_or_else(|| damaged(&format!("tensor `{name}` has elements that are no bool")))?;
        Ok(Array::new(view.shape(), elements))
    })
}

fn dtype_of(tag: Dtype) -> Option<DType> {
    Some(match tag {
        Dtype::BOOL => DType::Bool,
        Dtype::I8 => DType::I8,
        Dtype::I16 => DType::I16,
        Dtype::I32 => DType::I32,
        Dtype::I64 => DType::I64,
        Dtype::U8 => DType::U8,
        Dtype::U16 => DType::U16,
        Dtype::U32 => DType::U32,
        Dtype::U64 => DType::U64,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        _ => return None,
    })
}

/// Elements as bytes, the lowest first.
trait Raw: Element {
    fn write(elements: &[Self], to: &mut Vec<u8>);
    /// `None` where a byte is no bool.
    fn read(bytes: &[u8]) -> Option<Vec<Self>>;
}

macro_rules! raw {
    ($($t:ty),+) => {$(
        impl Raw for $t {
            fn write(elements: &[$t], to: &mut Vec<u8>) {
                elements.iter().for_each(|x| to.extend_from_slice(&x.to_le_bytes()));
            }
            fn read(bytes: &[u8]) -> Option<Vec<$t>> {
                Some(memory::collect(bytes.as_chunks().0.iter().map(|b| <$t>::from_le_bytes(*b))))
            }
        }
    )+};
}
raw!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

impl Raw for bool {
    fn write(elements: &[bool], to: &mut Vec<u8>) {
        to.extend(elements.iter().map(|&x| u8::from(x)));
    }
    fn read(bytes: &[u8]) -> Option<Vec<bool>> {
        bytes.iter().all(|&b| b < 2).then(|| memory::collect(bytes.iter().map(|&b| b == 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let tensors = [("b".to_string(), Array::vector(&[true, false])), ("w".into(), Array::new(&[2, 1], vec![-0.0, f64::NAN]))];
        to_bytes(&[(CHECKSUM, DIGITS.into()), ("k", "\"rscan.checksum\":\"".into())], &tensors).unwrap()
    }

    #[test]
    fn there_and_back() {
        let bytes = file();
        assert_eq!(bytes, file(), "equal contents, equal bytes");
        let back = from_bytes(&bytes, true).unwrap();
        assert_eq!(back.tensors["w"], Array::new(&[2, 1], vec![-0.0, f64::NAN]));
        assert_eq!(back.tensors["b"], Array::vector(&[true, false]));
        assert_eq!(back.texts["k"], "\"rscan.checksum\":\"");
    }

    #[test]
    fn every_changed_byte_is_found() {
        let bytes = file();
        for i in 0..bytes.len() {
            for bit in [1, 0x20] {
                let mut changed = bytes.clone();
                changed[i] ^= bit;
                assert!(from_bytes(&changed, true).is_err(), "byte {i}");
            }
            assert!(from_bytes(&bytes[..i], true).is_err(), "cut at {i}");
        }
    }

    #[test]
    fn claims_are_compared_with_the_length() {
        let claim = |header: &str| from_bytes(&[&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat(), false);
        assert!(claim(r#"{"w":{"dtype":"F64","shape":[1000000000000],"data_offsets":[0,8000000000000]}}"#).is_err());
        assert!(claim(r#"{"w":{"dtype":"F64","shape":[18446744073709551615, 2],"data_offsets":[0,0]}}"#).is_err());
        assert!(from_bytes(&[&u64::MAX.to_le_bytes()[..], b"{}"].concat(), false).is_err());
        assert!(claim("{}").is_ok());
        assert_eq!(claim(r#"{"w":{"dtype":"BF16","shape":[0],"data_offsets":[0,0]}}"#).err().map(|e| e.code), Some("E0922"));
    }
}
