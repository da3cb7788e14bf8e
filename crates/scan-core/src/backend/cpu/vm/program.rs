//! From a kernel to a program of the vm: which loop runs in which order on which places.
//!
//! A place is a pointer of the running program: to a slot of its file of registers, or to an operand. A value that differs
//! between lanes has a place for a chunk of lanes; a uniform value has one for one element, and another that it is splatted
//! into where an instruction over lanes needs it. With one lane everything is uniform.

use super::super::isa::Isa;
use super::loops::{self, Loop};
use super::uses::{filled, last_uses, without_bits};
use crate::base::IdxVec;
use crate::kernel::{Inst, Kernel, Lane, MemId, Op, Reg};
use crate::types::DType;

/// The number of a place.
pub type Place = u32;

/// Lanes of a chunk at most.
const CHUNK: usize = 256;
/// The file should take no more of the first cache, which operands share.
const FILE: usize = 32 << 10;

/// One call of a loop.
#[derive(Clone, Copy)]
pub struct Call {
    /// The loop.
    pub run: Loop,
    /// Where to.
    pub to: Place,
    /// From where.
    pub args: [Place; 3],
}

/// What a place points to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Points {
    /// A slot for a chunk of elements of this size.
    Chunk(usize),
    /// A slot for one element.
    One,
    /// An operand.
    Mem(MemId),
}

/// A constant: its bits, into one element or all of a chunk.
#[derive(Clone, Copy)]
pub struct Fill {
    /// Where to.
    pub to: Place,
    /// The bits.
    pub bits: u64,
    /// Splats them, where the place is that of a chunk.
    pub splat: Option<Loop>,
}

/// A carry's way in and out.
#[derive(Clone, Copy)]
pub struct Carried {
    /// Its place in the file.
    pub place: Place,
    /// Its operand.
    pub mem: MemId,
    /// Copies the element, or a chunk of them, from the operand, and back.
    pub copies: [Loop; 2],
    /// Elements from a lane of the operand to the next.
    pub by: i64,
    /// True where one element serves all lanes.
    pub uniform: bool,
}

/// A program.
#[derive(Default)]
pub struct Program {
    /// A step.
    pub calls: Vec<Call>,
    /// What places point to.
    pub places: Vec<Points>,
    /// Where the slots begin in the file, by place.
    pub offsets: Vec<usize>,
    /// Bytes of the file.
    pub bytes: usize,
    /// Lanes of a chunk.
    pub chunk: usize,
    /// Constants, set before the first step.
    pub fills: Vec<Fill>,
    /// Where the number of the step is written.
    pub step: Option<Place>,
    /// Carries.
    pub carried: Vec<Carried>,
    /// Pointers exchanged after each step over many lanes: a carry's, and that of its next value.
    pub swaps: Vec<(Place, Place)>,
    /// Leaves where this bool holds after a step.
    pub stop: Option<Place>,
    /// Operands that a call in the midst of the step writes, and the number of that call.
    pub direct: Vec<(MemId, usize)>,
    /// Operands that calls read, and the number of the last one.
    pub reads: Vec<(MemId, usize)>,
}

/// Makes the program for one lane, or for many; `direct` lets calls write to operands that are stored to before the end of the
/// step.
pub fn compile(kernel: &Kernel, isa: Isa, many: bool, direct: bool) -> Program {
    let from = kernel.body.iter().map(|i| i.op.uses().first().map_or(i.dtype, |&used| kernel.dtype(used))).collect();
    let kernel = &without_bits(kernel);
    let mut maker = Maker::new(kernel, from, isa, many);
    if direct {
        maker.find_targets();
    }
    maker.carried();
    maker.find_homes();
    for (r, inst) in kernel.body.enumerate() {
        if maker.last[r].is_some() {
            maker.inst(r, inst);
        }
    }
    let handed = maker.next_values();
    maker.store();
    maker.program.stop = kernel.stop.map(|r| maker.bool_of_step(r));
    maker.hand_on(&handed);
    maker.program.reads = maker.program.operands_read();
    maker.program.lay_out();
    maker.program
}

fn computes(inst: &Inst) -> bool {
    !matches!(inst.op, Op::Const(_) | Op::Step | Op::Load(_) | Op::Carry(_))
}

impl Program {
    fn place(&mut self, points: Points) -> Place {
        self.places.push(points);
        self.places.len() as Place - 1
    }

    fn operands_read(&self) -> Vec<(MemId, usize)> {
        let read = |(i, call): (usize, &Call)| {
            call.args.map(|p| match self.places[p as usize] {
                Points::Mem(m) if p != call.to => Some((m, i)),
                _ => None,
            })
        };
        let mut reads: Vec<(MemId, usize)> = self.calls.iter().enumerate().flat_map(read).flatten().collect();
        reads.sort_by_key(|&(m, i)| (m, std::cmp::Reverse(i)));
        reads.dedup_by_key(|r| r.0);
        reads
    }

    /// Chooses the chunk, and where in the file the slots lie: single elements first, chunks from multiples of 64 bytes and a
    /// bit apart, since places whose addresses end alike hinder each other in the cache.
    fn lay_out(&mut self) {
        let size = |p: &Points| if let Points::Chunk(size) = p { *size } else { 0 };
        let per_lane: usize = self.places.iter().map(size).sum();
        self.chunk = if per_lane * CHUNK <= FILE {
            CHUNK
        } else if per_lane * CHUNK / 2 <= FILE {
            CHUNK / 2
        } else {
            CHUNK / 4
        };
        let ones = self.places.iter().filter(|p| **p == Points::One).count();
        let (mut one, mut chunk) = (0, (8 * ones).next_multiple_of(64));
        for points in &self.places {
            let (next, bytes) = if let Points::Chunk(size) = points { (&mut chunk, size * self.chunk + 64) } else { (&mut one, 8) };
            self.offsets.push(*next);
            if !matches!(points, Points::Mem(_)) {
                *next += bytes;
            }
        }
        self.bytes = chunk;
    }
}

struct Maker<'a> {
    kernel: &'a Kernel,
    /// The dtype in which an instruction takes its first argument.
    from: IdxVec<Reg, DType>,
    isa: Isa,
    wide: bool,
    varying: IdxVec<Reg, bool>,
    last: IdxVec<Reg, Option<usize>>,
    /// Uniform values that an instruction over lanes uses.
    wanted: IdxVec<Reg, bool>,
    /// Operands that the calls which compute these values write themselves.
    targets: IdxVec<Reg, Option<MemId>>,
    /// Places of carries in which these values are computed.
    homes: IdxVec<Reg, Option<Place>>,
    /// Places of one element, by value.
    one: IdxVec<Reg, Option<Place>>,
    /// Places of chunks, by value.
    many: IdxVec<Reg, Option<Place>>,
    /// Places of operands.
    mems: IdxVec<MemId, Option<Place>>,
    /// Slots that are free again.
    free: Vec<Place>,
    /// Slots that are reused, by place.
    temporary: Vec<bool>,
    program: Program,
}

impl<'a> Maker<'a> {
    fn new(kernel: &'a Kernel, from: IdxVec<Reg, DType>, isa: Isa, wide: bool) -> Maker<'a> {
        let varying = if wide { kernel.varying() } else { filled(kernel, false) };
        let last = last_uses(kernel);
        let mut wanted = filled(kernel, false);
        for (_, inst) in kernel.body.enumerate().filter(|(r, _)| varying[*r] && last[*r].is_some()) {
            inst.op.uses().iter().for_each(|&used| wanted[used] = !varying[used]);
        }
        Maker {
            kernel,
            from,
            isa,
            wide,
            varying,
            last,
            wanted,
            targets: filled(kernel, None),
            homes: filled(kernel, None),
            one: filled(kernel, None),
            many: filled(kernel, None),
            mems: kernel.mems.iter().map(|_| None).collect(),
            free: vec![],
            temporary: vec![],
            program: Program::default(),
        }
    }

    /// True for an operand with an element per lane, in a program for many.
    fn per_lane(&self, mem: MemId) -> bool {
        self.wide && self.kernel.mems[mem].lane.varies()
    }

    /// How many elements lie between those of lanes that do not lie beside each other, in a program for many.
    fn apart(&self, mem: MemId) -> Option<i32> {
        let Lane::Apart(by) = self.kernel.mems[mem].lane else { return None };
        self.wide.then_some(by)
    }

    /// Values that can be computed right into the operand that they are stored to.
    fn find_targets(&mut self) {
        let kernel = self.kernel;
        for store in &kernel.stores {
            let (mem, value) = (store.mem, store.value);
            let alone = kernel.stores.iter().filter(|s| s.mem == mem).count() == 1;
            let loaded = kernel.body.iter().any(|i| i.op == Op::Load(mem));
            let handed_on = kernel.carries.iter().any(|c| c.next == value) || kernel.stop == Some(value);
            let fits = store.at.is_none() && computes(&kernel.body[value]) && self.varying[value] == self.per_lane(mem);
            let beside = self.apart(mem).is_none();
            if alone && beside && !loaded && !handed_on && fits && self.targets[value].is_none() {
                self.targets[value] = Some(mem);
            }
        }
    }

    fn mem(&mut self, mem: MemId) -> Place {
        let place = self.mems[mem].unwrap_or_else(|| self.keep(Points::Mem(mem)));
        self.mems[mem] = Some(place);
        place
    }

    /// A place for the whole step.
    fn keep(&mut self, points: Points) -> Place {
        self.temporary.push(false);
        self.program.place(points)
    }

    /// A slot until the last use of its value.
    fn slot(&mut self, points: Points) -> Place {
        if let Some(i) = self.free.iter().rposition(|&p| self.program.places[p as usize] == points) {
            return self.free.swap_remove(i);
        }
        self.temporary.push(true);
        self.program.place(points)
    }

    fn release(&mut self, r: Reg) {
        for place in [self.one[r].take(), self.many[r].take()].into_iter().flatten() {
            if self.temporary[place as usize] {
                self.free.push(place);
            }
        }
    }

    fn call(&mut self, run: Loop, to: Place, args: &[Place]) {
        let arg = |i: usize| args.get(i).copied().unwrap_or(to);
        self.program.calls.push(Call { run, to, args: [arg(0), arg(1), arg(2)] });
    }

    fn points(&self, r: Reg) -> Points {
        if self.varying[r] { Points::Chunk(self.kernel.dtype(r).size()) } else { Points::One }
    }

    fn set(&mut self, r: Reg, place: Place) {
        *(if self.varying[r] { &mut self.many[r] } else { &mut self.one[r] }) = Some(place);
    }

    /// The place of a value as it is: of one element, or of a chunk where it varies.
    fn get(&self, r: Reg) -> Place {
        (if self.varying[r] { self.many[r] } else { self.one[r] }).expect("values are computed before they are used")
    }

    fn inst(&mut self, r: Reg, inst: &Inst) {
        match inst.op {
            Op::Const(bits) => self.constant(r, bits),
            Op::Step => {
                let place = self.program.step.unwrap_or_else(|| self.keep(Points::One));
                self.program.step = Some(place);
                self.set(r, place);
            }
            Op::Load(mem) => self.load(r, mem),
            Op::Carry(c) => self.set(r, self.program.carried[c.0 as usize].place),
            _ => self.compute(r, inst),
        }
        if self.wanted[r] && self.many[r].is_none() {
            let size = self.kernel.dtype(r).size();
            let place = self.slot(Points::Chunk(size));
            self.call(loops::splat(self.isa, size), place, &[self.get(r)]);
            self.many[r] = Some(place);
        }
    }

    /// Constants are splatted once.
    fn constant(&mut self, r: Reg, bits: u64) {
        let one = self.keep(Points::One);
        self.one[r] = Some(one);
        self.program.fills.push(Fill { to: one, bits, splat: None });
        if self.wanted[r] {
            let size = self.kernel.dtype(r).size();
            let many = self.keep(Points::Chunk(size));
            self.many[r] = Some(many);
            self.program.fills.push(Fill { to: many, bits, splat: Some(loops::splat(self.isa, size)) });
        }
    }

    /// Operands are read where they lie, but for those that are looked at when stores may have changed them.
    fn load(&mut self, r: Reg, mem: MemId) {
        let place = self.mem(mem);
        if let Some(by) = self.apart(mem) {
            let (slot, by) = (self.slot(self.points(r)), self.distance(by));
            self.call(loops::gathered(self.kernel.dtype(r).size()), slot, &[place, by]);
            return self.set(r, slot);
        }
        let stored = self.kernel.stores.len() > 1 && self.kernel.stores.iter().any(|s| s.value == r);
        if !stored && self.kernel.stop != Some(r) {
            return self.set(r, place);
        }
        let slot = self.slot(self.points(r));
        let pair = loops::copy(self.kernel.dtype(r).size());
        self.call(if self.varying[r] { pair.many } else { pair.one }, slot, &[place]);
        self.set(r, slot);
    }

    fn compute(&mut self, r: Reg, inst: &Inst) {
        let uses = inst.op.uses();
        let place_of = |used: &Reg| if self.varying[r] { self.many[*used] } else { self.one[*used] };
        let mut args: Vec<Place> = uses.iter().map(|u| place_of(u).expect("values are computed before they are used")).collect();
        if let Op::Call(f, _) = inst.op {
            let address = self.keep(Points::One);
            self.program.fills.push(Fill { to: address, bits: f.address() as u64, splat: None });
            args.push(address);
        }
        if let Op::Gather(m, _) = inst.op {
            args.insert(0, self.mem(m));
            args.push(self.last_of(m));
        }
        let pair = loops::pick(self.isa, inst, self.from[r]);
        let run = if self.varying[r] { pair.many } else { pair.one };
        // Before its arguments are released: no loop over many elements writes what it reads.
        let to = match self.targets[r] {
            Some(mem) => {
                self.program.direct.push((mem, self.program.calls.len()));
                self.mem(mem)
            }
            None => self.homes[r].unwrap_or_else(|| self.slot(self.points(r))),
        };
        self.call(run, to, &args);
        self.set(r, to);
        for &used in &uses {
            if self.last[used] == Some(r.0 as usize) {
                self.release(used);
            }
        }
    }

    /// Places for carries, that last.
    fn carried(&mut self) {
        for carry in self.kernel.carries.iter() {
            let (size, per_lane) = (self.kernel.mems[carry.mem].dtype.size(), self.per_lane(carry.mem));
            let place = self.keep(if per_lane { Points::Chunk(size) } else { Points::One });
            let copies = match (per_lane, self.apart(carry.mem)) {
                (true, Some(_)) => [loops::gathered(size), loops::scattered(size)],
                (true, None) => [loops::copy(size).many; 2],
                (false, _) => [loops::copy(size).one; 2],
            };
            let by = self.kernel.mems[carry.mem].lane.elements() as i64;
            self.program.carried.push(Carried { place, mem: carry.mem, copies, by, uniform: !per_lane });
        }
    }

    /// Where the next value of each carry lies at the end of the body: in a place of its own, or copied there where that has other
    /// duties.
    fn next_values(&mut self) -> Vec<(Place, MemId, Place)> {
        let mut handed = vec![];
        for (id, carry) in self.kernel.carries.enumerate() {
            let (next, place) = (carry.next, self.program.carried[id.0 as usize].place);
            let there = self.kernel.body[next].op == Op::Carry(id) || self.homes[next] == Some(place);
            if !there {
                let taken = self.kernel.carries.iter().take(id.0 as usize).any(|c| c.next == next);
                let own = computes(&self.kernel.body[next]) && self.varying[next] == self.per_lane(carry.mem) && !taken;
                handed.push((place, carry.mem, if own { self.get(next) } else { self.copied(next, carry.mem) }));
            }
        }
        handed
    }

    /// Over many lanes a carry changes places with its next value; one element is copied sooner.
    fn hand_on(&mut self, handed: &[(Place, MemId, Place)]) {
        for &(place, mem, from) in handed {
            if self.wide {
                self.program.swaps.push((place, from));
            } else {
                self.call(loops::copy(self.kernel.mems[mem].dtype.size()).one, place, &[from]);
            }
        }
    }

    /// The place of `stop`, which no carry takes over before it is looked at.
    fn bool_of_step(&mut self, r: Reg) -> Place {
        if computes(&self.kernel.body[r]) && self.homes[r].is_none() {
            return self.get(r);
        }
        let place = self.keep(Points::One);
        self.call(loops::copy(1).one, place, &[self.get(r)]);
        place
    }

    /// With one lane, the next value of a carry that nothing looks at any more is computed in its place.
    fn find_homes(&mut self) {
        for (id, carry) in self.kernel.carries.enumerate() {
            let next = carry.next;
            let old = self.kernel.body.enumerate().filter(|(_, i)| i.op == Op::Carry(id)).filter_map(|(r, _)| self.last[r]).max();
            let gone = old.is_none_or(|last| last <= next.0 as usize);
            if !self.wide && gone && computes(&self.kernel.body[next]) && self.homes[next].is_none() {
                self.homes[next] = Some(self.program.carried[id.0 as usize].place);
            }
        }
    }

    fn copied(&mut self, value: Reg, mem: MemId) -> Place {
        let place = self.keep(if self.per_lane(mem) { Points::Chunk(self.kernel.dtype(value).size()) } else { Points::One });
        self.copy(value, mem, place);
        place
    }

    /// Copies a value to a place as wide as an operand is.
    fn copy(&mut self, value: Reg, mem: MemId, to: Place) {
        let size = self.kernel.dtype(value).size();
        let run = match (self.per_lane(mem), self.varying[value]) {
            (true, true) => loops::copy(size).many,
            (true, false) => loops::splat(self.isa, size),
            _ => loops::copy(size).one,
        };
        self.call(run, to, &[self.get(value)]);
    }

    /// Writes the element of a table with a number.
    fn scatter(&mut self, table: Place, mem: MemId, at: Reg, value: Reg) {
        let last = self.last_of(mem);
        let args = [self.get(at), self.get(value), last];
        self.call(loops::scatter(self.kernel.mems[mem].dtype.size()), table, &args);
    }

    /// Where the number of a table's last element lies.
    fn last_of(&mut self, table: MemId) -> Place {
        let last = self.keep(Points::One);
        self.program.fills.push(Fill { to: last, bits: self.kernel.mems[table].table as u64 - 1, splat: None });
        last
    }

    /// Where a number of elements lies.
    fn distance(&mut self, elements: i32) -> Place {
        let place = self.keep(Points::One);
        self.program.fills.push(Fill { to: place, bits: i64::from(elements).cast_unsigned(), splat: None });
        place
    }

    fn store(&mut self) {
        for store in &self.kernel.stores {
            let to = self.mem(store.mem);
            match (store.at, self.apart(store.mem)) {
                (None, Some(by)) => {
                    let from = if self.varying[store.value] { self.get(store.value) } else { self.copied(store.value, store.mem) };
                    let by = self.distance(by);
                    self.call(loops::scattered(self.kernel.mems[store.mem].dtype.size()), to, &[from, by]);
                }
                (Some(at), _) => self.scatter(to, store.mem, at, store.value),
                (None, None) if self.targets[store.value] == Some(store.mem) => {}
                (None, None) => self.copy(store.value, store.mem, to),
            }
        }
    }
}
