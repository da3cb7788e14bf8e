//! Many steps of launches as one launch: every block does its share of each part, and waits for the others where a part reads what another
//! one wrote.
//!
//! Parameters: the [`HEAD`], then per part a word that says who waits before it (a [`Wait`]), and whether a product's right side stays, the part's own parameters (see [`launch`]), and per operand
//! where it begins in every second step, and how far it moves in two. All blocks of such a launch run at the same time.
//!
//! [`launch`]: crate::backend::gpu::launch

use super::panel::{self, Panel};
use super::product::{self, Tile};
use super::ptx::{self, Target};
use super::text::{Module, Text, Turn};
use super::values::Class;
use crate::backend::cpu::Refusal;
use crate::backend::gpu::host::taken;
use crate::backend::gpu::launch::whole::{COUNTER, HEAD, STEADY, STEPS, WAIT, Wait, words};
use crate::backend::gpu::{Launch, Tiling};

/// The text of so many steps of launches, which blocks share so.
///
/// # Errors
/// As [`ptx::text`].
pub fn text(parts: &[&Launch], tilings: &[Option<Tiling>], target: Target) -> Result<Module, Refusal> {
    let mut text = Text::new();
    let panels: Vec<Option<Panel>> =
        parts.iter().zip(tilings).map(|(part, tiling)| Some(Panel::new(part.product()?, (*tiling)?))).collect();
    text.keep(panels.iter().flatten().map(Panel::kept).sum(), target.copies);
    let mut kept = 0;
    let (steps, counter) = (text.param(STEPS), text.param(COUNTER));
    let barrier = Barrier::new(&mut text, &counter);
    let (step, again, end, done) = (text.temp(Class::Word), text.label(), text.label(), text.temp(Class::Pred));
    text.line(format!("mov.b32 {step}, 0;"));
    text.here(&again);
    text.line(format!("setp.ge.u32 {done}, {step}, {steps};"));
    text.line(format!("@{done} bra {end};"));
    let (low, odd, pairs) = (text.temp(Class::Word), text.temp(Class::Pred), text.temp(Class::Word));
    text.line(format!("and.b32 {low}, {step}, 1;"));
    text.line(format!("setp.ne.u32 {odd}, {low}, 0;"));
    text.line(format!("shr.u32 {pairs}, {step}, 1;"));
    let mut first = HEAD;
    for (k, ((part, tiling), panel)) in parts.iter().zip(tilings).zip(&panels).enumerate() {
        let flags = text.param(first);
        if k > 0 {
            barrier.wait_as(&mut text, &flags);
        }
        let at = part.shape().words(part.kernel());
        text.part(first + 1, Turn { odd: odd.clone(), pairs: pairs.clone(), at });
        match (part.product(), panel) {
            (Some(_), Some(panel)) => {
                let there = stays(&mut text, &flags, &step, panel);
                let free = text.passing(panel.passing());
                panel::write(&mut text, part, *panel, [kept, free], &there);
                kept += panel.kept();
            }
            (Some(product), None) => product::write(&mut text, product, Tile::of(product, target)),
            (None, _) => {
                let tiling = tiling.map(|tiling| (tiling, tiling.columns(part)));
                ptx::write(&mut text, part.kernel(), part.shape(), (&taken(part.kernel())?, target), tiling);
            }
        }
        text.outside();
        first += words(part);
    }
    barrier.wait(&mut text);
    text.line(format!("add.u32 {step}, {step}, 1;"));
    text.line(format!("bra {again};"));
    text.here(&end);
    text.module(first)
}

/// Whether the columns of a product are in the memory of the block: from the second step on, where they stay and each block has one tile.
fn stays(text: &mut Text, flags: &str, step: &str, panel: &Panel) -> String {
    let blocks = text.special("%nctaid.x");
    let steady = text.temp(Class::Word);
    text.line(format!("and.b32 {steady}, {flags}, {STEADY};"));
    let [all, later, one] = [(); 3].map(|()| text.temp(Class::Pred));
    text.line(format!("setp.ne.u32 {all}, {steady}, 0;"));
    text.line(format!("setp.gt.u32 {later}, {step}, 0;"));
    text.line(format!("setp.le.u32 {one}, {}, {blocks};", panel.tiles()));
    text.line(format!("and.pred {all}, {all}, {later};"));
    text.line(format!("and.pred {all}, {all}, {one};"));
    all
}

/// Where all blocks wait for each other: a number that each counts up.
struct Barrier {
    /// Its address.
    counter: String,
    /// What it is when all have come.
    all: String,
    blocks: String,
    /// It is the invocation that counts for its block.
    counts: String,
}

impl Barrier {
    fn new(text: &mut Text, counter: &str) -> Barrier {
        let counter = text.at_word(counter);
        let (all, blocks, thread) = (text.temp(Class::Word), text.special("%nctaid.x"), text.special("%tid.x"));
        let counts = text.temp(Class::Pred);
        text.line(format!("mov.b32 {all}, 0;"));
        text.line(format!("setp.eq.u32 {counts}, {thread}, 0;"));
        Barrier { counter, all, blocks, counts }
    }

    /// Waits as a part's first word says.
    fn wait_as(&self, text: &mut Text, flags: &str) {
        let (wait, behind, all) = (text.temp(Class::Word), text.label(), text.label());
        text.line(format!("and.b32 {wait}, {flags}, {WAIT};"));
        for (kind, label) in [(Wait::All, &all), (Wait::Nobody, &behind)] {
            let is = text.temp(Class::Pred);
            text.line(format!("setp.eq.u32 {is}, {wait}, {};", kind as u32));
            text.line(format!("@{is} bra {label};"));
        }
        text.line("bar.sync 0;");
        text.line(format!("bra {behind};"));
        text.here(&all);
        self.wait(text);
        text.here(&behind);
    }

    /// What any invocation wrote before is seen by all behind this.
    fn wait(&self, text: &mut Text) {
        let Barrier { counter, all, blocks, counts } = self;
        let (number, early) = (text.temp(Class::Word), text.temp(Class::Pred));
        let (again, behind) = (text.label(), text.label());
        text.line(format!("add.u32 {all}, {all}, {blocks};"));
        text.line("bar.sync 0;");
        text.line(format!("@!{counts} bra {behind};"));
        text.line(format!("red.release.gpu.global.add.u32 [{counter}], 1;"));
        text.here(&again);
        text.line(format!("ld.acquire.gpu.global.u32 {number}, [{counter}];"));
        // It may have gone round.
        text.line(format!("sub.u32 {number}, {number}, {all};"));
        text.line(format!("setp.lt.s32 {early}, {number}, 0;"));
        text.line(format!("@{early} bra {again};"));
        text.here(&behind);
        text.line("bar.sync 0;");
    }
}
