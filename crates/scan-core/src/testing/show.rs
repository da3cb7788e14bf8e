//! Programs in print: one line per value that is needed.

use super::program::*;
use std::fmt::{self, Display, Formatter};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let live = self.live();
        for (k, value) in self.shared.iter().enumerate() {
            writeln!(f, "shared{k} = {:?} {:?}", value.shape, value.data)?;
        }
        for (k, input) in self.inputs.iter().enumerate() {
            if self.items.iter().zip(&live).any(|(i, live)| *live && matches!(i.expr, Expr::Input(n) if n == k)) {
                writeln!(f, "in{k} = {:?} {:?} {:?} {:?}", input.value.kind, input.value.shape, input.known, input.value.data)?;
            }
        }
        block(self, &live, &self.block, 0, f)?;
        writeln!(f, "return {:?}", self.outputs)?;
        for (k, id) in &self.updates {
            writeln!(f, "update shared{k} = %{id}")?;
        }
        Ok(())
    }
}

fn block(p: &Program, live: &[bool], ids: &[Id], indent: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let pad = "  ".repeat(indent);
    for &id in ids.iter().filter(|&&id| live[id]) {
        let item = &p.items[id];
        let Expr::Loop(l) = &item.expr else {
            writeln!(f, "{pad}%{id}: {:?}{:?} = {:?}", item.kind, item.shape, item.expr)?;
            continue;
        };
        let (back, cut) = (if l.backwards { " backwards" } else { "" }, l.truncate.map_or(String::new(), |k| format!(" truncate {k}")));
        writeln!(f, "{pad}%{id} = loop n_steps {:?}, step %{}{back}{cut}", l.n_steps, l.step)?;
        for seq in &l.seqs {
            writeln!(f, "{pad}  sequence %{} taps {:?} as {:?}", seq.x, seq.taps, seq.slots)?;
        }
        for (k, state) in l.states.iter().enumerate() {
            writeln!(f, "{pad}  state {k} from %{} taps {:?} as {:?}", state.init, state.taps, state.slots)?;
        }
        block(p, live, &l.body, indent + 1, f)?;
        writeln!(f, "{pad}  outputs {:?} updates {:?} until {:?}", l.outputs, l.updates, l.until)?;
    }
    Ok(())
}
