//! Words and tokens of the text forms, and a reader that goes from one to the next.

use super::{Diagnostic, Kind, Result};
use rustc_hash::FxHashMap;
use std::fmt::Display;
use std::ops::DerefMut;

/// A token.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Tok<'t> {
    /// An identifier or keyword.
    Word(&'t str),
    /// A generated name, `%0`.
    Temp(&'t str),
    /// Digits with what belongs to a number, without sign.
    Number(&'t str),
    /// A quoted text.
    Text(String),
    /// One character.
    Mark(char),
    /// The end of the text.
    End,
}

impl Display for Tok<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tok::Word(s) | Tok::Temp(s) | Tok::Number(s) => write!(f, "`{}`", s.chars().take(40).collect::<String>()),
            Tok::Text(_) => f.write_str("a quoted text"),
            Tok::Mark(c) => write!(f, "`{c}`"),
            Tok::End => f.write_str("the end of the text"),
        }
    }
}

/// A token with its place.
#[derive(Clone, Debug)]
pub(crate) struct Token<'t> {
    /// The token.
    pub tok: Tok<'t>,
    /// Byte offset.
    pub at: usize,
    /// Line, from 1.
    pub line: u32,
}

/// The tokens of a text, and its comments by line.
pub(crate) struct Lexed<'t> {
    /// Tokens; the last one is `End`.
    pub tokens: Vec<Token<'t>>,
    /// Comments without `#`, in order of lines.
    pub comments: Vec<(u32, &'t str)>,
}

/// A reader of a text, which stands at one of its tokens.
#[derive(Default)]
pub(crate) struct Cursor<'t> {
    /// The text.
    pub text: &'t str,
    tokens: Vec<Token<'t>>,
    /// Comments by line.
    pub comments: FxHashMap<u32, &'t str>,
    /// The number of the token.
    pub pos: usize,
}

/// Items between marks, separated by commas.
///
/// # Errors
/// `E0903`; those of the items.
pub(crate) fn list<'t, R: DerefMut<Target = Cursor<'t>>, T>(
    reader: &mut R,
    open: char,
    close: char,
    mut item: impl FnMut(&mut R) -> Result<T>,
) -> Result<Vec<T>> {
    reader.expect(open)?;
    let mut items = vec![];
    while !reader.eat(close) {
        if !items.is_empty() {
            reader.expect(',')?;
        }
        items.push(item(reader)?);
    }
    Ok(items)
}

impl<'t> Cursor<'t> {
    /// The largest number that counts something.
    pub const MOST: usize = 1 << 40;

    /// At the first token of a text that has `most` of them at most.
    ///
    /// # Errors
    /// As [`lex`].
    pub fn new(text: &'t str, most: usize) -> Result<Cursor<'t>> {
        let Lexed { tokens, comments } = lex(text, most)?;
        Ok(Cursor { text, tokens, comments: comments.into_iter().collect(), pos: 0 })
    }
    pub fn peek(&self) -> &Tok<'t> {
        self.peek_at(0)
    }
    pub fn peek_at(&self, ahead: usize) -> &Tok<'t> {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.pos + ahead).min(last)].tok
    }
    pub fn token(&self) -> &Token<'t> {
        &self.tokens[self.pos.min(self.tokens.len() - 1)]
    }
    pub fn next(&mut self) -> Tok<'t> {
        let tok = self.token().tok.clone();
        self.pos += 1;
        tok
    }
    /// The byte of the text at which the token begins.
    pub fn at(&self) -> usize {
        self.token().at
    }
    /// An error at a byte of the text.
    pub fn fail<T>(&self, at: usize, code: &'static str, message: impl Display) -> Result<T> {
        Err(error(self.text, at, code, message))
    }
    pub fn unexpected<T>(&self, wanted: &str) -> Result<T> {
        self.fail(self.at(), "E0903", format!("expected {wanted}, got {}", self.peek()))
    }
    pub fn is(&self, mark: char) -> bool {
        *self.peek() == Tok::Mark(mark)
    }
    /// Goes on behind a mark, where it stands at one.
    pub fn eat(&mut self, mark: char) -> bool {
        let found = self.is(mark);
        self.pos += found as usize;
        found
    }
    pub fn expect(&mut self, mark: char) -> Result<()> {
        if self.eat(mark) { Ok(()) } else { self.unexpected(&format!("`{mark}`")) }
    }
    pub fn is_word(&self, word: &str) -> bool {
        *self.peek() == Tok::Word(word)
    }
    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.pos += found as usize;
        found
    }
    pub fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { self.unexpected(&format!("`{word}`")) }
    }
    /// The text of one number or truth value, sign and bits of a NaN included.
    pub fn number(&mut self) -> Result<String> {
        let sign = if self.eat('-') { "-" } else { "" };
        let text = match *self.peek() {
            Tok::Number(text) => text,
            Tok::Word(word @ ("nan" | "inf" | "true" | "false")) => word,
            _ => return self.unexpected("a number"),
        };
        self.pos += 1;
        if text != "nan" || !sign.is_empty() || !self.eat('(') {
            return Ok(format!("{sign}{text}"));
        }
        let Tok::Number(bits) = *self.peek() else { return self.unexpected("the bits of a NaN") };
        self.pos += 1;
        self.expect(')')?;
        Ok(format!("nan({bits})"))
    }
    /// What a word names, where it names one of these.
    pub fn named<T>(&mut self, what: &str, of: impl Fn(&str) -> Option<T>) -> Result<T> {
        let found = if let Tok::Word(word) = *self.peek() { of(word) } else { None };
        self.pos += found.is_some() as usize;
        found.map_or_else(|| self.unexpected(what), Ok)
    }
    /// The number behind a prefix, where the next word is such: that of `t3`.
    pub fn peek_numbered(&self, prefix: &str) -> Option<u32> {
        let Tok::Word(word) = *self.peek() else { return None };
        word.strip_prefix(prefix).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
    }
    pub fn numbered(&mut self, prefix: &str) -> Result<u32> {
        let Some(number) = self.peek_numbered(prefix) else { return self.unexpected(&format!("`{prefix}` and a number")) };
        self.pos += 1;
        Ok(number)
    }
    /// A whole number that fits.
    pub fn whole<T: TryFrom<i64>>(&mut self) -> Result<T> {
        let (at, n) = (self.at(), self.int()?);
        T::try_from(n).or_else(|_| self.fail(at, "E0906", format!("`{n}` is out of range")))
    }
    /// A number that counts something.
    pub fn amount(&mut self) -> Result<usize> {
        let (at, n) = (self.at(), self.whole::<usize>()?);
        if n > Cursor::MOST { self.fail(at, "E0906", format!("`{n}` is more than {}", Cursor::MOST)) } else { Ok(n) }
    }
    pub fn int(&mut self) -> Result<i64> {
        let at = self.at();
        let text = self.number()?;
        text.parse().or_else(|_| self.fail(at, "E0903", format!("expected a whole number, got `{text}`")))
    }
}

/// An error at a byte offset of a text: `line 3, column 5: …`.
pub(crate) fn error(text: &str, at: usize, code: &'static str, message: impl Display) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Parse, code, format!("{}: {message}", place(text, at)))
}

/// `line 3, column 5`.
pub(crate) fn place(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    format!("line {line}, column {column}")
}

/// Splits a text into tokens, of which, with comments, there are `most` at most.
///
/// # Errors
/// `E0903` for what is no token, `E0906` for more.
pub(crate) fn lex(text: &str, most: usize) -> Result<Lexed<'_>> {
    let mut lexed = Lexed { tokens: vec![], comments: vec![] };
    let (mut at, mut line) = (0, 1);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let after = |n: usize| rest[n..].chars().next();
        if lexed.tokens.len() + lexed.comments.len() >= most {
            return Err(error(text, at, "E0906", format!("the text is longer than {most} words and marks")));
        }
        let (tok, len) = match c {
            '\n' => {
                line += 1;
                at += 1;
                continue;
            }
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '#' => {
                let comment = rest.split('\n').next().unwrap_or(rest);
                lexed.comments.push((line, comment[1..].trim()));
                at += comment.len();
                continue;
            }
            '"' => quoted(text, at)?,
            '%' if after(1).is_some_and(|c| c.is_ascii_alphanumeric()) => {
                let len = 1 + run(&rest[1..], |c| c.is_ascii_alphanumeric());
                (Tok::Temp(&rest[..len]), len)
            }
            c if c.is_ascii_digit() => {
                let len = number(rest);
                (Tok::Number(&rest[..len]), len)
            }
            c if c.is_alphabetic() || c == '_' => {
                let len = run(rest, |c| c.is_alphanumeric() || c == '_');
                (Tok::Word(&rest[..len]), len)
            }
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | '=' | ':' | '.' | '@' | '*' | '+' | '-' => (Tok::Mark(c), 1),
            c => return Err(error(text, at, "E0903", format!("no token starts with {c:?}"))),
        };
        lexed.tokens.push(Token { tok, at, line });
        at += len;
    }
    lexed.tokens.push(Token { tok: Tok::End, at, line });
    Ok(lexed)
}

/// Length of the longest start whose characters fit.
fn run(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

/// Length of a number: digits, letters and dots, and a sign after an exponent's `e`.
fn number(text: &str) -> usize {
    let hex = text.starts_with("0x");
    let part = |s: &str| run(s, |c| c.is_ascii_alphanumeric() || c == '.');
    let len = part(text);
    let exponent = !hex && text[..len].ends_with(['e', 'E']) && text[len..].starts_with(['-', '+']);
    if exponent { len + 1 + run(&text[len + 1..], |c| c.is_ascii_digit()) } else { len }
}

/// A quoted text with its length in the source.
fn quoted(text: &str, start: usize) -> Result<(Tok<'_>, usize)> {
    let mut out = String::new();
    let mut chars = text[start + 1..].char_indices();
    while let Some((i, c)) = chars.next() {
        let at = start + 1 + i;
        match c {
            '"' => return Ok((Tok::Text(out), i + 2)),
            '\n' => return Err(error(text, at, "E0903", "expected `\"` before the end of the line")),
            '\\' => match chars.next().map(|e| e.1) {
                Some(c @ ('"' | '\\')) => out.push(c),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some('u') => {
                    let code: String =
                        chars.by_ref().map(|c| c.1).skip_while(|&c| c == '{').take_while(|c| c.is_ascii_hexdigit()).take(8).collect();
                    let c = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                    out.push(c.ok_or_else(|| error(text, at, "E0903", "expected a character code such as `\\u{e9}`"))?);
                }
                _ => return Err(error(text, at, "E0903", "expected `\\\"`, `\\\\`, `\\n`, `\\r`, `\\t` or `\\u{…}`")),
            },
            c => out.push(c),
        }
    }
    Err(error(text, text.len(), "E0903", "expected `\"` before the end of the text"))
}
