//! The text form, printed. [`parse`](super::parse) reads it back to an equal graph, and printing that gives the same text.
//!
//! The grammar, with what it means, stands in `docs/format.md`, and in no other place.

use super::graph::{Graph, Node, Value};
use super::literal::{self, Names, identifier, quote};
use super::op::{Arg, Attr, Op};
use super::parse::RESERVED;
use super::scan::{Keep, NonSeqId, Scan, SeqId, StateId, Tag};
use crate::base::{Id, Span};
use crate::types::{Array, Dim, Sym, Type};
use rustc_hash::{FxHashMap, FxHashSet};

/// Constants of more elements are statements of their own.
const INLINE: usize = 16;
/// The column at which comments start.
const COMMENT: usize = 56;

impl Graph {
    /// The graph as text, as function `name`.
    pub fn to_text(&self, name: &str) -> String {
        print(self, name)
    }
}

/// The graph as text, as function `name`.
pub fn print(graph: &Graph, name: &str) -> String {
    print_with(graph, name, &mut |_| None)
}

/// The same, where `elsewhere` gives names to constants that are kept elsewhere. It may be asked for one more than once.
pub fn print_with(graph: &Graph, name: &str, elsewhere: &mut dyn FnMut(&Array) -> Option<String>) -> String {
    print_each(graph, name, elsewhere, &|_| String::new())
}

/// The graph as text, as function `name`, with what each of its ops that stands for others runs, below it: no text that could be read back.
pub fn print_plan(graph: &Graph, name: &str) -> String {
    let plan = |op: &Op| if let Op::Native(native) = op { native.0.plan() } else { String::new() };
    print_each(graph, name, &mut |_| None, &plan)
}

fn print_each(graph: &Graph, name: &str, elsewhere: &mut dyn FnMut(&Array) -> Option<String>, below: &dyn Fn(&Op) -> String) -> String {
    let mut wanted = FxHashSet::default();
    loop {
        let mut printer = Printer { out: String::new(), temps: 0, dims: Dims::new(&wanted), elsewhere: &mut *elsewhere, below };
        printer.function(graph, name);
        let (out, missing) = (printer.out, printer.dims.missing);
        if missing.iter().all(|s| wanted.contains(s)) {
            return out;
        }
        wanted.extend(missing);
    }
}

/// The extents of types as the text of a function with parameters of these types writes them; `None` for an extent with a symbol that no
/// parameter has. The first types are the parameters'.
pub(crate) fn extents<'t>(parameters: impl Iterator<Item = &'t Type>, others: impl Iterator<Item = &'t Type>) -> Vec<Vec<Option<String>>> {
    let wanted = FxHashSet::default();
    let mut dims = Dims::new(&wanted);
    let mut all: Vec<Vec<Option<String>>> = parameters.map(|ty| ty.dims.iter().map(|d| Some(dims.dim(d))).collect()).collect();
    let known = |dims: &Dims, d: &Dim| d.parts().0.iter().all(|(s, _)| dims.known(s));
    all.extend(others.map(|ty| ty.dims.iter().map(|d| known(&dims, d).then(|| dims.dim(d))).collect()));
    all
}

/// Symbols as the reader of the text meets them.
struct Dims<'a> {
    /// Numbers of the symbols that have been written.
    names: FxHashMap<Sym, usize>,
    /// Symbols that inference brought in, so far without a name.
    quiet: FxHashSet<Sym>,
    /// Symbols that must be written where inference brings them in, because a later type needs their name.
    wanted: &'a FxHashSet<Sym>,
    /// Symbols found to be wanted.
    missing: Vec<Sym>,
}

impl<'a> Dims<'a> {
    fn new(wanted: &'a FxHashSet<Sym>) -> Self {
        Dims { names: FxHashMap::default(), quiet: FxHashSet::default(), wanted, missing: vec![] }
    }
    fn known(&self, s: &Sym) -> bool {
        self.names.contains_key(s) || self.quiet.contains(s)
    }
    fn ty(&mut self, ty: &Type) -> String {
        let dims: Vec<String> = ty.dims.iter().map(|d| self.dim(d)).collect();
        if dims.is_empty() { ty.dtype.short().to_string() } else { format!("{}[{}]", ty.dtype.short(), dims.join(", ")) }
    }
    fn dim(&mut self, dim: &Dim) -> String {
        let (terms, constant) = dim.parts();
        let mut terms = terms.to_vec();
        terms.sort_by_key(|(s, _)| (self.names.get(s).copied().unwrap_or(usize::MAX), *s));
        let mut out = String::new();
        for (sym, coef) in terms {
            let name = self.name(sym);
            match coef {
                1 => out += &format!("+n{name}"),
                -1 => out += &format!("-n{name}"),
                _ => out += &format!("{coef:+}*n{name}"),
            }
        }
        if constant != 0 || out.is_empty() {
            out += &format!("{constant:+}");
        }
        out.strip_prefix('+').map_or(out.clone(), str::to_string)
    }
    fn name(&mut self, sym: Sym) -> usize {
        if self.quiet.contains(&sym) && !self.names.contains_key(&sym) {
            self.missing.push(sym);
        }
        let next = self.names.len();
        *self.names.entry(sym).or_insert(next)
    }
    /// `: type` where the reader cannot infer it, else nothing. `map` pairs the symbols that one inference has made.
    fn annotation(&mut self, actual: &Type, inferred: Option<&Type>, map: &mut FxHashMap<Sym, Sym>) -> String {
        let mut pairs = map.clone();
        let fits = inferred.is_some_and(|i| self.same(i, actual, &mut pairs));
        let new: Vec<Sym> = actual.dims.iter().flat_map(|d| d.parts().0).map(|t| t.0).filter(|s| !self.known(s)).collect();
        if !fits || new.iter().any(|s| self.wanted.contains(s)) {
            return format!(": {}", self.ty(actual));
        }
        self.quiet.extend(new);
        *map = pairs;
        String::new()
    }
    fn same(&self, inferred: &Type, actual: &Type, map: &mut FxHashMap<Sym, Sym>) -> bool {
        inferred.dtype == actual.dtype
            && inferred.rank() == actual.rank()
            && inferred.dims.iter().zip(&actual.dims).all(|(i, a)| i == a || self.same_dim(i, a, map))
    }
    /// Equal forms, where a symbol that this inference made may stand for one that is new here.
    fn same_dim(&self, inferred: &Dim, actual: &Dim, map: &mut FxHashMap<Sym, Sym>) -> bool {
        let ((left, c), (right, d)) = (inferred.parts(), actual.parts());
        let (old_left, new_left): (Vec<_>, Vec<_>) = left.iter().partition(|t| self.known(&t.0));
        let (old_right, new_right): (Vec<_>, Vec<_>) = right.iter().partition(|t| self.known(&t.0) && !map.values().any(|s| *s == t.0));
        c == d
            && old_left == old_right
            && new_left.len() == new_right.len()
            && new_left.iter().zip(&new_right).all(|((i, x), (a, y))| {
                let free = map.contains_key(i) || !map.values().any(|s| s == a);
                x == y && free && *map.entry(*i).or_insert(*a) == *a
            })
    }
}

/// One body with the names of its values.
struct Scope<'g> {
    graph: &'g Graph,
    names: Names,
    text: Vec<Option<String>>,
    indent: usize,
}

impl<'g> Scope<'g> {
    fn new(graph: &'g Graph, indent: usize) -> Self {
        Scope { graph, names: Names::default(), text: vec![None; graph.n_values()], indent }
    }
    /// A value where it is used.
    fn operand(&self, v: Value) -> String {
        let named = self.text.get(v.idx()).and_then(Clone::clone);
        named.unwrap_or_else(|| inline(self.graph, v).unwrap_or_else(|| format!("%undefined{}", v.idx())))
    }
    fn operands(&self, values: &[Value]) -> String {
        values.iter().map(|&v| self.operand(v)).collect::<Vec<_>>().join(", ")
    }
    fn set(&mut self, v: Value, text: &str) {
        if let Some(slot) = self.text.get_mut(v.idx()) {
            *slot = Some(text.to_string());
        }
    }
}

/// The literal of a constant that stands where it is used.
fn inline(graph: &Graph, v: Value) -> Option<String> {
    let short = graph.const_value(v).filter(|a| a.len() <= INLINE && graph.name(v).is_none());
    short.map(literal::show)
}

struct Printer<'a> {
    out: String,
    temps: usize,
    dims: Dims<'a>,
    elsewhere: &'a mut dyn FnMut(&Array) -> Option<String>,
    /// Lines that stand below an op.
    below: &'a dyn Fn(&Op) -> String,
}

impl Printer<'_> {
    fn line(&mut self, indent: usize, text: &str, comment: Option<String>) {
        let mut line = format!("{}{text}", "  ".repeat(indent));
        if let Some(comment) = comment {
            let pad = COMMENT.saturating_sub(line.chars().count()).max(2);
            line += &format!("{}# {comment}", " ".repeat(pad));
        }
        self.out += &line;
        self.out.push('\n');
    }
    fn temp(&mut self) -> String {
        self.temps += 1;
        format!("%{}", self.temps - 1)
    }
    /// A name for a value: the given one made unique, or the next number.
    fn bind(&mut self, scope: &mut Scope, v: Option<Value>, name: Option<&str>) -> String {
        let text = name.map_or_else(|| self.temp(), |n| scope.names.claim(n));
        if let Some(v) = v {
            scope.set(v, &text);
        }
        text
    }
    fn function(&mut self, graph: &Graph, name: &str) {
        let mut scope = Scope::new(graph, 1);
        let mut params = vec![];
        for &v in graph.params() {
            let text = self.bind(&mut scope, Some(v), graph.name(v).map(AsRef::as_ref));
            params.push(format!("{text}: {}", self.dims.ty(graph.ty(v))));
        }
        let name = Some(identifier(name)).filter(|n| !RESERVED.contains(&n.as_str())).unwrap_or_else(|| "f".into());
        self.line(0, &format!("fn {name}({}) {{", params.join(", ")), None);
        self.nodes(&mut scope);
        self.line(1, format!("return {}", scope.operands(graph.results())).trim_end(), None);
        self.line(0, "}", None);
    }
    fn nodes(&mut self, scope: &mut Scope) {
        for node in scope.graph.nodes().iter() {
            match &node.op {
                Op::Const(_) if inline(scope.graph, node.outs[0]).is_some() => {}
                Op::Scan(scan) => self.scan(scope, node, scan),
                _ => self.node(scope, node),
            }
        }
    }
    fn node(&mut self, scope: &mut Scope, node: &Node) {
        let law = if let Op::Native(native) = &node.op { native.0.law() } else { None };
        let op = law.as_ref().unwrap_or(&node.op);
        let callee = match op {
            Op::Const(a) => match (self.elsewhere)(a) {
                Some(name) => format!("const tensor {}", quote(&name)),
                None => format!("const {}", literal::show(a)),
            },
            Op::Extern(e) => format!("extern {}({})", quote(e.0.key()), scope.operands(&node.ins)),
            _ => format!("{}{}({})", op.name(), attributes(op), scope.operands(&node.ins)),
        };
        // What a user's op gives, nobody can infer who does not have it.
        let types = if matches!(node.op, Op::Extern(_)) { vec![] } else { inferred(scope.graph, op, node) };
        let mut map = FxHashMap::default();
        let mut targets = vec![];
        for (i, &v) in node.outs.iter().enumerate() {
            let name = self.bind(scope, Some(v), scope.graph.name(v).map(AsRef::as_ref));
            targets.push(name + &self.dims.annotation(scope.graph.ty(v), types.get(i), &mut map));
        }
        let equals = if targets.is_empty() { "" } else { " = " };
        self.line(scope.indent, &format!("{}{equals}{callee}", targets.join(", ")), place(node.span));
        (self.below)(&node.op).lines().for_each(|line| self.line(scope.indent + 1, line, None));
    }
    fn scan(&mut self, scope: &mut Scope, node: &Node, scan: &Scan) {
        let label = self.temp();
        let name = scan.name.as_ref().map(|n| format!(" {}", quote(n))).unwrap_or_default();
        let truncate = scan.truncate.map(|k| format!(" truncate={k}")).unwrap_or_default();
        let n_steps = input(scope, node, Scan::N_STEPS);
        self.line(scope.indent, &format!("{label} = scan{name} n_steps={n_steps}{truncate} {{"), place(node.span));
        let mut inner = Scope::new(&scan.body, scope.indent + 1);
        let states = self.slots(scope, &mut inner, node, scan);
        self.nodes(&mut inner);
        self.ends(&inner, scan, &states);
        self.line(scope.indent, "}", None);
        self.outputs(scope, node, &label, &states);
    }
    /// The slots of a loop; returns the names of its states.
    fn slots(&mut self, outer: &Scope, inner: &mut Scope, node: &Node, scan: &Scan) -> Vec<String> {
        let mut states = state_names(inner, scan);
        for (id, seq) in scan.seqs.enumerate() {
            self.seq(outer, inner, node, scan, id, seq.reverse);
        }
        for id in scan.states.ids() {
            if states[id.idx()].is_empty() {
                states[id.idx()] = self.temp();
            }
            self.state(outer, inner, node, scan, id, &states[id.idx()]);
        }
        for id in scan.captured.ids() {
            self.captured(outer, inner, node, scan, id);
        }
        if let Some(&step) = scan.body.params().first() {
            let used = scan.body.nodes().iter().any(|n| n.ins.contains(&step)) || scan.body.results().contains(&step);
            let name = scan.body.name(step).map(AsRef::as_ref);
            if used || name.is_some() {
                let name = self.bind(inner, Some(step), name);
                self.line(inner.indent, &format!("step {name}"), None);
            }
        }
        states
    }
    fn seq(&mut self, outer: &Scope, inner: &mut Scope, node: &Node, scan: &Scan, id: SeqId, reverse: bool) {
        let whole = node.ins.get(scan.seq_input(id)).map(|&v| outer.graph.ty(v));
        let row = whole.filter(|t| t.rank() > 0).map(Type::row);
        let name = self.slot(inner, scan.seq_param(id), scan.seqs[id].name.as_deref(), row.as_ref());
        let reverse = if reverse { " reverse" } else { "" };
        self.line(inner.indent, &format!("seq {name} = {}{reverse}", input(outer, node, scan.seq_input(id))), None);
    }
    fn captured(&mut self, outer: &Scope, inner: &mut Scope, node: &Node, scan: &Scan, id: NonSeqId) {
        let whole = node.ins.get(scan.captured_input(id)).map(|&v| outer.graph.ty(v).clone());
        let name = self.slot(inner, scan.captured_param(id), scan.captured[id].name.as_deref(), whole.as_ref());
        self.line(inner.indent, &format!("const {name} = {}", input(outer, node, scan.captured_input(id))), None);
    }
    /// Name of a body parameter, with its type where that is not the one of the rows.
    fn slot(&mut self, inner: &mut Scope, param: usize, name: Option<&str>, row: Option<&Type>) -> String {
        let v = inner.graph.params().get(param).copied();
        let name = name.or_else(|| inner.graph.name(v?).map(AsRef::as_ref));
        let text = self.bind(inner, v, name);
        text + &v.map(|v| self.exact(inner.graph.ty(v), row)).unwrap_or_default()
    }
    /// `: type` unless it is `row`.
    fn exact(&mut self, ty: &Type, row: Option<&Type>) -> String {
        if row == Some(ty) { String::new() } else { format!(": {}", self.dims.ty(ty)) }
    }
    fn state(&mut self, outer: &Scope, inner: &mut Scope, node: &Node, scan: &Scan, id: StateId, name: &str) {
        let state = &scan.states[id];
        let init = scan.init_input(id);
        let rows = init.and_then(|i| node.ins.get(i)).map(|&v| outer.graph.ty(v));
        let row = rows.filter(|t| t.rank() > 0).map(Type::row);
        let mut line = format!("state {name}{}", self.exact(&state.row, row.as_ref()));
        if let Some(i) = init {
            line += &format!(" init={}", input(outer, node, i));
        }
        let mut reads = vec![];
        for (k, offset) in state.reads.iter().enumerate() {
            let param = inner.graph.params().get(scan.read_params(id).start + k).copied();
            if let Some(v) = param {
                inner.set(v, &if state.reads.len() == 1 { name.to_string() } else { format!("{name}@{offset}") });
            }
            reads.push(offset.to_string() + &param.map(|v| self.exact(inner.graph.ty(v), Some(&state.row))).unwrap_or_default());
        }
        let writes: Vec<String> = state.writes.iter().map(usize::to_string).collect();
        let keep = match state.keep {
            Keep::All => "all".to_string(),
            Keep::Last(n) => format!("last({n})"),
        };
        let tag = match state.tag {
            Tag::Output => "",
            Tag::Shared => " shared",
            Tag::Cotangent => " cotangent",
        };
        line += &format!(" reads=[{}] writes=[{}] keep={keep}{tag}", reads.join(", "), writes.join(", "));
        self.line(inner.indent, &line, Some(state.kind().to_string()));
    }
    /// What the body gives: the next rows and the stopping condition.
    fn ends(&mut self, inner: &Scope, scan: &Scan, states: &[String]) {
        for (id, state) in scan.states.enumerate() {
            for (k, offset) in state.writes.iter().enumerate() {
                let offset = if state.writes.len() == 1 { String::new() } else { format!("@{offset}") };
                let result = inner.graph.results().get(scan.write_results(id).start + k);
                let operand = result.map_or_else(|| "%missing".into(), |&v| inner.operand(v));
                self.line(inner.indent, &format!("next {}{offset} = {operand}", states[id.idx()]), None);
            }
        }
        if let Some(&v) = scan.until_result().and_then(|i| inner.graph.results().get(i)) {
            self.line(inner.indent, &format!("until {}", inner.operand(v)), None);
        }
    }
    /// Names of a loop's outputs; a line for each that has one of its own or a type that the reader cannot infer.
    fn outputs(&mut self, scope: &mut Scope, node: &Node, label: &str, states: &[String]) {
        let types = inferred(scope.graph, &node.op, node);
        let mut map = FxHashMap::default();
        for (i, &v) in node.outs.iter().enumerate() {
            let output = match states.get(i) {
                Some(name) if name.starts_with('%') => format!("{label}.{i}"),
                Some(name) => format!("{label}.{name}"),
                None => format!("{label}.steps"),
            };
            let ty = self.dims.annotation(scope.graph.ty(v), types.get(i), &mut map);
            let name = scope.graph.name(v).map(AsRef::as_ref);
            if ty.is_empty() && name.is_none() {
                scope.set(v, &output);
                continue;
            }
            let name = self.bind(scope, Some(v), name);
            self.line(scope.indent, &format!("{name}{ty} = {output}"), None);
        }
    }
}

/// Names of the states that have one, unique in the loop and in the body's scope; "" for the others.
fn state_names(inner: &mut Scope, scan: &Scan) -> Vec<String> {
    let mut names = Names::default();
    names.claim("steps");
    let mut out = vec![];
    for (id, state) in scan.states.enumerate() {
        let param = inner.graph.params().get(scan.read_params(id).start).filter(|_| state.reads.len() == 1);
        let name = state.name.as_deref().or_else(|| inner.graph.name(*param?).map(AsRef::as_ref));
        let name = name.map(|n| names.claim(n)).unwrap_or_default();
        if !name.is_empty() && state.reads.len() == 1 {
            inner.names.claim(&name);
        }
        out.push(name);
    }
    out
}

/// An input of a loop.
fn input(scope: &Scope, node: &Node, i: usize) -> String {
    node.ins.get(i).map_or_else(|| "%missing".into(), |&v| scope.operand(v))
}

/// What type inference finds now; nothing where it fails.
fn inferred(graph: &Graph, op: &Op, node: &Node) -> Vec<Type> {
    let args: Vec<Arg> = node.ins.iter().map(|&v| graph.arg(v)).collect();
    op.def().infer(&args).map(|t| t.into_iter().collect()).unwrap_or_default()
}

fn place(span: Span) -> Option<String> {
    span.place().map(|_| span.to_string().replace(char::is_control, "_"))
}

fn attributes(op: &Op) -> String {
    let attrs: Vec<String> = op.attrs().iter().map(|(name, attr)| format!("{name}={}", attribute(attr))).collect();
    if attrs.is_empty() { String::new() } else { format!("[{}]", attrs.join(", ")) }
}

fn attribute(attr: &Attr) -> String {
    use literal::Literal;
    match attr {
        Attr::Bool(b) => b.to_string(),
        Attr::Int(i) => i.to_string(),
        Attr::Float(x) => x.show(),
        Attr::Str(s) if *s == identifier(s) && !["true", "false", "nan", "inf"].contains(&s.as_str()) => s.clone(),
        Attr::Str(s) => quote(s),
        Attr::Ints(v) => format!("[{}]", v.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")),
    }
}
