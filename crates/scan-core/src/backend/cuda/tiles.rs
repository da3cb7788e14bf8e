//! How blocks share the parts of a step that has products: a tile of a product is small enough for the block's memory to hold the rows and columns
//! that it is made of, and the parts behind it that read it element on element are cut alike.

use super::panel::Panel;
use super::ptx::Target;
use super::text::GROUP;
use crate::backend::gpu::{Launch, Product, Tiling};

/// Rows and columns of a tile, of which the best are taken.
const ROWS: [usize; 6] = [1, 2, 4, 8, 16, 32];
const COLUMNS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Parts whose columns have no larger divisor in common are not cut alike.
const LEAST: usize = 8;
/// Elements that an invocation computes at most: of more the tiles of a product alone use better what they read.
const ELEMENTS: usize = 8;

/// Parts that are cut alike: rows, the divisor of their columns, and which they are.
struct Group {
    rows: usize,
    period: usize,
    parts: Vec<usize>,
}

/// How blocks share each part; `None`: as it comes.
pub fn tilings(parts: &[&Launch], target: Target) -> Vec<Option<Tiling>> {
    let mut found = vec![None; parts.len()];
    // The memory of a block that steady sides of products keep.
    let mut kept = 0;
    for group in groups(parts) {
        let products: Vec<Product> = group.parts.iter().filter_map(|&k| parts[k].product().copied()).collect();
        if let Some((tiling, bytes)) = best(&group, &products, target, kept) {
            kept += bytes;
            group.parts.iter().for_each(|&k| found[k] = Some(tiling));
        }
    }
    found
}

fn groups(parts: &[&Launch]) -> Vec<Group> {
    let mut found: Vec<Group> = vec![];
    let mut open = false;
    for (k, part) in parts.iter().enumerate() {
        let product = part.product().filter(|p| !p.turned && !p.adds);
        let places = part.invocations_of_all();
        if let Some(group) = found.last_mut().filter(|_| open)
            && (part.product().is_none() || product.is_some())
            && part.shape().ordered == 0
            && places.is_multiple_of(group.rows)
            && product.is_none_or(|p| p.extents[0] == group.rows)
        {
            let period = gcd(group.period, places / group.rows);
            if period >= LEAST || period == group.period {
                group.period = period;
                group.parts.push(k);
                continue;
            }
        }
        open = product.is_some();
        if let Some(Product { extents: [rows, _, columns], .. }) = product {
            found.push(Group { rows: *rows, period: *columns, parts: vec![k] });
        }
    }
    found
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The tiling that takes least time, and the memory that its blocks keep; `None` where products are too large for any.
fn best(group: &Group, products: &[Product], target: Target, before: usize) -> Option<(Tiling, usize)> {
    let mut found: Option<(usize, Tiling, usize)> = None;
    for rows in ROWS.into_iter().filter(|&n| n < 2 * group.rows) {
        for columns in COLUMNS.into_iter().filter(|&n| n < 2 * group.period) {
            let tiling = Tiling { rows: group.rows, period: group.period, tile: [rows, columns], block: GROUP };
            let tiles: usize = tiling.tiles().iter().product();
            let panels = || products.iter().map(|product| Panel::new(product, tiling));
            let kept = panels().map(|p| p.kept()).sum::<usize>();
            let passing = panels().map(|p| p.passing()).max().unwrap_or(0);
            let bytes = before + kept + passing;
            let elements = products.iter().map(|p| rows * columns * (p.extents[2] / group.period)).max().unwrap_or(0);
            if bytes > target.shared || elements > ELEMENTS * GROUP {
                continue;
            }
            // Blocks of one multiprocessor, which run at the same time.
            let blocks = tiles.div_ceil(target.processors);
            if blocks * (bytes + RESERVED) > target.shared + RESERVED {
                continue;
            }
            let cost = panels().map(|p| p.cycles(blocks)).sum::<usize>();
            if found.as_ref().is_none_or(|f| cost < f.0) {
                found = Some((cost, tiling, kept));
            }
        }
    }
    found.map(|(_, tiling, kept)| (tiling, kept))
}

/// Bytes of a multiprocessor's memory that each block takes beside its own.
const RESERVED: usize = 1 << 10;

#[cfg(test)]
mod tests;
