//! Draws of the legacy MT19937 streams: what NumPy's RandomState gives.

use super::args::{expect_count, expect_int_scalar, extents};
use super::region::spread;
use crate::bail;
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::mt19937::{Generator, STATE};
use crate::types::shape::count;
use crate::types::{Array, DType, Dim, Type, memory};

/// Inputs: the state, the two parameters of the distribution (each broadcasts to the shape of the draw), the extents.
/// Outputs: the next state, the draw. Elements are drawn in row-major order.
impl OpDef for LegacyDraw {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("legacy_draw", 3, true, ins)?;
        let (state, dims) = (&ins[0].ty, &ins[3..]);
        if state.dtype != DType::U32 || state.rank() != 1 || state.dims[0].conflicts(&Dim::known(STATE)) {
            bail!(Type, "E0703", "`legacy_draw` needs a state, a uint32 vector of {STATE}, got {state}");
        }
        dims.iter().try_for_each(|a| expect_int_scalar("legacy_draw", "an extent", a))?;
        if let Some(wide) = ins[1..3].iter().find(|a| a.ty.rank() > dims.len()) {
            bail!(Shape, "E0201", "a parameter {} of `legacy_draw` has more axes than the draw, {}", wide.ty, dims.len());
        }
        let draw = Type { dtype: self.dtype, dims: dims.iter().map(Arg::as_dim).collect() };
        Ok([Type::known(DType::U32, &[STATE]), draw].into_iter().collect())
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let shape = extents("legacy_draw", &ins[3..])?;
        let (a, b) = (spread(&ins[1], &shape)?.into_owned(), spread(&ins[2], &shape)?.into_owned());
        let mut state = std::mem::replace(&mut ins[0], Array::scalar(false));
        let ty = state.ty();
        let Some(mut source) = Generator::new(state.as_mut_slice::<u32>()) else {
            bail!(
                Value,
                "E0703",
                "`legacy_draw` needs a state, a uint32 vector of {STATE} with a position up to 624 and words that are not all 0, got {ty}"
            );
        };
        let drawn = match self.dist {
            Legacy::Uniform | Legacy::Normal => Array::new(&shape, floats(self.dist, &mut source, &a.to_f64_vec(), &b.to_f64_vec())?),
            Legacy::Binomial => Array::new(&shape, binomials(&mut source, &a.to_i64_vec(), &b.to_f64_vec())?),
            Legacy::Integers => Array::new(&shape, integers(&mut source, &a.to_i64_vec(), &b.to_i64_vec())?),
        };
        debug_assert_eq!(drawn.len(), count(&shape));
        Ok([state, drawn.cast(self.dtype)].into_iter().collect())
    }
    fn vjp(&self, _: &mut Graph, site: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![None; site.ins.len()])
    }
    fn connected(&self, _: usize) -> bool {
        false
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.row_by_row(self.clone(), ins)
    }
}

fn floats(dist: Legacy, source: &mut Generator, a: &[f64], b: &[f64]) -> Result<Vec<f64>> {
    let pairs = a.iter().zip(b);
    if dist == Legacy::Uniform {
        if let Some((low, high)) = pairs.clone().find(|(low, high)| !(**high - **low).is_finite()) {
            bail!(Value, "E0704", "uniform draws need a finite range, got low = {low} and high = {high}");
        }
        return Ok(memory::collect(pairs.map(|(&low, &high)| source.uniform(low, high))));
    }
    if let Some(deviation) = b.iter().find(|d| d.is_sign_negative() && !d.is_nan()) {
        bail!(Value, "E0704", "normal draws need a deviation of at least 0, got {deviation}");
    }
    Ok(memory::collect(pairs.map(|(&mean, &deviation)| source.normal(mean, deviation))))
}

fn binomials(source: &mut Generator, n: &[i64], p: &[f64]) -> Result<Vec<i64>> {
    let pairs = n.iter().zip(p);
    if let Some((n, p)) = pairs.clone().find(|(n, p)| **n < 0 || !(0.0..=1.0).contains(*p)) {
        bail!(Value, "E0704", "binomial draws need n >= 0 and 0 <= p <= 1, got n = {n} and p = {p}");
    }
    Ok(memory::collect(pairs.map(|(&n, &p)| source.binomial(n, p))))
}

fn integers(source: &mut Generator, low: &[i64], high: &[i64]) -> Result<Vec<i64>> {
    let pairs = low.iter().zip(high);
    if let Some((low, high)) = pairs.clone().find(|(low, high)| low > high) {
        bail!(Value, "E0701", "random integers need low <= high, got low = {low} and high = {high}");
    }
    Ok(memory::collect(pairs.map(|(&low, &high)| source.integer(low, high))))
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::scalar::mt19937::seed_state;

    fn draw(dist: Legacy, dtype: DType) -> LegacyDraw {
        LegacyDraw { dist, dtype }
    }
    fn ins(a: Array, b: Array, dims: &[i64]) -> Vec<Array> {
        [seed_state(2u32.pow(31)), a, b].into_iter().chain(dims.iter().map(|&n| Array::scalar(n))).collect()
    }

    /// Printed by `RandomState(2**31)`, one draw after the other.
    #[test]
    fn a_chain_of_draws_is_numpys() {
        let next = |state: Array, op: LegacyDraw, a: Array, b: Array, dims: &[i64]| {
            let mut all = ins(a, b, dims);
            all[0] = state;
            let [state, out] = try_apply_all(op, &all).unwrap().try_into().unwrap();
            (state, out)
        };
        let (row, one) = (Array::vector(&[0.0, 100.0]), Array::scalar(1.0));
        let n = Array::vector(&[10i64, 20, 1000]);
        let p = Array::vector(&[0.3, 0.4, 0.5]);
        let state = seed_state(2u32.pow(31));
        let (state, out) = next(state, draw(Legacy::Binomial, DType::I64), n, p, &[2, 3]);
        assert_eq!(out, Array::new(&[2, 3], GOLDEN_BINOMIAL.to_vec()));
        let (state, out) = next(state, draw(Legacy::Normal, DType::F64), row.clone(), one, &[3, 2]);
        assert_eq!(out.as_slice::<f64>(), GOLDEN_NORMAL);
        let high = Array::vector(&[1.0, 200.0]);
        let (state, out) = next(state, draw(Legacy::Uniform, DType::F64), row, high, &[1, 2]);
        assert_eq!(out.as_slice::<f64>(), GOLDEN_UNIFORM);
        let (low, high) = (Array::vector(&[0i64, -3]), Array::vector(&[9i64, 1 << 50]));
        let (_, out) = next(state, draw(Legacy::Integers, DType::I64), low, high, &[2, 2]);
        assert_eq!(out.as_slice::<i64>(), GOLDEN_INTEGERS);
    }

    const GOLDEN_BINOMIAL: [i64; 6] = [2, 10, 488, 2, 7, 504];
    const GOLDEN_NORMAL: [f64; 6] =
        [-0.412015035646544, 99.05116216667382, -1.1906719326506565, 100.04862262308338, 0.8130760604726143, 99.71048589672141];
    const GOLDEN_UNIFORM: [f64; 2] = [0.5761725483297251, 108.61346285093212];
    const GOLDEN_INTEGERS: [i64; 4] = [2, 46071547218884, 7, 349758371077101];

    #[test]
    fn dtypes_are_casts_and_empty_draws_keep_the_state() {
        let wide = try_apply_all(draw(Legacy::Normal, DType::F64), &ins(Array::scalar(0i8), Array::scalar(1i8), &[5])).unwrap();
        let narrow = try_apply_all(draw(Legacy::Normal, DType::F32), &ins(Array::scalar(0.0), Array::scalar(1.0), &[5])).unwrap();
        assert_eq!(narrow[1], wide[1].cast(DType::F32));
        let none = try_apply_all(draw(Legacy::Uniform, DType::F64), &ins(Array::scalar(0.0), Array::scalar(1.0), &[0, 2])).unwrap();
        assert_eq!((none[0].clone(), none[1].shape()), (seed_state(2u32.pow(31)), &[0, 2][..]));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let run = |dist, a: f64, b: f64| run_error(draw(dist, DType::F64), &ins(Array::scalar(a), Array::scalar(b), &[2]));
        let e = run(Legacy::Normal, 0.0, -1.0);
        assert_eq!((e.code, e.title.as_str()), ("E0704", "normal draws need a deviation of at least 0, got -1"));
        assert_eq!(run(Legacy::Uniform, 0.0, f64::INFINITY).code, "E0704");
        assert_eq!(run(Legacy::Binomial, -1.0, 0.5).code, "E0704");
        assert_eq!(run(Legacy::Binomial, 3.0, f64::NAN).code, "E0704");
        let e = run(Legacy::Integers, 2.0, 1.0);
        assert_eq!((e.code, e.title.as_str()), ("E0701", "random integers need low <= high, got low = 2 and high = 1"));
        let mut bad = ins(Array::scalar(0.0), Array::scalar(1.0), &[2]);
        bad[0] = Array::zeros(DType::U32, &[627]);
        assert_eq!(run_error(draw(Legacy::Uniform, DType::F64), &bad).code, "E0703");
        assert_eq!(build_error(draw(Legacy::Uniform, DType::F64), &bad).code, "E0703");
        let rank = ins(Array::vector(&[0.0, 1.0]), Array::scalar(1.0), &[]);
        assert_eq!(run_error(draw(Legacy::Uniform, DType::F64), &rank).code, "E0201");
        let extent = ins(Array::vector(&[0.0, 1.0]), Array::scalar(1.0), &[3]);
        assert_eq!(run_error(draw(Legacy::Uniform, DType::F64), &extent).code, "E0201");
    }
}
