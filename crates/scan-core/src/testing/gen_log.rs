//! Random products in log space: what the step of a hidden Markov model computes.

use super::gen_expr::Generator;
use super::nd::Kind;
use super::program::*;

impl Generator {
    /// `logsumexp` over the sum of rows and a matrix from outside, either side of which may hold the columns.
    pub(super) fn log_product(&mut self, shape: &[usize], depth: usize) -> Id {
        self.mark("product in log space");
        let (k, n, batch) = (2 + self.random.below(2), shape[shape.len() - 1], &shape[..shape.len() - 1]);
        let turned = self.random.percent(40);
        let with = |last: &[usize]| [batch, last].concat();
        let rows = self.expr(Kind::Float, &with(&[k]), depth - 1);
        let bound = self.bound(rows);
        let of_rows = if turned { [1, k] } else { [k, 1] };
        let rows = self.add(Expr::Expand(rows, batch.len() + usize::from(!turned)), Kind::Float, &with(&of_rows), bound);
        let of_matrix = if turned { [n, k] } else { [k, n] };
        let matrix = self.outer_matrix(&of_matrix);
        let bound = bound + self.bound(matrix);
        let sum = self.add(Expr::Binary(Binary::Add, rows, matrix), Kind::Float, &with(&of_matrix), bound);
        let axis = batch.len() + usize::from(turned);
        self.add(Expr::Reduce(Reduce::LogSumExp, sum, axis, false), Kind::Float, shape, bound + (k as f64).ln())
    }

    /// A float of this shape that the innermost level does not make, or a constant.
    fn outer_matrix(&mut self, shape: &[usize]) -> Id {
        let outer = &self.scopes[..self.scopes.len() - 1];
        let fits = |id: &Id| self.kind(*id) == Kind::Float && self.shape(*id) == shape;
        let found: Vec<Id> = outer.iter().flat_map(|s| s.seen.iter().copied()).filter(fits).collect();
        if found.is_empty() { self.constant(Kind::Float, shape) } else { *self.random.pick(&found) }
    }
}
