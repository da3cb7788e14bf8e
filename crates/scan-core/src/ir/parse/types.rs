//! Types, dims, numbers and literals.

use super::Parser;
use crate::base::Result;
use crate::base::words::{Cursor, Tok};
use crate::ir::literal;
use crate::types::shape::MAX_RANK;
use crate::types::{Array, DType, Dim, Dims, Type};
use rustc_hash::FxHashSet;

/// The largest extent, coefficient or number of elements.
const MAX_COUNT: i64 = Cursor::MOST as i64;
/// The largest number of terms of an extent.
const MAX_TERMS: usize = 32;

impl<'t> Parser<'t> {
    pub(super) fn dtype(&mut self) -> Result<DType> {
        self.named("a dtype", DType::parse)
    }
    pub(super) fn ty(&mut self) -> Result<Type> {
        let dtype = self.dtype()?;
        if !self.is('[') {
            return Ok(Type::scalar(dtype));
        }
        let at = self.at();
        let dims: Dims = self.list('[', ']', Self::dim)?.into_iter().collect();
        let known = dims.iter().filter_map(Dim::value).filter(|&n| n > 0).try_fold(1, usize::checked_mul);
        if dims.len() > MAX_RANK || known.is_none_or(|n| n > MAX_COUNT as usize) {
            return self.fail(at, "E0906", format!("a type has at most {MAX_RANK} axes and {MAX_COUNT} elements"));
        }
        Ok(Type { dtype, dims })
    }
    /// `2*n0-n1+3`
    fn dim(&mut self) -> Result<Dim> {
        let at = self.at();
        let (mut sum, mut count) = (Dim::known(0), 0);
        loop {
            let sign = if self.eat('-') { -1 } else { 1 };
            let term = match *self.peek() {
                Tok::Number(_) => {
                    let n = sign * self.count()? as i64;
                    if self.eat('*') { self.symbol()?.scale(n) } else { Dim::from_parts([], n) }
                }
                _ => self.symbol()?.scale(sign),
            };
            sum = sum.add(&term);
            count += 1;
            if count > MAX_TERMS {
                return self.fail(at, "E0906", format!("an extent has at most {MAX_TERMS} terms"));
            }
            if !self.eat('+') && !self.is('-') {
                return Ok(sum);
            }
        }
    }
    fn symbol(&mut self) -> Result<Dim> {
        let Tok::Word(name) = *self.peek() else { return self.unexpected("an extent") };
        self.pos += 1;
        Ok(self.dims.entry(name).or_insert_with(Dim::fresh).clone())
    }
    /// The type of a parameter, where its new extents are those of what takes its place.
    pub(super) fn parameter(&mut self, given: Option<&Type>) -> Result<Type> {
        let Some(given) = given else { return self.ty() };
        let known: FxHashSet<&str> = self.dims.keys().copied().collect();
        let mut ty = self.ty()?;
        if given.rank() != ty.rank() {
            return Ok(ty);
        }
        for (dim, to) in ty.dims.iter_mut().zip(&given.dims) {
            let names = self.dims.iter_mut().filter(|(name, of)| !known.contains(**name) && **of == *dim);
            if let Some((_, of)) = names.take(1).next() {
                *of = to.clone();
                *dim = to.clone();
            }
        }
        Ok(ty)
    }
    /// A number that counts something.
    pub(super) fn count(&mut self) -> Result<usize> {
        let at = self.at();
        let Tok::Number(text) = *self.peek() else { return self.unexpected("a number") };
        self.pos += 1;
        match text.parse::<i64>() {
            Ok(n) if n <= MAX_COUNT => Ok(n as usize),
            Ok(_) => self.fail(at, "E0906", format!("`{text}` is more than {MAX_COUNT}")),
            Err(_) => self.fail(at, "E0903", format!("expected a whole number, got `{text}`")),
        }
    }
    /// `2.0:f64`, `true`, `f64[2]{1.0, 2.0}`; without a dtype, whole numbers are i64 and others f64.
    pub(super) fn literal(&mut self) -> Result<Array> {
        let at = self.at();
        if let Tok::Word(word) = *self.peek()
            && DType::parse(word).is_some()
        {
            return self.array();
        }
        let text = self.number()?;
        let dtype = match () {
            _ if self.eat(':') => self.dtype()?,
            _ if text == "true" || text == "false" => DType::Bool,
            _ if text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit()) => DType::I64,
            _ => DType::F64,
        };
        literal::read(dtype, &[], std::slice::from_ref(&text))
            .or_else(|_| self.fail(at, "E0903", format!("expected a number of dtype {dtype}, got `{text}`")))
    }
    fn array(&mut self) -> Result<Array> {
        let at = self.at();
        let dtype = self.dtype()?;
        let shape = self.list('[', ']', Self::count)?;
        let len = shape.iter().filter(|&&n| n > 0).try_fold(1, |a: usize, &n| a.checked_mul(n));
        let Some(len) = len.filter(|&n| n <= MAX_COUNT as usize && shape.len() <= MAX_RANK) else {
            return self.fail(at, "E0906", format!("an array has at most {MAX_RANK} axes and {MAX_COUNT} elements"));
        };
        let len = if shape.contains(&0) { 0 } else { len };
        let mut places = vec![];
        let texts = self.list('{', '}', |p| {
            places.push(p.at());
            p.number()
        })?;
        if texts.len() != len {
            return self.fail(at, "E0903", format!("expected {len} elements, got {}", texts.len()));
        }
        literal::read(dtype, &shape, &texts)
            .or_else(|i| self.fail(places[i], "E0903", format!("expected a number of dtype {dtype}, got `{}`", texts[i])))
    }
}
