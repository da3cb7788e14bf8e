//! Each output of a random program as a function of its own: what others would have kept alive is gone then.

use scan_core::exec::{Engine, Function, FunctionSpec};
use scan_core::ir::EvalCx;
use scan_core::testing::build::{Leaves, scanned};
use scan_core::testing::gen_loop::generate;
use scan_core::types::Array;

#[test]
fn each_output_alone_is_what_the_evaluator_says() {
    let mut compared = 0;
    for seed in 0..400 {
        let program = generate(seed);
        let leaves = Leaves::new(&program);
        let Ok(outputs) = scanned(&program, &leaves) else { continue };
        let args: Vec<Array> = program.inputs.iter().map(|i| i.value.to_array()).collect();
        for output in outputs {
            let given = |engine| {
                let (inputs, outputs) = (leaves.inputs.clone(), vec![output.clone()]);
                let f = Function::new(FunctionSpec { inputs, outputs, engine: Some(engine), ..FunctionSpec::default() })?;
                f.call(&mut EvalCx::new(), &args)
            };
            let [law, vm] =
                [Engine::Eval, Engine::Vm].map(|engine| given(engine).map(|outs| outs.iter().map(Array::bits).collect::<Vec<_>>()));
            assert_eq!(law.map_err(|e| e.code), vm.map_err(|e| e.code), "seed {seed}");
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared}");
}
