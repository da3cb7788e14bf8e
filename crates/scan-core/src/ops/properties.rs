//! What passes and plans ask of an op besides its meaning. An op that is not listed does not compile.

use crate::ir::op::{Index, Op, Write};
use crate::ops::index::{Item, Pattern};

/// Where the elements of a result come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Makes {
    /// They are computed.
    New,
    /// They are constants, or drawn from a key: the same wherever they are made.
    Given,
    /// Those of the first input, each in its place; other inputs are marks.
    Same,
    /// Those of the first input, each in its place, as another dtype.
    Cast,
    /// Those of the first input, moved or repeated; other inputs say where, or are read for their shape.
    Moved,
    /// As [`Makes::Moved`], and zeros.
    Filled,
    /// Those of the first two inputs; others say where.
    Written,
    /// Those of all inputs.
    Joined,
}

/// What the extents of results depend on, besides the extents of inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extents {
    /// Nothing.
    Shapes,
    /// The values of inputs from this position on.
    From(usize),
    /// The value of the first input, which chooses among the others.
    Choice,
    /// The value of the first input alone.
    First,
    /// What happens as it runs.
    Unknown,
}

/// What an op costs, by what it does for each element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// Nothing: a view, a mark, a constant.
    Free,
    /// A sum to a shape, mostly none.
    Folds,
    /// One or two instructions an element.
    Simple,
    /// A function like tanh for each element.
    Function,
    /// Elements read from somewhere.
    Reads,
    /// A way over the inputs or the result.
    Walks,
    /// Sums of exponentials.
    Exponentials,
    /// A product of matrices.
    Product,
    /// The cube of an extent.
    Factorises,
    /// Random numbers.
    Draws,
    /// A loop.
    Loop,
}

/// What is known of an op.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// Where elements come from.
    pub makes: Makes,
    /// Positions of inputs of which the shape alone is read.
    pub shape_only: &'static [usize],
    /// What it costs.
    pub cost: Cost,
    /// The result may be the first input's memory under another shape.
    pub aliases: bool,
}

impl Properties {
    const fn new(makes: Makes, cost: Cost) -> Properties {
        Properties { makes, shape_only: &[], cost, aliases: false }
    }
    const fn shape_of(self, shape_only: &'static [usize]) -> Properties {
        Properties { shape_only, ..self }
    }
    /// Moves that may cost nothing.
    const fn view(cost: Cost) -> Properties {
        Properties { aliases: true, ..Properties::new(Makes::Moved, cost) }
    }
}

impl Op {
    /// What is known of the op.
    pub fn properties(&self) -> Properties {
        use Makes::*;
        let new = Properties::new;
        match self {
            Op::Elem(op) => new(New, if op.nature().simple { Cost::Simple } else { Cost::Function }),
            Op::Const(_) => new(Given, Cost::Free),
            Op::Scan(_) => new(New, Cost::Loop),
            Op::Extern(_) | Op::Native(_) | Op::Nonzero(_) | Op::Arange(_) | Op::Eye(_) => new(New, Cost::Walks),
            Op::Cast(_) => new(Cast, Cost::Walks),
            Op::DimOf(_) => new(New, Cost::Free).shape_of(&[0]),
            Op::StopGradient(_) | Op::Hold(_) | Op::GradClip(_) | Op::GradTo(_) => new(Same, Cost::Free),
            Op::Assert(_) => new(Same, Cost::Walks),
            Op::Reduce(_) | Op::ArgReduce(_) | Op::ExtremeMask(_) | Op::CumSum(_) | Op::CumProd(_) | Op::Recurrence(_) => {
                new(New, Cost::Walks)
            }
            Op::Sort(_) | Op::ArgSort(_) | Op::ArgTopK(_) | Op::OuterSum(_) | Op::FoldIn(_) | Op::Dft(_) => new(New, Cost::Walks),
            Op::CumExtreme(_) | Op::ArgCumExtreme(_) | Op::SearchSorted(_) => new(New, Cost::Walks),
            Op::LogSumExp(_) | Op::Softmax(_) | Op::LogSoftmax(_) => new(New, Cost::Exponentials),
            Op::MatMul(_) | Op::LogMatMulSums(_) => new(New, Cost::Product),
            Op::LogMatMulPowers(_) => new(New, Cost::Function),
            Op::LogMatMul(_) | Op::LogMatMulQuotients(_) | Op::LogMatMulLeft(_) | Op::LogMatMulRight(_) => new(New, Cost::Walks),
            Op::Expand(_) | Op::Squeeze(_) => Properties::view(Cost::Free),
            Op::Reshape(_) | Op::BroadcastTo(_) => Properties::view(Cost::Free),
            Op::ReshapeLike(_) | Op::BroadcastLike(_) => Properties::view(Cost::Free).shape_of(&[1]),
            Op::Transpose(_) => Properties::view(Cost::Walks),
            Op::SumTo(_) => Properties { makes: New, ..Properties::view(Cost::Folds) }.shape_of(&[1]),
            Op::Join(_) => new(Joined, Cost::Walks),
            Op::Flip(_) => new(Moved, Cost::Walks),
            Op::Index(_) | Op::Gather(_) => new(Moved, Cost::Reads),
            Op::IndexWrite(op) => new(written(op.mode), Cost::Walks),
            Op::GatherWrite(op) => new(written(op.mode), Cost::Walks),
            Op::Diag(_) | Op::Tri(_) => new(Filled, Cost::Walks),
            Op::IfElse(_) => new(New, Cost::Walks),
            Op::Solve(_) | Op::Cholesky(_) | Op::Inverse(_) | Op::SLogDet(_) | Op::SolveSLogDet(_) => new(New, Cost::Factorises),
            Op::Det(_) | Op::Cofactor(_) | Op::CofactorSlope(_) => new(New, Cost::Factorises),
            Op::Qr(_) | Op::Eigh(_) | Op::Svd(_) | Op::Pinv(_) => new(New, Cost::Factorises),
            Op::RandomUniform(_) | Op::RandomNormal(_) => new(Given, Cost::Draws),
            Op::RandomPermutation(_) => new(New, Cost::Walks),
            Op::RandomIntegers(_) => new(New, Cost::Walks),
            Op::LegacyDraw(_) => new(New, Cost::Draws),
        }
    }
    /// What extents depend on.
    pub fn extents(&self) -> Extents {
        match self {
            Op::Index(op) => of_index(op),
            Op::Scan(scan) if scan.until => Extents::Unknown,
            Op::Scan(_) => Extents::First,
            Op::IfElse(_) => Extents::Choice,
            Op::Extern(_) | Op::Native(_) | Op::Nonzero(_) | Op::Arange(_) | Op::Eye(_) => Extents::From(0),
            Op::Reshape(_) | Op::BroadcastTo(_) | Op::RandomUniform(_) | Op::RandomNormal(_) | Op::RandomPermutation(_) => Extents::From(1),
            Op::RandomIntegers(_) | Op::LegacyDraw(_) => Extents::From(3),
            Op::Elem(_) | Op::Const(_) | Op::Cast(_) | Op::DimOf(_) | Op::StopGradient(_) | Op::Hold(_) | Op::GradClip(_) => {
                Extents::Shapes
            }
            Op::GradTo(_) | Op::Assert(_) | Op::Reduce(_) | Op::ArgReduce(_) | Op::ExtremeMask(_) | Op::LogSumExp(_) => Extents::Shapes,
            Op::Softmax(_) | Op::LogSoftmax(_) | Op::CumSum(_) | Op::CumProd(_) | Op::Recurrence(_) | Op::Sort(_) => Extents::Shapes,
            Op::ArgSort(_) | Op::ArgTopK(_) | Op::MatMul(_) | Op::OuterSum(_) | Op::LogMatMul(_) | Op::LogMatMulPowers(_) => {
                Extents::Shapes
            }
            Op::LogMatMulSums(_) | Op::LogMatMulQuotients(_) | Op::LogMatMulLeft(_) | Op::LogMatMulRight(_) => Extents::Shapes,
            Op::ReshapeLike(_) | Op::Transpose(_) | Op::Expand(_) | Op::Squeeze(_) | Op::BroadcastLike(_) => Extents::Shapes,
            Op::SumTo(_) | Op::Join(_) | Op::Flip(_) | Op::IndexWrite(_) | Op::Gather(_) | Op::GatherWrite(_) => Extents::Shapes,
            Op::Diag(_) | Op::Solve(_) | Op::Cholesky(_) | Op::Inverse(_) | Op::SLogDet(_) | Op::Det(_) => Extents::Shapes,
            Op::Cofactor(_) | Op::CofactorSlope(_) | Op::SolveSLogDet(_) | Op::Tri(_) | Op::FoldIn(_) => Extents::Shapes,
            Op::CumExtreme(_) | Op::ArgCumExtreme(_) | Op::SearchSorted(_) | Op::Dft(_) => Extents::Shapes,
            Op::Qr(_) | Op::Eigh(_) | Op::Svd(_) | Op::Pinv(_) => Extents::Shapes,
        }
    }
    /// The input that has as many rows as the result, which has so many axes, where one certainly does.
    pub fn rows_of(&self, rank: usize) -> Option<usize> {
        match self {
            Op::IndexWrite(_) | Op::GatherWrite(_) | Op::Flip(_) => Some(0),
            Op::LogMatMulPowers(_) | Op::LogMatMulQuotients(_) => Some(0),
            // Of a vector the result has as many elements as the matrix has columns.
            Op::LogMatMul(_) | Op::LogMatMulSums(_) => (rank > 1).then_some(0),
            Op::LogMatMulLeft(_) => Some(3),
            op => match op.properties() {
                Properties { makes: Makes::Same | Makes::Cast, .. } => Some(0),
                Properties { shape_only: &[1], .. } => Some(1),
                _ => None,
            },
        }
    }
    /// True for the first input repeated.
    pub fn broadcasts(&self) -> bool {
        matches!(self, Op::BroadcastTo(_) | Op::BroadcastLike(_))
    }
    /// Inputs whose elements are those of the result (there may be zeros besides), of an op with n inputs; `None` where it computes.
    pub fn moved(&self, n: usize) -> Option<Vec<usize>> {
        match self.properties().makes {
            Makes::Moved | Makes::Filled => Some(vec![0]),
            Makes::Written => Some(vec![0, 1]),
            Makes::Joined => Some((0..n).collect()),
            Makes::New | Makes::Given | Makes::Same | Makes::Cast => None,
        }
    }
    /// True where an input is handed on as it is: under another shape, or as the branch that is taken.
    pub fn hands_on(&self) -> bool {
        self.properties().aliases || matches!(self, Op::IfElse(_))
    }
    /// The axes of the input in the order of those of the result, where that is all that is changed.
    pub fn permutes(&self) -> Option<&[usize]> {
        if let Op::Transpose(op) = self { Some(&op.perm) } else { None }
    }
    /// True for a function of the elements that stand in one place.
    pub fn elementwise(&self) -> bool {
        matches!(self, Op::Elem(_) | Op::Cast(_))
    }
    /// True where elements of the first input are moved or repeated, and nothing else.
    pub fn moves(&self) -> bool {
        self.properties().makes == Makes::Moved
    }
    /// True for ops on floats that move elements, choose among them, draw them, or change no more than a sign: however their inputs
    /// were computed, they add no rounding.
    pub fn repeats(&self) -> bool {
        match self {
            Op::Elem(op) => op.nature().repeats,
            op => op.properties().makes != Makes::New,
        }
    }
    /// True where lists of kernels compute it as they are: no loop or branch, nothing that users wrote, that is drawn, sorted or factorised, and
    /// no extents that values decide.
    pub fn fuses(&self) -> bool {
        match self {
            Op::Reduce(_) | Op::ArgReduce(_) | Op::ExtremeMask(_) | Op::CumSum(_) | Op::CumProd(_) | Op::OuterSum(_) => true,
            Op::CumExtreme(_) | Op::ArgCumExtreme(_) => true,
            op => match op.properties() {
                Properties { makes: Makes::Given, .. } | Properties { cost: Cost::Loop | Cost::Factorises | Cost::Draws, .. } => false,
                Properties { makes: Makes::New, cost: Cost::Walks, .. } => op.writes(),
                _ => true,
            },
        }
    }
    /// True where elements of the first input are written over, or added to.
    pub fn writes(&self) -> bool {
        matches!(self, Op::IndexWrite(_) | Op::GatherWrite(_))
    }
    /// True where many elements become one.
    pub fn folds(&self) -> bool {
        match self.properties() {
            Properties { cost: Cost::Folds | Cost::Product | Cost::Exponentials, .. } => true,
            Properties { makes: Makes::New, cost: Cost::Walks, .. } => self.fuses() && !self.writes(),
            _ => false,
        }
    }
    /// True for what hands on the first input, and is there for gradients and other passes to see.
    pub fn is_mark(&self) -> bool {
        self.properties().makes == Makes::Same && self.properties().cost == Cost::Free
    }
}

fn of_index(op: &Index) -> Extents {
    let whole = |item: &Item| matches!(*item, Item::At | Item::ALL);
    match Pattern::parse(&op.pattern) {
        Ok(pattern) if pattern.items.iter().all(whole) => Extents::Shapes,
        _ => Extents::From(1),
    }
}

fn written(mode: Write) -> Makes {
    match mode {
        Write::Set => Makes::Written,
        Write::Inc => Makes::New,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;
    use crate::ir::parse::parse;
    use crate::ir::{EvalCx, Value};
    use crate::types::Array;

    const GRAPH: &str = "fn f(x: f64[3, 4], y: f64[4], n: i64, k: u64[2]) {
  %0 = transpose[perm=[1, 0]](x)
  %1 = expand[axes=[0]](x)
  %2 = squeeze[axes=[0]](%1)
  %3 = reshape(x, 4:i64, 3:i64)
  %4 = reshape_like(x, %3)
  %5 = broadcast_to(y, 2:i64, 4:i64)
  %6 = broadcast_like(y, x)
  %7 = join[axis=0](x, x)
  %8 = flip[axis=1](x)
  %9 = index[pattern=\"s:,i\"](x, 1:i64, n)
  %10 = index_write[mode=set, pattern=i](x, y, n)
  %11 = gather[axes=[0]](x, n)
  %12 = diag[k=1](y)
  %13 = tri[lower=true, k=0](x)
  %14 = cast[dtype=f32](x)
  %15 = stop_gradient(x)
  %16 = random_uniform[dtype=f64](k, 3:i64)
  %17 = gather_write[mode=set, axes=[0]](x, y, n)
  return %0
}";

    /// Every op that claims to move elements gives no others.
    #[test]
    fn what_is_moved_was_there() {
        let graph = parse(GRAPH).unwrap_or_else(|e| panic!("{}", e.title)).1;
        let numbers =
            |shape: &[usize], from: f64| Array::new(shape, (0..shape.iter().product()).map(|i| from + i as f64).collect::<Vec<f64>>());
        let args = [numbers(&[3, 4], 1.0), numbers(&[4], 100.0), Array::scalar(1i64), Array::vector(&[1u64, 2])];
        let mut graph = graph;
        let all: Vec<Value> = (0..graph.n_values()).map(Value::new).collect();
        graph.set_results(all);
        let values = crate::eval::run(&graph, &mut EvalCx::new(), &args).unwrap();
        let mut moving = 0;
        for node in graph.nodes().iter() {
            let Some(moved) = node.op.moved(node.ins.len()) else { continue };
            moving += 1;
            let mut there: Vec<f64> = moved.iter().flat_map(|&k| values[node.ins[k].idx()].to_f64_vec()).collect();
            if node.op.properties().makes == Makes::Filled {
                there.push(0.0);
            }
            let out = values[node.outs[0].idx()].to_f64_vec();
            assert!(out.iter().all(|x| there.contains(x)), "{}: {out:?} of {there:?}", node.op.name());
            assert!(node.op.repeats());
        }
        assert_eq!(moving, 15);
    }
}
