//! Products on every engine: an element is a function of its row, its column and the extents k and n alone.

use scan_core::exec::Engine;
use scan_core::prelude::*;
use scan_core::scalar::{Host, Lanes};

fn numbers(shape: &[usize], seed: usize) -> Array {
    let len = shape.iter().product::<usize>();
    Array::new(shape, (0..len).map(|i| ((i * 7919 + seed * 31) % 1009) as f64 / 500.0 - 1.0).collect())
}

/// An element as the law has it: chains of `fma` over 256 terms, added up; of a product of one column, eight partial sums and a tree.
fn element(terms: &[(f64, f64)], n: usize) -> f64 {
    let chain = |terms: &[(f64, f64)]| terms.iter().fold(0.0, |sum, &(x, y)| Host::<f64>::CX.fma(x, y, sum));
    if n > 1 {
        return terms.chunks(256).map(chain).reduce(|sum, block| sum + block).unwrap_or(0.0);
    }
    let part: [f64; 8] = std::array::from_fn(|l| chain(&terms.iter().skip(l).step_by(8).copied().collect::<Vec<_>>()));
    let [a, b, c, d, e, f, g, h] = part;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

fn law(a: &[f64], b: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let terms = |i: usize, j: usize| (0..k).map(|p| (a[i * k + p], b[p * n + j])).collect::<Vec<_>>();
    (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| element(&terms(i, j), n)).collect()
}

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn function(engine: Engine, inputs: &[Var], outputs: &[Var]) -> Function {
    Function::new(FunctionSpec { inputs: inputs.to_vec(), outputs: outputs.to_vec(), engine: Some(engine), ..Default::default() })
        .unwrap_or_else(|e| panic!("{}", e.title))
}

#[test]
fn every_element_is_what_the_law_says() {
    let (a, b) = (Var::float("a", 2), Var::float("b", 2));
    let f = function(Engine::Auto, &[a.clone(), b.clone()], &[a.matmul(&b)]);
    for [m, k, n] in
        [[1, 0, 3], [1, 1, 1], [2, 3, 1], [3, 300, 1], [2, 2, 2], [5, 7, 3], [1, 600, 40], [9, 257, 33], [40, 64, 96], [300, 20, 260]]
    {
        let (x, y) = (numbers(&[m, k], 1), numbers(&[k, n], 2));
        let found = f.call(&mut EvalCx::new(), &[x.clone(), y.clone()]).unwrap_or_else(|e| panic!("{}", e.title));
        assert_eq!(bits(&found[0].to_f64_vec()), bits(&law(&x.to_f64_vec(), &y.to_f64_vec(), [m, k, n])), "{m}×{k}×{n}");
    }
}

/// A state is multiplied at every step, in a kernel where it is small and by a call where it is not.
#[test]
fn steps_of_loops_keep_the_law() {
    for engine in [Engine::Eval, Engine::Vm, Engine::Jit, Engine::Auto] {
        let (h0, w, n) = (Var::float("h0", 2), Var::float("w", 2), Var::input(Type::scalar(DType::I64), Some("n"), Span::NONE));
        let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(n.clone()), ..Default::default() }).expect("a loop");
        let h = step.state(&h0, &[-1], Some("h")).expect("a state").remove(0);
        let next = h.matmul(&w).tanh();
        let rows = step.finish(&[(Some(0), next)], &[], None).expect("a loop").outputs.remove(0);
        let f = function(engine, &[h0, w, n], &[rows]);
        for (m, k) in [(1, 1), (3, 1), (1, 2), (4, 5), (1, 40), (7, 40), (32, 24)] {
            let (start, weights) = (numbers(&[m, k], 3), numbers(&[k, k], 4));
            let found = f
                .call(&mut EvalCx::new(), &[start.clone(), weights.clone(), Array::scalar(3i64)])
                .unwrap_or_else(|e| panic!("{}", e.title));
            let mut state = start.to_f64_vec();
            for row in found[0].to_f64_vec().chunks(m * k) {
                state = law(&state, &weights.to_f64_vec(), [m, k, k]).into_iter().map(|x| Host::<f64>::CX.tanh(x)).collect();
                assert_eq!(bits(row), bits(&state), "{engine:?}, {m} rows of {k}");
            }
        }
    }
}
