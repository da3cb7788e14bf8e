//! Diagnostics: one shape for every error, like rustc: code, what, where, expected/got, note, help.

use super::span::{Place, Span, short};
use std::fmt;

/// What went wrong, at the grain at which callers catch errors.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert_eq!(Kind::Shape.name(), "ShapeError");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A dtype or rank that does not fit.
    Type,
    /// Extents that do not fit.
    Shape,
    /// An argument out of its domain.
    Value,
    /// An index outside its axis.
    Index,
    /// The structure of a loop: arguments of scan, what its step returned.
    Scan,
    /// A loop state that changes its type.
    ScanType,
    /// A gradient that does not exist.
    Gradient,
    /// The gradient's input does not influence the cost.
    Disconnected,
    /// A matrix without the property that its algorithm needs.
    Linalg,
    /// Something that rscan does not support, said plainly.
    Unsupported,
    /// A device that is not there, lacks something, or failed.
    Device,
    /// The text form does not parse or verify.
    Parse,
    /// A file that cannot be read or written.
    File,
    /// There is no memory for a result.
    Memory,
    /// The caller asked to stop.
    Interrupted,
    /// An exception raised by user code called from a loop.
    Callback,
    /// A fault of rscan itself.
    Internal,
}

impl Kind {
    /// The name that heads the rendered error and names the Python class.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Type => "TypeError",
            Kind::Shape => "ShapeError",
            Kind::Value => "ValueError",
            Kind::Index => "IndexError",
            Kind::Scan => "ScanError",
            Kind::ScanType => "ScanTypeError",
            Kind::Gradient => "GradientError",
            Kind::Disconnected => "DisconnectedInputError",
            Kind::Linalg => "LinAlgError",
            Kind::Unsupported => "UnsupportedError",
            Kind::Device => "DeviceError",
            Kind::Parse => "ParseError",
            Kind::File => "FileError",
            Kind::Memory => "MemoryError",
            Kind::Interrupted => "Interrupted",
            Kind::Callback => "CallbackError",
            Kind::Internal => "InternalError",
        }
    }
}

/// A remark on one source line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The line.
    pub span: Span,
    /// The remark, printed to the right of the line.
    pub text: String,
}

/// An error with everything that the user needs to mend it.
///
/// ```
/// use scan_core::prelude::*;
///
/// let error = (scalar("x") + constant(Array::vector(&[1.0]))).matmul(&scalar("y")).ok().unwrap_err();
/// assert_eq!(error.kind, Kind::Type);
/// assert!(error.to_string().contains(error.code));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Class of the error.
    pub kind: Kind,
    /// Code, `E0103`; its page lies in `codes/`.
    pub code: &'static str,
    /// One sentence that stands on its own.
    pub title: String,
    /// Source lines, the first one being where the error is reported.
    pub labels: Vec<Label>,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// What to do.
    pub helps: Vec<String>,
}

/// Results of this crate. Boxed: errors are rare, results are not.
///
/// ```
/// use scan_core::prelude::*;
///
/// fn half(x: &Var) -> Result<Array> {
///     (x / 2.0).eval()
/// }
/// assert_eq!(half(&Var::number(3.0))?, Array::scalar(1.5));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub type Result<T> = std::result::Result<T, Box<Diagnostic>>;

impl Diagnostic {
    /// A diagnostic without labels.
    pub fn new(kind: Kind, code: &'static str, title: impl Into<String>) -> Box<Self> {
        Box::new(Self { kind, code, title: title.into(), labels: vec![], notes: vec![], helps: vec![] })
    }
    /// A fault of rscan itself.
    pub fn internal(title: impl Into<String>) -> Box<Self> {
        Self::new(Kind::Internal, "E9999", title)
    }
    /// True for what the values of a call cause: the same computations in another order may report something else, or nothing.
    pub fn of_values(&self) -> bool {
        !matches!(self.kind, Kind::Interrupted | Kind::Callback | Kind::Memory | Kind::Device | Kind::Internal)
    }
    /// Adds a source line with a remark. Unknown spans are left out.
    pub fn label(mut self: Box<Self>, span: Span, text: impl Into<String>) -> Box<Self> {
        if span != Span::NONE {
            self.labels.push(Label { span, text: text.into() });
        }
        self
    }
    /// Adds a source line unless one is there already: the innermost place wins.
    pub fn at(self: Box<Self>, span: Span) -> Box<Self> {
        if self.labels.is_empty() { self.label(span, "") } else { self }
    }
    /// Adds a source line with a remark, unless that line has one.
    pub fn also(self: Box<Self>, span: Span, text: impl Into<String>) -> Box<Self> {
        if self.labels.iter().any(|l| l.span == span) { self } else { self.label(span, text) }
    }
    /// Adds a fact.
    pub fn note(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.notes.push(text.into());
        self
    }
    /// Adds an advice.
    pub fn help(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.helps.push(text.into());
        self
    }

    /// The whole text. `source(file, line)` yields source lines where they can be had.
    pub fn render(&self, source: &dyn Fn(&str, u32) -> Option<String>) -> String {
        let mut out = format!("{}[{}]: {}\n", self.kind.name(), self.code, self.title);
        let places: Vec<(Place, &str)> = self.labels.iter().filter_map(|l| Some((l.span.place()?, l.text.as_str()))).collect();
        if let Some((first, _)) = places.first() {
            out += &format!("  --> {}:{}\n", short(&first.file), first.line);
        }
        out += &render_lines(&places, source);
        let bullets = self.notes.iter().map(|n| ("note", n)).chain(self.helps.iter().map(|h| ("help", h)));
        for (word, text) in bullets {
            out += &format!("   = {word}: {text}\n");
        }
        out.truncate(out.trim_end().len());
        out
    }
}

/// The labelled lines in source order, remarks aligned in one column.
fn render_lines(places: &[(Place, &str)], source: &dyn Fn(&str, u32) -> Option<String>) -> String {
    let mut rows: Vec<(&Place, String, &str)> = places.iter().map(|(p, t)| (p, line_of(p, source).trim_end().to_string(), *t)).collect();
    rows.sort_by(|a, b| (&a.0.file, a.0.line).cmp(&(&b.0.file, b.0.line)));
    rows.dedup_by(|b, a| a.0 == b.0 && (b.2.is_empty() || a.2 == b.2));
    let gutter = rows.iter().map(|r| r.0.line.to_string().len()).max().unwrap_or(0);
    let width = rows.iter().filter(|r| !r.2.is_empty()).map(|r| r.1.chars().count()).max().unwrap_or(0).min(90);
    let first_file = places.first().map(|p| p.0.file.clone());
    let mut out = String::new();
    for (place, line, text) in rows {
        let elsewhere = if first_file.as_ref() == Some(&place.file) { String::new() } else { format!(" ({})", short(&place.file)) };
        let row = format!("{:>gutter$} | {line:<width$}   {text}{elsewhere}", place.line);
        out += row.trim_end();
        out.push('\n');
    }
    out
}

fn line_of(place: &Place, source: &dyn Fn(&str, u32) -> Option<String>) -> String {
    place.text.as_deref().map(str::to_string).or_else(|| source(&place.file, place.line)).unwrap_or_default()
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&read_line))
    }
}

impl std::error::Error for Diagnostic {}

/// The `line`-th line of a file on disk, if it can be read.
pub fn read_line(file: &str, line: u32) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().nth((line as usize).checked_sub(1)?).map(str::to_string)
}

/// Shorthand: `bail!(Shape, "E0201", "…{}", x)` returns an error.
#[macro_export]
macro_rules! bail {
    ($kind:ident, $code:literal, $($arg:tt)+) => {
        return Err($crate::base::Diagnostic::new($crate::base::Kind::$kind, $code, format!($($arg)+)))
    };
}
