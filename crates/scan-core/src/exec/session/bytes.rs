//! Sessions as bytes.
//!
//! ```text
//! "rscan session 1\n"  print of the step: u64  done: u64  stopped: u8  arrays …  sum: u64
//! array                dtype's name: length u8, text   rank: u8   extents: u64 each   elements
//! ```
//!
//! Integers are little-endian, elements as the machine has them in little-endian order. The arrays are the states, then, with a byte that says
//! whether there is one, the last row of each result. The sum is FNV-1a over all before it.

use super::Session;
use crate::backend::cpu::bytes as bytes_of;
use crate::base::{Diagnostic, Kind, Result};
use crate::types::shape::count;
use crate::types::{Array, DType};

const MAGIC: &[u8] = b"rscan session 1\n";

impl Session {
    /// The states and how many steps were made, but for the arguments that the session began with: `restore` brings another session of the
    /// same function there.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(self.steps().print().to_le_bytes());
        out.extend((self.len() as u64).to_le_bytes());
        out.push(u8::from(self.stopped));
        self.rows().iter().for_each(|a| put(&mut out, a));
        for last in &self.last() {
            out.push(u8::from(last.is_some()));
            last.iter().for_each(|a| put(&mut out, a));
        }
        let sum = sum(&out);
        out.extend(sum.to_le_bytes());
        out
    }

    /// Goes back, or forward, to where a session of the same function was.
    ///
    /// # Errors
    /// `E0534` where the bytes are not those of a session, not whole, or of another function. The session is then as it was.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        let Some(all) = snapshot.strip_prefix(MAGIC) else { return Err(bad("these bytes are not those of a session")) };
        let whole = all.split_last_chunk::<8>().filter(|(_, end)| sum(&snapshot[..snapshot.len() - 8]) == u64::from_le_bytes(**end));
        let Some((mut rest, _)) = whole else { return Err(bad("the bytes of a session are cut off, or changed")) };
        let cut = || bad("the bytes of a session are cut off, or changed");
        if u64::from_le_bytes(*take::<8>(&mut rest).ok_or_else(cut)?) != self.steps().print() {
            return Err(bad("these bytes are those of a session of another function"));
        }
        let done = u64::from_le_bytes(*take::<8>(&mut rest).ok_or_else(cut)?) as usize;
        let stopped = take::<1>(&mut rest).ok_or_else(cut)?[0] != 0;
        let mut rows = vec![];
        for old in &self.rows() {
            let new = get(&mut rest).ok_or_else(cut)?;
            if new.dtype() != old.dtype() || new.shape() != old.shape() {
                return Err(bad("these bytes are those of a session whose states have other extents"));
            }
            rows.push(new);
        }
        let mut last = vec![];
        for k in 0..self.last().len() {
            let there = take::<1>(&mut rest).ok_or_else(cut)?[0] != 0;
            let row = if there { Some(get(&mut rest).ok_or_else(cut)?) } else { None };
            if row.as_ref().is_some_and(|row| !self.admits(k, row)) {
                return Err(cut());
            }
            last.push(row);
        }
        if !rest.is_empty() {
            return Err(cut());
        }
        self.set(rows, last, done, stopped);
        Ok(())
    }
}

fn bad(text: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Value, "E0534", text).help("restore takes what `snapshot` of a session of the same function gave")
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

fn put(out: &mut Vec<u8>, a: &Array) {
    let name = a.dtype().name();
    out.push(name.len() as u8);
    out.extend(name.as_bytes());
    out.push(a.rank() as u8);
    a.shape().iter().for_each(|&n| out.extend((n as u64).to_le_bytes()));
    out.extend(ordered(bytes_of(a), a.dtype().size()));
}

/// Elements in little-endian order, or back.
fn ordered(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut out = bytes.to_vec();
    if cfg!(target_endian = "big") {
        out.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    out
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(first)
}

fn get(rest: &mut &[u8]) -> Option<Array> {
    let n = usize::from(take::<1>(rest)?[0]);
    let (name, after) = rest.split_at_checked(n)?;
    *rest = after;
    let dtype = DType::parse(std::str::from_utf8(name).ok()?)?;
    let rank = take::<1>(rest)?[0];
    let mut shape = vec![];
    for _ in 0..rank {
        shape.push(usize::try_from(u64::from_le_bytes(*take::<8>(rest)?)).ok()?);
    }
    let wide = shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d))?;
    let (elements, after) = rest.split_at_checked(wide)?;
    *rest = after;
    Some(array(dtype, &shape, &ordered(elements, dtype.size())))
}

fn array(dtype: DType, shape: &[usize], bytes: &[u8]) -> Array {
    let mut out = Array::zeros(dtype, shape);
    debug_assert_eq!(bytes.len(), count(shape) * dtype.size());
    let cells = crate::backend::cpu::cells(&mut out);
    // Bools are 0 or 1, whatever the bytes say.
    let clean = |b: u8| if dtype == DType::Bool { u8::from(b != 0) } else { b };
    cells.iter().zip(bytes).for_each(|(cell, &b)| cell.set(clean(b)));
    out
}
