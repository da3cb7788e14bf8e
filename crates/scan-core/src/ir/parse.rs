//! The text form, read. Its grammar is in `docs/format.md`. A graph is built through [`Graph::apply`], so types are inferred and
//! checked; comments of the form `file.py:7` become spans. No text makes this module panic or overflow the stack.

mod loops;
mod types;

use super::graph::{Graph, Value};
use super::literal;
use super::op::{Attr, ExternRef, Op, Outs};
use crate::base::words::{self, Cursor, Tok};
use crate::base::{Diagnostic, Result, Span};
use crate::types::{Array, DType, Dim, Type};
use rustc_hash::FxHashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Words that no value may be named.
pub(crate) const RESERVED: &[&str] = &[
    "fn",
    "return",
    "scan",
    "const",
    "extern",
    "seq",
    "state",
    "step",
    "next",
    "until",
    "init",
    "reads",
    "writes",
    "keep",
    "reverse",
    "shared",
    "cotangent",
    "true",
    "false",
    "nan",
    "inf",
];

/// Finds the user's op of a key, of which the text says the types of the results, where it does.
pub type Registry<'a> = dyn Fn(&str, &[Type]) -> Option<ExternRef> + 'a;

/// What a text refers to by name, and how long it may be.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The user's op of a key.
    pub ops: &'a Registry<'a>,
    /// The array of `const tensor "name"`.
    pub tensors: &'a dyn Fn(&str) -> Option<Array>,
    /// The source of the line that a comment names, by file and number.
    pub lines: &'a dyn Fn(&str, u32) -> Option<Arc<str>>,
    /// The types of what takes the place of the parameters; none where nothing does.
    pub leaves: &'a [Type],
    /// So many tokens and comments at most: memory for a text is a multiple of their number.
    pub most: usize,
}

impl Default for Context<'_> {
    fn default() -> Self {
        Context { ops: &|_, _| None, tensors: &|_| None, lines: &|_, _| None, leaves: &[], most: usize::MAX }
    }
}

/// Reads one function: its name and graph.
///
/// # Errors
/// `E0901` an unknown op, `E0902` an unfit attribute, `E0903` text outside the grammar, `E0904` a name that is unknown or given twice,
/// `E0905` an unknown user op, `E0906` a number outside the limits, `E0907` a loop whose slots do not fit, `E0908` a type
/// that contradicts what inference finds; else what type inference reports, with line and column in a note.
pub fn parse(text: &str) -> Result<(String, Graph)> {
    parse_with(text, &Context::default())
}

/// As [`parse`], with user ops and tensors.
///
/// # Errors
/// As [`parse`]; `E0924` for a tensor that is not there.
pub fn parse_with(text: &str, context: &Context) -> Result<(String, Graph)> {
    let mut parser = Parser::new(text, context)?;
    let function = parser.function()?;
    match parser.peek() {
        Tok::End => Ok(function),
        _ => parser.unexpected("the end of the text"),
    }
}

/// Reads any number of functions.
///
/// # Errors
/// As [`parse_with`].
pub fn parse_module(text: &str, context: &Context) -> Result<Vec<(String, Graph)>> {
    let mut parser = Parser::new(text, context)?;
    let mut functions = vec![];
    while *parser.peek() != Tok::End {
        functions.push(parser.function()?);
    }
    Ok(functions)
}

/// Reads one function where a reader stands.
///
/// # Errors
/// As [`parse_with`].
pub(crate) fn function_at<'t>(cursor: &mut Cursor<'t>, context: &'t Context<'t>) -> Result<(String, Graph)> {
    let mut parser = Parser { cursor: std::mem::take(cursor), dims: FxHashMap::default(), context, depth: 0 };
    let function = parser.function();
    *cursor = parser.cursor;
    function
}

/// The span that the comment of the line tells in which a reader stands.
pub(crate) fn span_of(cursor: &Cursor, context: &Context) -> Span {
    let place = cursor.comments.get(&cursor.token().line).and_then(|c| {
        let (file, line) = c.rsplit_once(':')?;
        Some((file, line.parse::<u32>().ok()?)).filter(|(f, _)| !f.is_empty() && !f.contains(['/', '\\']))
    });
    place.map_or(Span::NONE, |(file, line)| Span::quoted(file, line, (context.lines)(file, line)))
}

/// What a name stands for.
#[derive(Clone)]
enum Ref {
    Value(Value),
    Loop(Outs<Value>, Vec<String>),
}

/// One body under construction.
#[derive(Default)]
struct Scope {
    graph: Graph,
    refs: FxHashMap<String, Ref>,
}

/// A name as written: users' names are kept, `%` names are not.
struct Name<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Name<'t> {
    fn given(&self) -> Option<&'t str> {
        (!self.text.starts_with('%')).then_some(self.text)
    }
}

struct Parser<'t> {
    cursor: Cursor<'t>,
    dims: FxHashMap<&'t str, Dim>,
    context: &'t Context<'t>,
    depth: usize,
}

impl<'t> Deref for Parser<'t> {
    type Target = Cursor<'t>;
    fn deref(&self) -> &Cursor<'t> {
        &self.cursor
    }
}

impl DerefMut for Parser<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.cursor
    }
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, context: &'t Context<'t>) -> Result<Self> {
        Ok(Parser { cursor: Cursor::new(text, context.most)?, dims: FxHashMap::default(), context, depth: 0 })
    }

    /// An error that was found elsewhere, with the place of what caused it.
    fn blame(&self, at: usize, error: Box<Diagnostic>) -> Box<Diagnostic> {
        error.note(format!("at {} of the text", words::place(self.text, at)))
    }
    fn list<T>(&mut self, open: char, close: char, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        words::list(self, open, close, item)
    }
    fn name(&mut self, what: &str) -> Result<Name<'t>> {
        let at = self.at();
        match *self.peek() {
            Tok::Temp(text) => {
                self.pos += 1;
                Ok(Name { text, at })
            }
            Tok::Word(text) if !RESERVED.contains(&text) && DType::parse(text).is_none() => {
                self.pos += 1;
                Ok(Name { text, at })
            }
            _ => self.unexpected(what),
        }
    }
    fn span(&self) -> Span {
        span_of(self, self.context)
    }

    // Functions and statements.

    fn function(&mut self) -> Result<(String, Graph)> {
        self.dims.clear();
        self.expect_word("fn")?;
        let Tok::Word(name) = *self.peek() else { return self.unexpected("the function's name") };
        self.pos += 1;
        let mut scope = Scope::default();
        self.list('(', ')', |p| {
            let name = p.name("a parameter")?;
            p.expect(':')?;
            let ty = p.parameter(p.context.leaves.get(scope.graph.params().len()))?;
            let value = scope.graph.param(ty, name.given());
            p.define(&mut scope, name.text, name.at, Ref::Value(value))
        })?;
        self.expect('{')?;
        self.statements(&mut scope)?;
        self.expect_word("return")?;
        let mut results = vec![];
        while !self.is('}') {
            if !results.is_empty() {
                self.expect(',')?;
            }
            results.push(self.operand(&mut scope)?);
        }
        self.expect('}')?;
        scope.graph.set_results(results);
        Ok((name.to_string(), scope.graph))
    }
    fn define(&mut self, scope: &mut Scope, name: &str, at: usize, value: Ref) -> Result<()> {
        match scope.refs.insert(name.to_string(), value) {
            None => Ok(()),
            Some(_) => self.fail(at, "E0904", format!("`{name}` is defined twice")),
        }
    }
    /// Statements up to the closing lines of a body.
    fn statements(&mut self, scope: &mut Scope) -> Result<()> {
        loop {
            match self.peek() {
                Tok::Word("return" | "next" | "until") | Tok::Mark('}') | Tok::End => return Ok(()),
                _ => self.statement(scope)?,
            }
        }
    }
    fn statement(&mut self, scope: &mut Scope) -> Result<()> {
        let (at, span) = (self.at(), self.span());
        let mut targets = vec![];
        while !self.is_word("extern") || !targets.is_empty() {
            let name = self.name("a statement")?;
            let ty = if self.eat(':') { Some(self.ty()?) } else { None };
            targets.push((name, ty));
            if !self.eat(',') {
                self.expect('=')?;
                break;
            }
        }
        if self.is_word("scan") {
            let [(name, None)] = &targets[..] else { return self.fail(at, "E0903", "expected one name without a type before a loop") };
            let made = self.scan(scope, span)?;
            return self.define(scope, name.text, name.at, made);
        }
        let written: Vec<Type> = targets.iter().filter_map(|(_, ty)| ty.clone()).collect();
        let outs = self.right_side(scope, at, span, &written)?;
        if outs.len() != targets.len() {
            return self.fail(at, "E0903", format!("expected {} names before `=`, got {}", outs.len(), targets.len()));
        }
        for ((name, ty), v) in targets.into_iter().zip(outs) {
            self.refine(scope, v, ty, name.at)?;
            if let (Some(given), None) = (name.given(), scope.graph.name(v)) {
                scope.graph.set_name(v, given);
            }
            self.define(scope, name.text, name.at, Ref::Value(v))?;
        }
        Ok(())
    }
    /// Gives a value the type that the text writes for it.
    fn refine(&mut self, scope: &mut Scope, v: Value, ty: Option<Type>, at: usize) -> Result<()> {
        let Some(ty) = ty else { return Ok(()) };
        let found = scope.graph.ty(v);
        if !super::verify::agree(found, &ty) {
            return self.fail(at, "E0908", format!("expected a type that fits {found}, got {ty}"));
        }
        scope.graph.refine(v, ty)
    }
    /// What stands right of `=`, but no loop.
    fn right_side(&mut self, scope: &mut Scope, at: usize, span: Span, written: &[Type]) -> Result<Outs<Value>> {
        scope.graph.set_span(span);
        if self.eat_word("const") {
            let array = if self.eat_word("tensor") { self.tensor()? } else { self.literal()? };
            return Ok(std::iter::once(self.constant(scope, array)?).collect());
        }
        if matches!(self.peek(), Tok::Temp(_)) || *self.peek_at(1) == Tok::Mark('.') {
            return Ok(std::iter::once(self.output(scope)?).collect());
        }
        let op = self.op(written)?;
        let ins = self.list('(', ')', |p| p.operand(scope))?;
        self.apply(scope, op, &ins, at)
    }
    /// `"name"` after `const tensor`.
    fn tensor(&mut self) -> Result<Array> {
        let Tok::Text(name) = self.peek().clone() else { return self.unexpected("the name of a tensor in quotes") };
        let at = self.at();
        self.pos += 1;
        (self.context.tensors)(&name).map_or_else(|| self.fail(at, "E0924", format!("there is no tensor `{name}`")), Ok)
    }
    fn apply(&mut self, scope: &mut Scope, op: Op, ins: &[Value], at: usize) -> Result<Outs<Value>> {
        scope.graph.apply(op, ins).map_err(|e| self.blame(at, e))
    }
    fn constant(&mut self, scope: &mut Scope, array: Array) -> Result<Value> {
        let at = self.at();
        Ok(self.apply(scope, Op::from(array), &[], at)?[0])
    }

    // Ops and operands.

    fn op(&mut self, written: &[Type]) -> Result<Op> {
        let at = self.at();
        match self.next() {
            Tok::Word("extern") => {
                let Tok::Text(key) = self.next() else {
                    return self.fail(at, "E0903", "expected the key of the user op in quotes after `extern`");
                };
                let found = (self.context.ops)(&key, written);
                found.map(Op::Extern).map_or_else(|| self.fail(at, "E0905", format!("there is no user op `{key}`")), Ok)
            }
            Tok::Word(name) => {
                let attrs = if self.is('[') { self.list('[', ']', Self::attribute)? } else { vec![] };
                let op = Op::from_attrs(name, &attrs).map_err(|e| words::error(self.text, at, e.code, e.title))?;
                let known = op.attrs();
                for (i, (attr, _)) in attrs.iter().enumerate() {
                    if !known.iter().any(|k| k.0 == attr) {
                        return self.fail(at, "E0902", format!("op `{name}` has no attribute `{attr}`"));
                    }
                    if attrs[..i].iter().any(|a| a.0 == *attr) {
                        return self.fail(at, "E0902", format!("attribute `{attr}` is given twice"));
                    }
                }
                Ok(op)
            }
            other => self.fail(at, "E0903", format!("expected an op, got {other}")),
        }
    }
    fn attribute(&mut self) -> Result<(String, Attr)> {
        let Tok::Word(name) = *self.peek() else { return self.unexpected("an attribute") };
        self.pos += 1;
        self.expect('=')?;
        let attr = match *self.peek() {
            Tok::Mark('[') => Attr::Ints(self.list('[', ']', |p| p.int())?),
            Tok::Word("true" | "false") => Attr::Bool(self.next() == Tok::Word("true")),
            Tok::Word("nan" | "inf") => {
                let text = self.number()?;
                self.float_of(&text)?
            }
            Tok::Word(word) => {
                self.pos += 1;
                Attr::Str(word.to_string())
            }
            Tok::Text(ref text) => {
                let text = text.clone();
                self.pos += 1;
                Attr::Str(text)
            }
            _ => match self.number()? {
                text if text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit()) => {
                    let value = text.parse();
                    Attr::Int(value.or_else(|_| self.fail(self.at(), "E0906", format!("`{text}` does not fit 64 bits")))?)
                }
                text => self.float_of(&text)?,
            },
        };
        Ok((name.to_string(), attr))
    }
    fn float_of(&self, text: &str) -> Result<Attr> {
        let value = <f64 as literal::Literal>::read(text);
        value.map(Attr::Float).map_or_else(|| self.fail(self.at(), "E0903", format!("expected a number, got `{text}`")), Ok)
    }
    /// A value where it is used.
    fn operand(&mut self, scope: &mut Scope) -> Result<Value> {
        match *self.peek() {
            Tok::Number(_) | Tok::Mark('-') | Tok::Word("true" | "false" | "nan" | "inf") => self.literal_operand(scope),
            Tok::Word(w) if DType::parse(w).is_some() => self.literal_operand(scope),
            _ => self.output(scope),
        }
    }
    fn literal_operand(&mut self, scope: &mut Scope) -> Result<Value> {
        let array = self.literal()?;
        self.constant(scope, array)
    }
    /// `name`, `name@offset` or `loop.output`.
    fn output(&mut self, scope: &mut Scope) -> Result<Value> {
        let Name { text: name, at } = self.name("a value")?;
        let name = if self.eat('@') { format!("{name}@{}", self.count()?) } else { name.to_string() };
        let (outs, states) = match scope.refs.get(&name) {
            Some(Ref::Value(v)) => return Ok(*v),
            Some(Ref::Loop(outs, states)) => (outs, states),
            None => return self.fail(at, "E0904", format!("there is no value `{name}` here")),
        };
        if !self.is('.') {
            return self.fail(at, "E0904", format!("`{name}` is a loop; its outputs are `{name}.steps` and its states, as in `{name}.h`"));
        }
        let found = match *self.peek_at(1) {
            Tok::Word("steps") => outs.last().copied(),
            Tok::Word(state) => states.iter().position(|s| s == state).and_then(|i| outs.get(i)).copied(),
            Tok::Number(n) => n.parse::<usize>().ok().and_then(|i| outs.get(i)).copied(),
            _ => None,
        };
        let Some(v) = found else {
            let tok = self.peek_at(1);
            return self.fail(at, "E0904", format!("loop `{name}` has no output {tok}"));
        };
        self.pos += 2;
        Ok(v)
    }
}

#[cfg(test)]
mod tests;
