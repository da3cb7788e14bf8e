//! Products of matrices as PTX: blocks of invocations own tiles of the result, and share what they read of the sides.
//!
//! Each element is added up as the law says (see [`kernels::chains`](crate::backend::gpu::kernels::chains)): a chain for each [`DEPTH`] of the
//! inner extent, in order, and the chains in order.

use super::ptx::Target;
use super::text::{GROUP, Text};
use super::values::{Class, literal};
use crate::backend::gpu::Product;
use crate::backend::gpu::launch::{HEAD, LANES, STEPS};
use crate::kernel::MemId;
use crate::scalar::product::DEPTH;

/// Invocations of a block along columns and along rows.
const ACROSS: usize = 16;
const DOWN: usize = GROUP / ACROSS;
/// Multiplications of an invocation that are written out, about.
const UNROLLED: usize = 128;

/// What a block computes at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tile {
    /// Elements of an invocation: rows, `DOWN` apart, and columns, `ACROSS` apart.
    each: [usize; 2],
    /// How much of the inner extent is shared at a time.
    depth: usize,
}

/// From the largest to the smallest. The more elements an invocation has, the more often it uses what it reads.
const TILES: [Tile; 4] = [
    Tile { each: [8, 4], depth: 16 },
    Tile { each: [4, 2], depth: 32 },
    Tile { each: [2, 1], depth: 128 },
    Tile { each: [1, 1], depth: 128 },
];

impl Tile {
    /// The largest one that gives every multiprocessor something to do.
    pub fn of(product: &Product, target: Target) -> Tile {
        // An invocation has so many registers.
        let fits = |t: &&Tile| t.each[0] * t.each[1] * product.dtype.size() <= 128;
        let [m, _, n] = product.extents;
        let mut all = TILES.iter().filter(fits);
        *all.clone().find(|t| t.blocks(m, n) >= target.processors).unwrap_or(all.next_back().expect("the smallest fits"))
    }
    fn rows(&self) -> usize {
        self.each[0] * DOWN
    }
    fn columns(&self) -> usize {
        self.each[1] * ACROSS
    }
    /// How many a result has.
    pub fn blocks(&self, m: usize, n: usize) -> usize {
        m.div_ceil(self.rows()) * n.div_ceil(self.columns())
    }
}

/// Writes the product of a launch's operands.
pub fn write(text: &mut Text, product: &Product, tile: Tile) {
    let mut p = Printer { tile, product, size: product.dtype.size(), class: Class::of(product.dtype), text };
    p.write();
}

struct Printer<'a> {
    tile: Tile,
    product: &'a Product,
    size: usize,
    class: Class,
    text: &'a mut Text,
}

/// What an invocation brings to the memory that its block shares: elements of one side that lie at equal distances, along the inner extent or across.
struct Staged {
    /// The address of the first one, and the bytes from one to the next.
    address: String,
    apart: String,
    /// How far the first one is along the inner extent and across, and which of both grows by so much from one to the next.
    along: String,
    across: String,
    grows: (Grows, usize),
    /// How far it may be across.
    extent: String,
    /// Where the first one goes, and the bytes to where the next one goes.
    to: String,
    by: usize,
    values: Vec<String>,
    /// Bytes from one part of the inner extent to the next.
    stride: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Grows {
    Along,
    Across,
}

impl Printer<'_> {
    /// A pitch that spreads a row of the left side over all banks.
    fn pitch(&self) -> usize {
        self.tile.depth + 1
    }
    /// Bytes of the left side's part, behind which the right one's begins.
    fn left(&self) -> usize {
        self.tile.rows() * self.pitch() * self.size
    }

    fn write(&mut self) {
        let bytes = self.left() + self.tile.depth * self.tile.columns() * self.size;
        let shared = self.text.share(bytes);
        let (tile, tiles, across) = self.tiles();
        let open = self.text.count(&tile, tiles);
        self.tile(&tile, &across, &shared);
        let blocks = self.text.special("%nctaid.x");
        self.text.counted(open, Some(&blocks));
    }

    /// The number of this block's first tile, of how many, and how many lie beside each other.
    fn tiles(&mut self) -> (String, String, String) {
        let (rows, columns) = (self.tile.rows(), self.tile.columns());
        let t = &mut *self.text;
        let tile = t.special("%ctaid.x");
        let mut parts = |word: usize, each: usize| {
            let n = t.param(word);
            t.line(format!("add.u32 {n}, {n}, {};", each - 1));
            t.line(format!("div.u32 {n}, {n}, {each};"));
            n
        };
        let (down, across) = (parts(HEAD, rows), parts(LANES, columns));
        let tiles = t.temp(Class::Word);
        t.line(format!("mul.lo.u32 {tiles}, {down}, {across};"));
        (tile, tiles, across)
    }

    /// A word: a · b + c.
    fn mad(&mut self, a: &str, b: impl std::fmt::Display, c: &str) -> String {
        let word = self.text.temp(Class::Word);
        self.text.line(format!("mad.lo.u32 {word}, {a}, {b}, {c};"));
        word
    }
    /// The address of the element that lies so many strides along either axis behind a word.
    fn address(&mut self, base: &str, [i, down]: [&str; 2], [j, along]: [&str; 2]) -> String {
        let (row, word) = (self.text.temp(Class::Long), self.text.temp(Class::Long));
        self.text.line(format!("mad.wide.s32 {row}, {i}, {down}, {base};"));
        self.text.line(format!("mad.wide.s32 {word}, {j}, {along}, {row};"));
        self.text.at_long(&word)
    }
    fn holds(&mut self, a: &str, b: &str) -> String {
        let pred = self.text.temp(Class::Pred);
        self.text.line(format!("setp.lt.u32 {pred}, {a}, {b};"));
        pred
    }
    fn zero(&mut self) -> String {
        let value = self.text.temp(self.class);
        self.text.constant(self.product.dtype, &value, 0);
        value
    }

    /// One tile of the result.
    fn tile(&mut self, tile: &str, across: &str, shared: &str) {
        let (rows, columns) = (self.tile.rows(), self.tile.columns());
        let (high, wide) = (self.text.word("div.u32", tile, across), self.text.word("rem.u32", tile, across));
        let (row, column) = (self.text.word("mul.lo.u32", &high, rows), self.text.word("mul.lo.u32", &wide, columns));
        let thread = self.text.special("%tid.x");
        let (x, y) = (self.text.word("rem.u32", &thread, ACROSS), self.text.word("div.u32", &thread, ACROSS));
        let [m, k, n] = [HEAD, STEPS, LANES].map(|word| self.text.param(word));
        let left = self.staged(MemId(0), [&row, &m, &k], &thread, shared);
        let right = self.staged(MemId(1), [&column, &n, &k], &thread, shared);
        let count = self.tile.each[0] * self.tile.each[1];
        let sums: Vec<String> = (0..count).map(|_| self.zero()).collect();
        let totals: Option<Vec<String>> =
            (self.product.adds || self.product.extents[1] > DEPTH).then(|| (0..count).map(|_| self.zero()).collect());
        // Where this invocation's elements of both sides begin.
        let from_left = self.mad(&y, self.pitch() * self.size, shared);
        let from_right = self.mad(&x, self.size, shared);
        self.chains([&left, &right], &k, [&from_left, &from_right], &sums, totals.as_deref());
        self.store([&row, &column], [&m, &n], [&x, &y], totals.as_ref().unwrap_or(&sums));
    }

    /// What this invocation brings of a side whose first row or column, and the extents across and along, are these.
    fn staged(&mut self, mem: MemId, [first, extent, k]: [&str; 3], thread: &str, shared: &str) -> Staged {
        let is_left = mem.0 == 0;
        let (depth, wide) = (self.tile.depth, if is_left { self.tile.rows() } else { self.tile.columns() });
        // Elements that lie beside each other in memory are read by invocations beside each other.
        let along_first = is_left && !self.product.turned;
        let inner = if along_first { depth } else { wide };
        let (fast, slow) = (self.text.word("rem.u32", thread, inner), self.text.word("div.u32", thread, inner));
        let (along, place) = if along_first { (fast, slow) } else { (slow, fast) };
        let across = self.text.word("add.u32", &place, first);
        let strides = Product::SHAPE.strides(Product::OPERANDS, mem);
        let step = self.text.param(strides);
        let axis = if is_left { self.text.param(strides + 1) } else { self.text.word("add.u32", &(self.size / 4).to_string(), 0) };
        let base = self.text.begin(Product::SHAPE.base(mem), mem);
        let address = self.address(&base, [&along, &step], [&across, &axis]);
        // Bytes of the block's memory from one to the next along and across.
        let pitches = if is_left { [self.size, self.pitch() * self.size] } else { [wide * self.size, self.size] };
        let row = self.mad(&along, pitches[0], shared);
        let to = self.mad(&place, pitches[1], &row);
        let to = if is_left { to } else { self.text.word("add.u32", &to, self.left()) };
        let many = GROUP / inner;
        let grows = if along_first { Grows::Across } else { Grows::Along };
        let grown = if along_first { &axis } else { &step };
        let words = self.text.word("mul.lo.u32", grown, many);
        let apart = self.text.bytes(&words);
        let by = many * pitches[usize::from(along_first)];
        let values = (0..depth * wide / GROUP).map(|_| self.text.temp(self.class)).collect();
        let words = self.text.word("mul.lo.u32", &step, depth);
        let stride = self.text.bytes(&words);
        let staged = Staged { address, apart, along, across, grows: (grows, many), extent: extent.to_string(), to, by, values, stride };
        let zero = self.text.temp(Class::Word);
        self.text.line(format!("mov.b32 {zero}, 0;"));
        self.read(&staged, &zero, k);
        staged
    }

    /// Reads what comes next of a side, from `at` along the inner extent on.
    fn read(&mut self, staged: &Staged, at: &str, k: &str) {
        let Staged { address, apart, across, extent, grows: (grows, many), values, stride, .. } = staged;
        let along = self.text.word("add.u32", &staged.along, at);
        // What does not change from one element to the next.
        let fixed = if *grows == Grows::Across { self.holds(&along, k) } else { self.holds(across, extent) };
        let from = self.text.temp(Class::Long);
        self.text.line(format!("mov.b64 {from}, {address};"));
        for (q, value) in values.iter().enumerate() {
            let (own, limit) = if *grows == Grows::Across { (across, extent.as_str()) } else { (&along, k) };
            let own = self.text.word("add.u32", own, q * many);
            let inside = self.holds(&own, limit);
            let t = &mut *self.text;
            t.line(format!("and.pred {inside}, {inside}, {fixed};"));
            t.line(format!("@{inside} ld.global.{} {value}, [{from}];", self.class.ty()));
            t.line(format!("add.s64 {from}, {from}, {apart};"));
        }
        self.text.line(format!("add.s64 {address}, {address}, {stride};"));
    }

    /// The chains of all elements of this invocation.
    fn chains(&mut self, sides: [&Staged; 2], k: &str, from: [&str; 2], sums: &[String], totals: Option<&[String]>) {
        let depth = self.tile.depth;
        let (at, again, end) = (self.text.temp(Class::Word), self.text.label(), self.text.label());
        let done = self.text.temp(Class::Pred);
        self.text.line(format!("mov.b32 {at}, 0;"));
        self.text.here(&again);
        self.text.line(format!("setp.ge.u32 {done}, {at}, {k};"));
        self.text.line(format!("@{done} bra {end};"));
        self.text.line("bar.sync 0;");
        for side in sides {
            for (q, value) in side.values.iter().enumerate() {
                self.text.line(format!("st.shared.{} [{}+{}], {value};", self.class.ty(), side.to, q * side.by));
            }
        }
        self.text.line("bar.sync 0;");
        let rest = self.text.word("sub.u32", k, &at);
        let now = self.text.word("min.u32", &rest, depth);
        self.text.line(format!("add.u32 {at}, {at}, {depth};"));
        sides.iter().for_each(|side| self.read(side, &at, k));
        self.terms(&now, from, sums);
        if let Some(totals) = totals {
            self.add_up(&at, k, sums, totals);
        }
        self.text.line(format!("bra {again};"));
        self.text.here(&end);
    }

    /// So many terms of each chain, of what the block shares.
    fn terms(&mut self, count: &str, from: [&str; 2], sums: &[String]) {
        let [left, right] = from.map(|f| self.text.word("add.u32", f, 0));
        let left_to_do = self.text.word("add.u32", count, 0);
        let [high, wide] = self.tile.each;
        for unrolled in [(UNROLLED / (high * wide)).clamp(4, 16), 1] {
            let (again, end, done) = (self.text.label(), self.text.label(), self.text.temp(Class::Pred));
            self.text.here(&again);
            self.text.line(format!("setp.lt.u32 {done}, {left_to_do}, {unrolled};"));
            self.text.line(format!("@{done} bra {end};"));
            (0..unrolled).for_each(|u| self.term(u, [&left, &right], sums));
            let t = &mut *self.text;
            t.line(format!("add.u32 {left}, {left}, {};", unrolled * self.size));
            t.line(format!("add.u32 {right}, {right}, {};", unrolled * self.tile.columns() * self.size));
            t.line(format!("sub.u32 {left_to_do}, {left_to_do}, {unrolled};"));
            t.line(format!("bra {again};"));
            t.here(&end);
        }
    }

    fn term(&mut self, u: usize, [left, right]: [&str; 2], sums: &[String]) {
        let [high, wide] = self.tile.each;
        let mut load = |base: &str, by: usize| {
            let value = self.text.temp(self.class);
            self.text.line(format!("ld.shared.{} {value}, [{base}+{by}];", self.class.ty()));
            value
        };
        let pitch = (self.tile.depth + 1) * self.size;
        let a: Vec<String> = (0..high).map(|i| load(left, (i * DOWN) * pitch + u * self.size)).collect();
        let row = self.tile.rows() * pitch + u * self.tile.columns() * self.size;
        let b: Vec<String> = (0..wide).map(|j| load(right, row + j * ACROSS * self.size)).collect();
        for (i, a) in a.iter().enumerate() {
            for (j, b) in b.iter().enumerate() {
                self.text.term(self.class, &sums[i * wide + j], a, b);
            }
        }
    }

    /// Behind the last term of a chain, which is at `at`, it is added to those before.
    fn add_up(&mut self, at: &str, k: &str, sums: &[String], totals: &[String]) {
        let (over, go_on, inside) = (self.text.word("rem.u32", at, DEPTH), self.text.label(), self.holds(at, k));
        let between = self.text.temp(Class::Pred);
        let (ty, zero) = (self.class.ty(), literal(self.product.dtype, 0));
        let first = (!self.product.adds).then(|| self.text.temp(Class::Pred));
        let t = &mut *self.text;
        t.line(format!("setp.ne.u32 {between}, {over}, 0;"));
        t.line(format!("and.pred {between}, {between}, {inside};"));
        t.line(format!("@{between} bra {go_on};"));
        if let Some(first) = &first {
            t.line(format!("setp.le.u32 {first}, {at}, {DEPTH};"));
        }
        for (sum, total) in sums.iter().zip(totals) {
            t.line(format!("add.rn.{ty} {total}, {total}, {sum};"));
            if let Some(first) = &first {
                t.line(format!("@{first} mov.{ty} {total}, {sum};"));
            }
            t.line(format!("mov.{ty} {sum}, {zero};"));
        }
        t.here(&go_on);
    }

    fn store(&mut self, first: [&str; 2], extents: [&str; 2], [x, y]: [&str; 2], values: &[String]) {
        let (c, shape) = (MemId(2), Product::SHAPE);
        let base = self.text.begin(shape.base(c), c);
        let row = self.text.param(shape.strides(Product::OPERANDS, c) + 1);
        let rows: Vec<String> = (0..self.tile.each[0]).map(|i| self.placed(first[0], y, i * DOWN)).collect();
        let columns: Vec<String> = (0..self.tile.each[1]).map(|j| self.placed(first[1], x, j * ACROSS)).collect();
        for (i, row_at) in rows.iter().enumerate() {
            let inside = self.holds(row_at, extents[0]);
            for (j, column) in columns.iter().enumerate() {
                let both = self.holds(column, extents[1]);
                let address = self.address(&base, [row_at, &row], [column, &(self.size / 4).to_string()]);
                let value = &values[i * columns.len() + j];
                self.text.line(format!("and.pred {both}, {both}, {inside};"));
                self.text.line(format!("@{both} st.global.{} [{address}], {value};", self.class.ty()));
            }
        }
    }

    /// A row or column of this invocation.
    fn placed(&mut self, first: &str, own: &str, by: usize) -> String {
        let at = self.text.word("add.u32", first, own);
        self.text.word("add.u32", &at, by)
    }
}
