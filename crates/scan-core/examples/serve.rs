//! Goes on where a program in Python stopped: `serve model.rscan data.safetensors results.safetensors`.
//!
//! The module has `train(x, y)`, which gives the loss and updates the weights, and `predict(x)`. It is trained for 100 steps more, predicts,
//! and the results go to a file; the module with the new weights goes back to where it was.

use scan_core::prelude::*;
use std::time::Instant;

fn main() -> Result<()> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let [model, data, results] = &files[..] else {
        println!("usage: serve model.rscan data.safetensors results.safetensors");
        return Ok(());
    };
    let data = load_params(data)?;
    let (x, y) = (&data["x"], &data["y"]);
    let start = Instant::now();
    let module = Module::load(model)?;
    let loaded = start.elapsed();
    let first = module.call("predict", std::slice::from_ref(x))?.remove(0);
    println!("loaded in {loaded:.1?}, first prediction of {} after {:.1?}", first.ty(), start.elapsed());
    print!("{}", module.describe());

    // Compared with the signature once; `Array` stands for arrays of any dtype and rank.
    let train = module.typed::<(Array, Array), (f64,)>("train")?;
    let mut losses = vec![];
    for _ in 0..100 {
        losses.push(train.call((x.clone(), y.clone()))?.0);
    }
    let prediction = module.call("predict", std::slice::from_ref(x))?.remove(0);
    module.save(model)?;
    save_params(results, &[("losses".to_string(), Array::vector(&losses)), ("prediction".to_string(), prediction)].into())
}
