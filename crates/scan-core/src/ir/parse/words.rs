//! Words and tokens of the text form.

use crate::base::{Diagnostic, Kind, Result};

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

impl std::fmt::Display for Tok<'_> {
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

/// An error at a byte offset of a text: `line 3, column 5: …`.
pub(super) fn error(text: &str, at: usize, code: &'static str, message: impl std::fmt::Display) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Parse, code, format!("{}: {message}", place(text, at)))
}

/// `line 3, column 5`.
pub(super) fn place(text: &str, at: usize) -> String {
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
