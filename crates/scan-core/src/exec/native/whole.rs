//! The steps of a list on a device as few launches, each of which does many steps.

use super::laid::{Laid, Operands};
use super::memories::Memories;
use super::portion::Portion;
use super::tasks::Task;
use crate::backend::gpu::launch::MOST_STEPS;
use crate::backend::gpu::launch::whole::Part;
use crate::backend::gpu::{DeviceRef, Launch, Program, Tiling};
use crate::base::Result;
use crate::base::clock::Instant;
use crate::ir::EvalCx;

/// Steps of the first launch.
const FIRST: usize = 1 << 8;
/// Instructions of all parts at most: a driver compiles them together.
const LONGEST: usize = 4000;
/// The same of a product.
const PRODUCT: usize = 800;

/// A step's launches as a program of all of them.
pub struct Whole {
    program: Program,
    /// How blocks share each part.
    tilings: Vec<Option<Tiling>>,
    /// Steps of a launch.
    portion: Portion,
}

impl Whole {
    /// The launches of a step as one; `None` where they are not, or where the device does not launch so.
    ///
    /// # Errors
    /// `E0523`.
    pub fn new(device: DeviceRef, parts: &[&Launch]) -> Result<Option<Whole>> {
        let cost =
            |part: &&Launch| if part.product().is_some() { PRODUCT } else { part.kernel().body.len() + 16 * part.kernel().mems.len() };
        let fits = parts.iter().map(cost).sum::<usize>() <= LONGEST && parts.iter().all(|part| part.apart().is_empty());
        let tilings = device.0.tilings(parts);
        let program = if fits { device.0.whole(parts, &tilings)? } else { None };
        Ok(program.map(|program| Whole { program, tilings, portion: Portion::new(FIRST, 8.0) }))
    }

    /// Runs from step `done` up to step `end`.
    ///
    /// # Errors
    /// `E0523`; an interruption.
    pub fn run(
        &self,
        cx: &mut EvalCx,
        laid: &mut Laid,
        memories: &Memories,
        tasks: &[(&Task, Operands)],
        done: &mut usize,
        end: usize,
    ) -> Result<()> {
        while *done < end {
            let now = self.portion.next().clamp(1, (end - *done).min(MOST_STEPS));
            let shared = tasks.iter().zip(&self.tilings);
            let parts: Vec<Part> =
                shared.map(|((task, operands), &tiling)| Part { tiling, ..part(laid, memories, task, operands, [*done, now]) }).collect();
            let start = Instant::now();
            laid.space().whole(&self.program, &parts, now)?;
            laid.space().finish()?;
            self.portion.measured(now, start.elapsed());
            *done += now;
            cx.reached(*done);
            if *done < end {
                cx.check_clock()?;
            }
        }
        Ok(())
    }
}

/// A launch in so many steps from one on.
fn part<'t>(laid: &Laid, memories: &Memories, task: &'t Task, operands: &Operands, [first, steps]: [usize; 2]) -> Part<'t> {
    let begin = |step| operands.iter().map(|(place, by)| laid.begin(memories, place.as_ref(), *by, step)).collect::<Vec<_>>();
    let along = |(place, _): &(Option<_>, usize)| place.as_ref().map_or(0, |place| Laid::stride(memories, place, first));
    let strides: Vec<isize> = operands.iter().map(along).collect();
    // Where every step is alike, the second one is a stride further on.
    let every = memories.period() == 1;
    let second = if steps > 1 { begin(first + 1) } else { begin(first) };
    Part {
        launch: &task.launch,
        tiling: None,
        bases: [begin(first), second],
        strides: strides.iter().map(|s| if every { 2 * s } else { *s }).collect(),
    }
}
