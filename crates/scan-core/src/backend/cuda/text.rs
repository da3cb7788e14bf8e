//! PTX as it is written: lines, registers, labels, parameters, and the module around them.

use super::values::Class;
use crate::backend::cpu::Refusal;
use crate::backend::gpu::launch::whole::EACH;
use crate::kernel::MemId;
use crate::scalar::lanes::fused;
use std::fmt::{Display, Write};

/// Invocations of a block.
pub const GROUP: usize = 128;
/// The name of the function that is run.
pub const ENTRY: &str = "main_kernel";
/// Bytes of parameters that every driver takes, and those that newer ones take; the address of the memory is one of them.
const PARAMS: [usize; 2] = [4096, 32764];

/// Bytes of the memory of a block that a text declares; more of it is told when it is launched.
const DECLARED: usize = 48 << 10;

/// A text that can be compiled.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Module {
    /// The text.
    pub text: String,
    /// Bytes of the memory of a block that its launches are told.
    pub shared: usize,
}

/// True for so many words of parameters as every driver takes.
pub fn fits_all(words: usize) -> bool {
    8 + 4 * words <= PARAMS[0]
}

/// Lines of a kernel, and the registers that they use.
#[derive(Default)]
pub struct Text {
    out: String,
    registers: u32,
    labels: u32,
    /// Bytes of memory that the invocations of a block share, and the first of those that parts use one after the other.
    shared: usize,
    passing: usize,
    /// The card copies to it in the background.
    background: bool,
    /// Something is copied in the background.
    copies: bool,
    /// The address of the memory.
    heap: String,
    /// Where the parameters of this part begin.
    first: usize,
    /// The parts of a whole step: which of two steps it is, and how often both went by.
    turn: Option<Turn>,
}

/// A loop that counts and is open.
pub struct Counted {
    counter: String,
    again: String,
    end: String,
}

/// Steps of which every second one is alike.
#[derive(Clone)]
pub struct Turn {
    /// It is the second one.
    pub odd: String,
    /// Pairs before it.
    pub pairs: String,
    /// Where the operands' places in the second step, and their strides, stand.
    pub at: usize,
}

impl Text {
    /// Nothing yet, but for the address of the memory.
    pub fn new() -> Text {
        let mut text = Text::default();
        text.heap = text.temp(Class::Long);
        text.line(format!("ld.param.u64 {}, [m];", text.heap));
        text
    }
    /// Writes an instruction.
    pub fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.out, "\t{}", text.as_ref());
    }
    /// A register that nobody uses.
    pub fn temp(&mut self, class: Class) -> String {
        self.registers += 1;
        format!("{}{}", class.prefix(), self.registers - 1)
    }
    /// Registers for so many values, in each class: the number of the first.
    pub fn values(&mut self, count: usize) -> u32 {
        self.registers += count as u32;
        self.registers - count as u32
    }
    /// A label that nobody uses.
    pub fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels - 1)
    }
    /// Puts a label here.
    pub fn here(&mut self, label: &str) {
        let _ = writeln!(self.out, "{label}:");
    }
    /// A parameter.
    pub fn param(&mut self, k: usize) -> String {
        let word = self.temp(Class::Word);
        self.line(format!("ld.param.u32 {word}, [p+{}];", 4 * (self.first + k)));
        word
    }
    /// A register that the hardware sets.
    pub fn special(&mut self, name: &str) -> String {
        let word = self.temp(Class::Word);
        self.line(format!("mov.u32 {word}, {name};"));
        word
    }
    /// A word: `a op b`.
    pub fn word(&mut self, op: &str, a: &str, b: impl Display) -> String {
        let word = self.temp(Class::Word);
        self.line(format!("{op} {word}, {a}, {b};"));
        word
    }
    /// Begins a loop that counts a word as long as that is below a limit.
    pub fn count(&mut self, counter: &str, limit: impl Display) -> Counted {
        let (again, end, beyond) = (self.label(), self.label(), self.temp(Class::Pred));
        self.here(&again);
        self.line(format!("setp.ge.u32 {beyond}, {counter}, {limit};"));
        self.line(format!("@{beyond} bra {end};"));
        Counted { counter: counter.to_string(), again, end }
    }
    /// Ends it: on by so much each time, or once only.
    pub fn counted(&mut self, Counted { counter, again, end }: Counted, by: Option<&str>) {
        if let Some(by) = by {
            self.line(format!("add.u32 {counter}, {counter}, {by};"));
            self.line(format!("bra {again};"));
        }
        self.here(&end);
    }
    /// Bytes of so many words, with their sign.
    pub fn bytes(&mut self, words: &str) -> String {
        let bytes = self.temp(Class::Long);
        self.line(format!("mul.wide.s32 {bytes}, {words}, 4;"));
        bytes
    }
    /// The address of a word of the memory.
    pub fn at_word(&mut self, word: &str) -> String {
        let (bytes, at) = (self.temp(Class::Long), self.temp(Class::Long));
        self.line(format!("mul.wide.u32 {bytes}, {word}, 4;"));
        self.line(format!("add.s64 {at}, {}, {bytes};", self.heap));
        at
    }
    /// Memory that the invocations of a block share: where it begins. The parts of a step use the same, one after the other.
    pub fn share(&mut self, bytes: usize) -> String {
        self.shared = self.shared.max(self.passing + bytes);
        if self.turn.is_some() {
            self.line("bar.sync 0;");
        }
        let (begin, first) = (self.special("s"), self.temp(Class::Word));
        self.line(format!("add.u32 {first}, {begin}, {};", self.passing));
        first
    }
    /// So many bytes of it are kept by parts of a step; `background`: the card copies to it in the background.
    pub fn keep(&mut self, bytes: usize, background: bool) {
        (self.passing, self.background) = (bytes, background);
    }
    /// The first byte of it that parts use one after the other, of which this one uses so many.
    pub fn passing(&mut self, bytes: usize) -> usize {
        self.shared = self.shared.max(self.passing + bytes);
        self.passing
    }
    /// An element of so many bytes to the memory of the block, where the guard holds: to where from where, each so many bytes behind an address. It is
    /// there behind [`landed`](Text::landed).
    pub fn copy_in(&mut self, guard: Option<&str>, (to, place): (&str, usize), (from, by): (&str, isize), size: usize) {
        let guard = guard.map_or(String::new(), |guard| format!("@{guard} "));
        if self.background {
            self.copies = true;
            self.line(format!("{guard}cp.async.ca.shared.global [{to}+{place}], [{from}+{by}], {size};"));
            return;
        }
        let (class, ty) = if size == 8 { (Class::Long, "b64") } else { (Class::Word, "b32") };
        let value = self.temp(class);
        self.line(format!("{guard}ld.global.{ty} {value}, [{from}+{by}];"));
        self.line(format!("{guard}st.shared.{ty} [{to}+{place}], {value};"));
    }
    /// Waits for what this invocation copied.
    pub fn landed(&mut self) {
        if self.background {
            self.line("cp.async.wait_all;");
        }
    }
    /// A copy in the background is used.
    pub fn copies(&mut self) {
        self.copies = true;
    }
    /// Adds a · b to a sum, as the law does.
    pub fn term(&mut self, class: Class, sum: &str, a: &str, b: &str) {
        let ty = class.ty();
        if fused() {
            return self.line(format!("fma.rn.{ty} {sum}, {a}, {b}, {sum};"));
        }
        let product = self.temp(class);
        self.line(format!("mul.rn.{ty} {product}, {a}, {b};"));
        self.line(format!("add.rn.{ty} {sum}, {product}, {sum};"));
    }
    /// A parameter of two words.
    pub fn param_long(&mut self, k: usize) -> String {
        let (low, high, long) = (self.param(k), self.param(k + 1), self.temp(Class::Long));
        self.line(format!("mov.b64 {long}, {{{low}, {high}}};"));
        long
    }
    /// The word of an operand's first element, whose parameter stands at `k`.
    pub fn begin(&mut self, k: usize, mem: MemId) -> String {
        let word = self.param_long(k);
        if let Some(Turn { odd, pairs, at }) = self.turn.clone() {
            let at = at + EACH * mem.0 as usize;
            let (other, stride) = (self.param_long(at), self.param(at + 2));
            self.line(format!("selp.b64 {word}, {other}, {word}, {odd};"));
            self.line(format!("mad.wide.s32 {word}, {pairs}, {stride}, {word};"));
        }
        word
    }
    /// The address of a word that is counted in 64 bits.
    pub fn at_long(&mut self, word: &str) -> String {
        let (bytes, at) = (self.temp(Class::Long), self.temp(Class::Long));
        self.line(format!("shl.b64 {bytes}, {word}, 2;"));
        self.line(format!("add.s64 {at}, {}, {bytes};", self.heap));
        at
    }
    /// What follows is a part of a step, whose parameters begin at `first`.
    pub fn part(&mut self, first: usize, turn: Turn) {
        (self.first, self.turn) = (first, Some(turn));
    }
    /// True within a part.
    pub fn is_part(&self) -> bool {
        self.turn.is_some()
    }
    /// What follows belongs to no part.
    pub fn outside(&mut self) {
        (self.first, self.turn) = (0, None);
    }

    /// The module, whose function has so many words of parameters.
    ///
    /// # Errors
    /// More than parameters can be.
    pub fn module(self, words: usize) -> Result<Module, Refusal> {
        let bytes = 8 + 4 * words;
        // Newer drivers alone read the second version.
        let version = match PARAMS.iter().position(|&most| bytes <= most) {
            Some(0) => "7.0",
            Some(_) => "8.1",
            None => return Err(Refusal(format!("it has {words} words of parameters"))),
        };
        let target = if self.copies { "sm_80" } else { "sm_70" };
        let mut out = format!(".version {version}\n.target {target}\n.address_size 64\n\n");
        let told = if self.shared > DECLARED { self.shared } else { 0 };
        if told > 0 {
            out.push_str(".extern .shared .align 16 .b8 s[];\n");
        }
        let _ = writeln!(out, ".visible .entry {ENTRY}(\n\t.param .u64 m,\n\t.param .align 4 .b8 p[{}]\n)", bytes - 8);
        let _ = writeln!(out, ".maxntid {GROUP}, 1, 1\n{{");
        for class in Class::ALL {
            let _ = writeln!(out, "\t.reg .{} {}<{}>;", class.ty(), class.prefix(), self.registers);
        }
        if self.shared > 0 && told == 0 {
            let _ = writeln!(out, "\t.shared .align 16 .b8 s[{}];", self.shared);
        }
        Ok(Module { text: out + &self.out + "\tret;\n}\n", shared: told })
    }
}
