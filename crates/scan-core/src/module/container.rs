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
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{self, Read};

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

/// Reads a file that is in memory. `checked`: it has a checksum of its own.
///
/// # Errors
/// `E0922` where it is no such file, is damaged or not whole; `E0906` where its header has more names and numbers than its length allows.
pub(super) fn from_bytes(mut bytes: &[u8], checked: bool) -> Result<Contents> {
    let len = bytes.len();
    from_reader(&mut bytes, len, checked, &|_| damaged(SHORT))
}

/// Reads a file of `len` bytes, each of which is read once, those of tensors into their arrays. `failed` says of which file it is an error.
///
/// # Errors
/// As [`from_bytes`]; what `failed` makes of errors of the system.
pub(super) fn from_reader(
    from: &mut dyn Read,
    len: usize,
    checked: bool,
    failed: &dyn Fn(&io::Error) -> Box<Diagnostic>,
) -> Result<Contents> {
    let rest = len.checked_sub(PREFIX).ok_or_else(|| damaged(SHORT))?;
    let mut file = Reader { from, failed, sum: crc32fast::Hasher::new(), piece: memory::filled(0, PIECE.min(len)) };
    let mut prefix = [0; PREFIX];
    file.bytes(&mut prefix)?;
    let n = usize::try_from(u64::from_le_bytes(prefix)).ok().filter(|&n| n <= rest).ok_or_else(|| damaged(SHORT))?;
    let mut header = memory::filled(0, n);
    file.bytes(&mut header)?;
    check_marks(&header, len)?;
    let metadata: Metadata = serde_json::from_slice(&header).map_err(|e| damaged(&e.to_string()))?;
    if metadata.data_len() != rest - n {
        return Err(damaged("its length is not the one that its header says"));
    }
    let found = file.sums(&prefix, &header, checked)?;
    let (mut tensors, mut wrong) = (HashMap::new(), None);
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else { continue };
        match file.tensor(&name, info)? {
            Some(array) => _ = tensors.insert(name, array),
            None => wrong = Some(damaged(&format!("tensor `{name}` has elements that are no bool"))),
        }
    }
    if checked && format!("{:08x}", file.sum.finalize()).as_bytes() != found {
        return Err(damaged("its contents are not those that its checksum was computed of")
            .help("copy the file again; who changed it with another tool saves it again with rscan"));
    }
    wrong.map_or(Ok(Contents { texts: metadata.metadata().clone().unwrap_or_default(), tensors }), Err)
}

/// Why a file that is cut off is no file.
const SHORT: &str = "it ends before its header does";
/// Bytes that are read at once: they are in a cache when they are summed and copied.
const PIECE: usize = 128 << 10;

/// What is left of a file, and the checksum of what was read.
struct Reader<'r> {
    from: &'r mut dyn Read,
    failed: &'r dyn Fn(&io::Error) -> Box<Diagnostic>,
    sum: crc32fast::Hasher,
    piece: Vec<u8>,
}

impl Reader<'_> {
    fn bytes(&mut self, to: &mut [u8]) -> Result<()> {
        self.from.read_exact(to).map_err(|e| if e.kind() == io::ErrorKind::UnexpectedEof { damaged(SHORT) } else { (self.failed)(&e) })
    }
    /// Sums what stands before the tensors; the digits that stand there.
    fn sums(&mut self, prefix: &[u8], header: &[u8], checked: bool) -> Result<Vec<u8>> {
        if !checked {
            return Ok(vec![]);
        }
        let at = digits(header).ok_or_else(|| damaged("it has no checksum of a program of rscan"))?;
        let behind = at + DIGITS.len();
        [prefix, &header[..at], DIGITS.as_bytes(), &header[behind..]].iter().for_each(|part| self.sum.update(part));
        Ok(header[at..behind].to_vec())
    }
    /// The tensor that comes next; `None` for one of bools that has other bytes.
    fn tensor(&mut self, name: &str, info: &TensorInfo) -> Result<Option<Array>> {
        let Some(dtype) = dtype_of(info.dtype) else {
            bail!(Parse, "E0922", "tensor `{name}` holds {}, which rscan does not have", info.dtype)
        };
        let n = count(&info.shape);
        if n.checked_mul(dtype.size()) != Some(info.data_offsets.1 - info.data_offsets.0) || info.shape.len() > MAX_RANK {
            return Err(damaged(&format!("tensor `{name}` has another length than its shape says")));
        }
        dispatch!(dtype, T => Ok(self.elements::<T>(n)?.map(|elements| Array::new(&info.shape, elements))))
    }
    fn elements<T: Raw>(&mut self, n: usize) -> Result<Option<Vec<T>>> {
        let (mut elements, mut good) = (memory::room(n), true);
        let mut piece = std::mem::take(&mut self.piece);
        while elements.len() < n {
            let now = (n - elements.len()).min(PIECE / size_of::<T>()) * size_of::<T>();
            self.bytes(&mut piece[..now])?;
            self.sum.update(&piece[..now]);
            good &= T::read(&piece[..now], &mut elements);
        }
        self.piece = piece;
        Ok(good.then_some(elements))
    }
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

/// The name of a dtype in the header.
fn tag(dtype: DType) -> String {
    dtype.short().to_uppercase()
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
    /// False where a byte is no bool.
    fn read(bytes: &[u8], to: &mut Vec<Self>) -> bool;
}

macro_rules! raw {
    ($($t:ty),+) => {$(
        impl Raw for $t {
            fn write(elements: &[$t], to: &mut Vec<u8>) {
                elements.iter().for_each(|x| to.extend_from_slice(&x.to_le_bytes()));
            }
            fn read(bytes: &[u8], to: &mut Vec<$t>) -> bool {
                to.extend(bytes.as_chunks().0.iter().map(|b| <$t>::from_le_bytes(*b)));
                true
            }
        }
    )+};
}
raw!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

impl Raw for bool {
    fn write(elements: &[bool], to: &mut Vec<u8>) {
        to.extend(elements.iter().map(|&x| u8::from(x)));
    }
    fn read(bytes: &[u8], to: &mut Vec<bool>) -> bool {
        to.extend(bytes.iter().map(|&b| b == 1));
        bytes.iter().all(|&b| b < 2)
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
