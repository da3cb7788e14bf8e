//! A small product of matrices that steps do again and again: each block holds the rows and columns of its tile whole, in the memory that it shares.
//! Columns that are the same in all steps stay there.
//!
//! Each element is added up as the law says: a chain for each [`DEPTH`] of the inner extent, and the chains in order. Chains of one element are
//! computed by several invocations at the same time.

use super::text::{GROUP, Text};
use super::values::Class;
use crate::backend::gpu::{Launch, Product, Tiling};
use crate::kernel::MemId;
use crate::scalar::product::DEPTH;

/// Bytes that one instruction loads.
const VECTOR: usize = 16;
/// Multiplications that are written out one behind the other, about.
const UNROLLED: usize = 128;
/// An invocation computes so many elements where there are enough of them for so many invocations.
const BUSY: usize = 64;

/// A product in tiles.
#[derive(Clone, Copy)]
pub struct Panel {
    product: Product,
    tiling: Tiling,
}

impl Panel {
    /// Of a product whose rows and columns are cut so.
    pub fn new(product: &Product, tiling: Tiling) -> Panel {
        Panel { product: *product, tiling }
    }
    /// How many tiles the result has.
    pub fn tiles(&self) -> usize {
        self.tiling.tiles().iter().product()
    }
    fn size(&self) -> usize {
        self.product.dtype.size()
    }
    fn rows(&self) -> usize {
        self.tiling.tile[0]
    }
    /// Columns of a tile.
    fn columns(&self) -> usize {
        self.tiling.tile[1] * (self.product.extents[2] / self.tiling.period)
    }
    /// Bytes from a row or column to the next: an odd number of vectors, so that eight of them lie in different banks.
    fn pitch(&self) -> usize {
        VECTOR * ((self.product.extents[1] * self.size()).div_ceil(VECTOR) | 1)
    }
    fn chains(&self) -> usize {
        self.product.extents[1].div_ceil(DEPTH)
    }
    /// Bytes of the columns.
    pub fn kept(&self) -> usize {
        self.columns() * self.pitch()
    }
    /// Bytes of the rows, and of the sums of several chains.
    pub fn passing(&self) -> usize {
        let sums = if self.chains() > 1 { self.chains() * self.rows() * self.columns() * self.size() } else { 0 };
        self.rows() * self.pitch() + sums.next_multiple_of(VECTOR)
    }
    /// Rows and columns of an invocation.
    fn each(&self) -> [usize; 2] {
        let all = self.rows() * self.columns() * self.chains();
        let fits = |[high, wide]: &[usize; 2]| {
            self.rows().is_multiple_of(*high) && self.columns().is_multiple_of(*wide) && all / (high * wide) >= BUSY
        };
        [[4, 2], [2, 2], [2, 1], [1, 2]].into_iter().find(fits).unwrap_or([1, 1])
    }
    /// About how long a multiprocessor takes that has so many such tiles, whose columns stay.
    pub fn cycles(&self, tiles: usize) -> usize {
        let [high, wide] = self.each();
        let k = self.product.extents[1];
        let tasks = self.rows() * self.columns() * self.chains() / (high * wide);
        let rounds = tasks.div_ceil(GROUP);
        // A chain waits four cycles for each term; a load of a vector takes two, a quarter of the vectors being read by several.
        let waits = rounds * k.min(DEPTH) * (4.max(high * wide));
        let warps = tasks.div_ceil(32);
        let loads = tiles * warps * k.min(DEPTH) * self.size() / VECTOR * (high + wide) * 2;
        let reads = tiles * self.rows() * k * self.size() / 48;
        waits.max(loads) + reads
    }
}

/// Writes a product, whose columns stay at `kept` in the memory of the block, and are there already where `there` holds; the rest is at `free`.
pub fn write(text: &mut Text, launch: &Launch, panel: Panel, [kept, free]: [usize; 2], there: &str) {
    let strides = |k: u32| launch.strides(MemId(k));
    let words = |k: u32| [strides(k).step, strides(k).outer[0]];
    let [left, right, result] = [words(0), words(1), words(2)];
    let class = Class::of(panel.product.dtype);
    let sum = free + panel.rows() * panel.pitch();
    let bases = [0, 1, 2].map(|k| text.begin(Product::SHAPE.base(MemId(k)), MemId(k)));
    let mut p = Printer { panel, class, text, bases, left, down: right[0], row: result[1], at: [free, kept, sum] };
    p.write(there);
}

struct Printer<'a> {
    panel: Panel,
    class: Class,
    text: &'a mut Text,
    /// The words of the operands' first elements.
    bases: [String; 3],
    /// Words from one element of a row of the left side to the next, and from row to row.
    left: [isize; 2],
    /// From one row of the right side to the next.
    down: isize,
    /// From one row of the result to the next.
    row: isize,
    /// Where rows, columns and sums are in the memory of the block.
    at: [usize; 3],
}

impl Printer<'_> {
    fn write(&mut self, there: &str) {
        let Tiling { tile: [rows, columns], .. } = self.panel.tiling;
        let [_, across] = self.panel.tiling.tiles();
        let all = self.panel.tiles();
        let thread = self.text.special("%tid.x");
        let tile = self.text.special("%ctaid.x");
        let open = self.text.count(&tile, all);
        let (down, beside) = (self.text.word("div.u32", &tile, across), self.text.word("rem.u32", &tile, across));
        let first = [self.text.word("mul.lo.u32", &down, rows), self.text.word("mul.lo.u32", &beside, columns)];
        self.text.line("bar.sync 0;");
        self.rows_in(&thread, &first[0]);
        let present = self.text.label();
        self.text.line(format!("@{there} bra {present};"));
        self.columns_in(&thread, &first[1]);
        self.text.here(&present);
        self.text.landed();
        self.text.line("bar.sync 0;");
        self.chains(&thread, &first);
        let blocks = self.text.special("%nctaid.x");
        self.text.counted(open, Some(&blocks));
    }

    fn compare(&mut self, relation: &str, a: &str, b: impl std::fmt::Display) -> String {
        let pred = self.text.temp(Class::Pred);
        self.text.line(format!("setp.{relation}.u32 {pred}, {a}, {b};"));
        pred
    }
    fn both(&mut self, a: Option<String>, b: Option<String>) -> Option<String> {
        match (a, b) {
            (Some(a), Some(b)) => {
                let pred = self.text.temp(Class::Pred);
                self.text.line(format!("and.pred {pred}, {a}, {b};"));
                Some(pred)
            }
            (a, b) => a.or(b),
        }
    }
    /// The address of what lies so many strides of words behind an operand's begin.
    fn address(&mut self, mem: usize, moves: [(&str, isize); 2]) -> String {
        let [word, behind] = [(); 2].map(|()| self.text.temp(Class::Long));
        let base = &self.bases[mem];
        self.text.line(format!("mad.wide.s32 {word}, {}, {}, {base};", moves[0].0, moves[0].1));
        self.text.line(format!("mad.wide.s32 {behind}, {}, {}, {word};", moves[1].0, moves[1].1));
        self.text.at_long(&behind)
    }
    /// The address of a byte of the block's memory.
    fn place(&mut self, moves: &[(&str, usize)], at: usize) -> String {
        let shared = self.text.special("s");
        let mut word = self.text.word("add.u32", &shared, at);
        for (by, bytes) in moves {
            let next = self.text.temp(Class::Word);
            self.text.line(format!("mad.lo.u32 {next}, {by}, {bytes}, {word};"));
            word = next;
        }
        word
    }

    /// Brings the rows of the left side.
    fn rows_in(&mut self, thread: &str, first: &str) {
        let [m, k, _] = self.panel.product.extents;
        let (size, pitch, high) = (self.panel.size(), self.panel.pitch(), self.panel.rows());
        // Invocations beside each other read elements beside each other.
        let wide = k.next_power_of_two().min(GROUP);
        let deep = GROUP / wide;
        let (along, row) = (self.text.word("rem.u32", thread, wide), self.text.word("div.u32", thread, wide));
        let from = self.text.word("add.u32", first, &row);
        let [step, down] = self.left;
        let address = self.address(0, [(&from, down), (&along, step)]);
        let to = self.place(&[(&row, pitch), (&along, size)], self.at[0]);
        let behind: Vec<Option<String>> = (0..k.div_ceil(wide))
            .map(|c| {
                let last = (c + 1) * wide > k;
                last.then(|| self.compare("lt", &along, k - c * wide))
            })
            .collect();
        for i in 0..high.div_ceil(deep) {
            let own = (high % deep != 0).then(|| self.compare("lt", &row, high - i * deep));
            let below = (m % high != 0).then(|| {
                let at = self.text.word("add.u32", &from, i * deep);
                self.compare("lt", &at, m)
            });
            let inside = self.both(own, below);
            for (c, last) in behind.iter().enumerate() {
                let guard = self.both(inside.clone(), last.clone());
                let [i, c] = [i, c].map(|n| n as isize);
                let by = 4 * (i * deep as isize * down + c * wide as isize * step);
                let place = i as usize * deep * pitch + c as usize * wide * size;
                self.text.copy_in(guard.as_deref(), (&to, place), (&address, by), size);
            }
        }
    }

    /// Brings the columns of the right side, the elements of each beside each other.
    fn columns_in(&mut self, thread: &str, first: &str) {
        let Tiling { period, tile: [_, columns], .. } = self.panel.tiling;
        let k = self.panel.product.extents[1];
        let (size, pitch, all) = (self.panel.size(), self.panel.pitch(), self.panel.columns());
        let wide = all.next_power_of_two().min(GROUP);
        let deep = GROUP / wide;
        let (across, begin) = (self.text.word("rem.u32", thread, wide), self.text.word("div.u32", thread, wide));
        for c in 0..all.div_ceil(wide) {
            let own = self.text.word("add.u32", &across, c * wide);
            let inside = self.compare("lt", &own, all);
            let (within, far) = (self.text.word("rem.u32", &own, columns), self.text.word("div.u32", &own, columns));
            let near = self.text.word("add.u32", first, &within);
            let there = (period % columns != 0).then(|| self.compare("lt", &near, period));
            let inside = self.both(Some(inside), there).expect("there is one");
            let column = self.text.temp(Class::Word);
            self.text.line(format!("mad.lo.u32 {column}, {far}, {period}, {near};"));
            let each = (size / 4) as isize;
            let address = self.address(1, [(&begin, self.down), (&column, each)]);
            let to = self.place(&[(&own, pitch), (&begin, size)], self.at[1]);
            let at = self.text.word("add.u32", &begin, 0);
            let open = self.text.count(&at, k);
            self.text.copy_in(Some(&inside), (&to, 0), (&address, 0), size);
            self.text.line(format!("add.u32 {to}, {to}, {};", deep * size));
            self.text.line(format!("add.s64 {address}, {address}, {};", 4 * deep as isize * self.down));
            self.text.counted(open, Some(&deep.to_string()));
        }
    }

    /// The chains of this tile's elements, and their sums to the result.
    fn chains(&mut self, thread: &str, first: &[String; 2]) {
        let ([high, wide], chains) = (self.panel.each(), self.panel.chains());
        let (down, across) = (self.panel.rows() / high, self.panel.columns() / wide);
        let task = self.text.word("add.u32", thread, 0);
        let open = self.text.count(&task, chains * down * across);
        let (column, rest) = (self.text.word("rem.u32", &task, across), self.text.word("div.u32", &task, across));
        let (row, chain) = (self.text.word("rem.u32", &rest, down), self.text.word("div.u32", &rest, down));
        let sums = self.chain([&row, &column], &chain);
        for i in 0..high {
            for j in 0..wide {
                let own = [self.text.word("add.u32", &row, i * down), self.text.word("add.u32", &column, j * across)];
                let sum = &sums[i * wide + j];
                if chains > 1 {
                    let (size, columns) = (self.panel.size(), self.panel.columns());
                    let each = size * columns;
                    let to = self.place(&[(&chain, self.panel.rows() * each), (&own[0], each), (&own[1], size)], self.at[2]);
                    self.text.line(format!("st.shared.{} [{to}], {sum};", self.class.ty()));
                } else {
                    self.store(first, &own, sum);
                }
            }
        }
        self.text.counted(open, Some(&GROUP.to_string()));
        if chains > 1 {
            self.text.line("bar.sync 0;");
            self.add_up(thread, first);
        }
    }

    /// One chain of each of an invocation's elements.
    fn chain(&mut self, [row, column]: [&str; 2], chain: &str) -> Vec<String> {
        let [high, wide] = self.panel.each();
        let (size, pitch) = (self.panel.size(), self.panel.pitch());
        let (k, vector) = (self.panel.product.extents[1], VECTOR / size);
        let begin = |p: &mut Self, own: &str, at: usize| p.place(&[(own, pitch), (chain, DEPTH * size)], at);
        let [rows, columns] = [begin(self, row, self.at[0]), begin(self, column, self.at[1])];
        let sums: Vec<String> = (0..high * wide)
            .map(|_| {
                let sum = self.text.temp(self.class);
                self.text.constant(self.panel.product.dtype, &sum, 0);
                sum
            })
            .collect();
        let from = [&rows, &columns];
        if k % DEPTH == 0 || k < DEPTH {
            let n = k.min(DEPTH);
            let each = (UNROLLED / (high * wide)).clamp(vector, 32) / vector * vector;
            let left = self.text.word("add.u32", "0", 0);
            let (again, turns) = (self.text.label(), n / each);
            if turns > 0 {
                self.text.here(&again);
                (0..each / vector).for_each(|v| self.terms(from, v * vector, &sums));
                from.iter().for_each(|at| self.text.line(format!("add.u32 {at}, {at}, {};", each * size)));
                self.text.line(format!("add.u32 {left}, {left}, 1;"));
                let more = self.compare("lt", &left, turns);
                self.text.line(format!("@{more} bra {again};"));
            }
            let rest = n % each;
            (0..rest / vector).for_each(|v| self.terms(from, v * vector, &sums));
            (rest / vector * vector..rest).for_each(|u| self.term(from, u, &sums));
        } else {
            // The last chain is shorter than the others.
            let (last, full) = (self.compare("ge", chain, k / DEPTH), self.text.temp(Class::Word));
            self.text.line(format!("selp.b32 {full}, {}, {DEPTH}, {last};", k % DEPTH));
            for each in [vector, 1] {
                let (again, end) = (self.text.label(), self.text.label());
                self.text.here(&again);
                let done = self.compare("lt", &full, each);
                self.text.line(format!("@{done} bra {end};"));
                if each > 1 {
                    self.terms(from, 0, &sums)
                } else {
                    self.term(from, 0, &sums)
                }
                from.iter().for_each(|at| self.text.line(format!("add.u32 {at}, {at}, {};", each * size)));
                self.text.line(format!("sub.u32 {full}, {full}, {each};"));
                self.text.line(format!("bra {again};"));
                self.text.here(&end);
            }
        }
        sums
    }

    /// How far the elements of an invocation lie apart: its rows, and its columns.
    fn apart(&self) -> [usize; 2] {
        let [high, wide] = self.panel.each();
        [self.panel.rows() / high, self.panel.columns() / wide].map(|n| n * self.panel.pitch())
    }

    /// A vector of terms of each chain, so many elements behind.
    fn terms(&mut self, from: [&String; 2], behind: usize, sums: &[String]) {
        let (size, each, apart) = (self.panel.size(), self.panel.each(), self.apart());
        let count = VECTOR / size;
        let mut sides: Vec<Vec<Vec<String>>> = vec![];
        for side in 0..2 {
            let load = |i: usize| {
                let values: Vec<String> = (0..count).map(|_| self.text.temp(self.class)).collect();
                let by = i * apart[side] + behind * size;
                self.text.line(format!("ld.shared.v{count}.{} {{{}}}, [{}+{by}];", self.class.ty(), values.join(", "), from[side]));
                values
            };
            sides.push((0..each[side]).map(load).collect());
        }
        (0..count).for_each(|v| {
            for (i, a) in sides[0].iter().enumerate() {
                for (j, b) in sides[1].iter().enumerate() {
                    self.text.term(self.class, &sums[i * each[1] + j], &a[v], &b[v]);
                }
            }
        });
    }

    /// A term of each chain.
    fn term(&mut self, from: [&String; 2], behind: usize, sums: &[String]) {
        let (size, each, apart) = (self.panel.size(), self.panel.each(), self.apart());
        let mut sides: Vec<Vec<String>> = vec![];
        for side in 0..2 {
            let load = |i: usize| {
                let value = self.text.temp(self.class);
                self.text.line(format!("ld.shared.{} {value}, [{}+{}];", self.class.ty(), from[side], i * apart[side] + behind * size));
                value
            };
            sides.push((0..each[side]).map(load).collect());
        }
        for (i, a) in sides[0].iter().enumerate() {
            for (j, b) in sides[1].iter().enumerate() {
                self.text.term(self.class, &sums[i * each[1] + j], a, b);
            }
        }
    }

    /// The chains of each element added up in order.
    fn add_up(&mut self, thread: &str, first: &[String; 2]) {
        let (size, rows, columns) = (self.panel.size(), self.panel.rows(), self.panel.columns());
        let at = self.text.word("add.u32", thread, 0);
        let open = self.text.count(&at, rows * columns);
        let own = [self.text.word("div.u32", &at, columns), self.text.word("rem.u32", &at, columns)];
        let from = self.place(&[(&at, size)], self.at[2]);
        let ty = self.class.ty();
        let [total, next] = [(); 2].map(|()| self.text.temp(self.class));
        for chain in 0..self.panel.chains() {
            let to = if chain == 0 { &total } else { &next };
            self.text.line(format!("ld.shared.{ty} {to}, [{from}+{}];", chain * rows * columns * size));
            if chain > 0 {
                self.text.line(format!("add.rn.{ty} {total}, {total}, {next};"));
            }
        }
        self.store(first, &own, &total);
        self.text.counted(open, Some(&GROUP.to_string()));
    }

    /// An element of the tile to the result, if it is one.
    fn store(&mut self, first: &[String; 2], own: &[String; 2], value: &str) {
        let Tiling { rows: m, period, tile: [rows, columns], .. } = self.panel.tiling;
        let row = self.text.word("add.u32", &first[0], &own[0]);
        let (within, far) = (self.text.word("rem.u32", &own[1], columns), self.text.word("div.u32", &own[1], columns));
        let near = self.text.word("add.u32", &first[1], &within);
        let below = (m % rows != 0).then(|| self.compare("lt", &row, m));
        let beside = (period % columns != 0).then(|| self.compare("lt", &near, period));
        let inside = self.both(below, beside).map_or(String::new(), |pred| format!("@{pred} "));
        let column = self.text.temp(Class::Word);
        self.text.line(format!("mad.lo.u32 {column}, {far}, {period}, {near};"));
        let address = self.address(2, [(&row, self.row), (&column, (self.panel.size() / 4) as isize)]);
        self.text.line(format!("{inside}st.global.{} [{address}], {value};", self.class.ty()));
    }
}
