//! Files of a folder that need each other. What a file needs are the paths in its code: `use` trees, and paths that begin with `crate`,
//! `super`, `self` or a module of its own; a name that a module exports again is that of the file which defines it.

use super::{report, sources};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Folders without circles among their files.
const WITHOUT: &[&str] = &["exec", "lower", "plan"];

/// The path of a module below the crate, without `crate`.
type Path = Vec<String>;

/// What one file says.
#[derive(Default)]
struct Module {
    /// Paths that it needs.
    needs: Vec<Path>,
    /// Names that it exports again, and what they are.
    exports: BTreeMap<String, Path>,
}

/// The module of a file below `src`.
fn module_of(file: &str) -> Path {
    let mut path: Path = file.trim_end_matches(".rs").split('/').map(str::to_string).collect();
    path.pop_if(|last| last == "mod" || last == "lib");
    path
}

/// Words, `::` and single signs of code; no comments, strings, characters or lifetimes.
fn tokens(text: &str) -> Vec<&str> {
    let (bytes, mut found, mut at) = (text.as_bytes(), vec![], 0);
    let until = |from: usize, what: &str| text[from..].find(what).map_or(text.len(), |n| from + n + what.len());
    while at < bytes.len() {
        let rest = &text[at..];
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let quoted = rest.trim_start_matches(['r', 'b']);
        let close = quoted.trim_start_matches('#');
        let raw = rest[..rest.len() - quoted.len()].contains('r') && close.starts_with('"');
        at = match bytes[at] {
            b'/' if rest.starts_with("//") => until(at, "\n"),
            b'/' if rest.starts_with("/*") => until(at, "*/"),
            _ if raw => until(until(at, "\""), &format!("\"{}", &quoted[..quoted.len() - close.len()])),
            b'"' => {
                let mut end = at + 1;
                while end < bytes.len() && bytes[end] != b'"' {
                    end += if bytes[end] == b'\\' { 2 } else { 1 };
                }
                end + 1
            }
            b'\'' if rest.starts_with("'\\") => until(at + 3, "'"),
            b'\'' if rest.chars().nth(2) == Some('\'') => until(at + 1, "'").max(at + 3),
            b'\'' => at + 1 + rest[1..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len() - 1),
            b':' if rest.starts_with("::") => at + 2,
            _ if word > 0 => at + word,
            _ => at + rest.chars().next().map_or(1, char::len_utf8),
        };
        let token = &text[text.len() - rest.len()..at.min(text.len())];
        let kept = word > 0 && token.len() == word || token == "::" || token.chars().count() == 1 && !token.trim().is_empty();
        found.extend(Some(token).filter(|_| kept));
    }
    found
}

/// Reads the code of a file.
struct Reader<'t, 'f> {
    tokens: &'t [&'t str],
    at: usize,
    /// The module of the file, and the modules within it that are open, with the depth of their braces.
    module: Path,
    open: Vec<usize>,
    files: &'f BTreeSet<Path>,
    found: Module,
}

impl Reader<'_, '_> {
    fn peek(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).copied().unwrap_or("")
    }
    /// Steps over what is in brackets from here on.
    fn brackets(&mut self) -> &[&str] {
        let (begin, mut depth) = (self.at, 0);
        while self.at < self.tokens.len() {
            match self.tokens[self.at] {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        &self.tokens[begin..self.at]
    }
    /// The path below the crate that one is here; `None` where it leads elsewhere.
    fn absolute(&self, path: &[&str]) -> Option<Path> {
        let (mut base, mut rest) = (self.module.clone(), path);
        match *path.first()? {
            "crate" => (base, rest) = (vec![], &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while let Some((&"super", behind)) = rest.split_first() {
                    base.pop();
                    rest = behind;
                }
            }
            first => {
                base.push(first.to_string());
                let own = self.files.contains(&base);
                base.pop();
                own.then_some(())?;
            }
        }
        base.extend(rest.iter().map(|word| word.to_string()));
        Some(base)
    }
    /// A tree of paths behind `use`.
    fn tree(&mut self, mut path: Vec<String>, exported: bool) {
        let stem = path.len();
        let mut alias = None;
        loop {
            match self.peek(0).to_string().as_str() {
                "{" => {
                    self.at += 1;
                    while !["}", ";", ""].contains(&self.peek(0)) {
                        self.tree(path.clone(), exported);
                        self.at += usize::from(self.peek(0) == ",");
                    }
                    self.at += 1;
                    return;
                }
                "," | "}" | ";" | "" => break,
                "::" | "*" => self.at += 1,
                "as" => {
                    alias = Some(self.peek(1).to_string());
                    self.at += 2;
                }
                "self" if path.len() == stem && stem > 0 => self.at += 1,
                word => {
                    path.push(word.to_string());
                    self.at += 1;
                }
            }
        }
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let Some(found) = self.absolute(&words) else { return };
        if let Some(name) = alias.as_ref().or(path.last()).filter(|_| exported && self.open.is_empty()) {
            self.found.exports.insert(name.clone(), found.clone());
        }
        self.found.needs.push(found);
    }
    fn all(mut self) -> Module {
        let (mut depth, mut test, mut exported) = (0, false, false);
        while self.at < self.tokens.len() {
            match self.peek(0) {
                "#" if self.peek(1) == "[" => {
                    self.at += 1;
                    let attribute = self.brackets();
                    test |=
                        attribute[1] == "cfg" && attribute.contains(&"test") && !attribute.iter().any(|word| ["any", "not"].contains(word));
                    continue;
                }
                "pub" => {
                    self.at += 1;
                    exported = true;
                    if self.peek(0) == "(" {
                        self.brackets();
                    }
                    continue;
                }
                "mod" if self.peek(2) == "{" && test => {
                    self.at += 2;
                    self.brackets();
                }
                "mod" if self.peek(2) == "{" => {
                    self.module.push(self.peek(1).to_string());
                    self.open.push(depth);
                    self.at += 2;
                    continue;
                }
                // Not what a type captures: `impl Trait + use<'a>`.
                "use" if self.peek(1) != "<" => {
                    self.at += 1;
                    self.tree(vec![], exported);
                }
                "{" => (depth, self.at) = (depth + 1, self.at + 1),
                "}" => {
                    (depth, self.at) = (depth - 1, self.at + 1);
                    if self.open.pop_if(|begun| *begun == depth).is_some() {
                        self.module.pop();
                    }
                }
                _ => self.path(),
            }
            (test, exported) = (false, false);
        }
        self.found
    }
    /// A word, or the path that begins with it.
    fn path(&mut self) {
        let begins = self.at == 0 || !["::", ".", "$"].contains(&self.tokens[self.at - 1]);
        let mut path = vec![self.tokens[self.at]];
        self.at += 1;
        while self.peek(0) == "::" && self.peek(1).starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            path.push(self.tokens[self.at + 1]);
            self.at += 2;
        }
        if begins && path.len() > 1 {
            self.found.needs.extend(self.absolute(&path));
        }
    }
}

/// The file that defines what a path names.
fn resolved(modules: &BTreeMap<Path, Module>, path: &[String], left: usize) -> Path {
    let mut at: Path = vec![];
    for (k, word) in path.iter().enumerate() {
        at.push(word.clone());
        if modules.contains_key(&at) {
            continue;
        }
        at.pop();
        return match modules.get(&at).and_then(|module| module.exports.get(word)) {
            Some(other) if left > 0 => resolved(modules, &[&other[..], &path[k + 1..]].concat(), left - 1),
            _ => at,
        };
    }
    at
}

/// By file, the files that it needs: of paths and code of all files.
fn needs<'s>(files: impl Iterator<Item = (&'s str, &'s str)> + Clone) -> BTreeMap<Path, BTreeSet<Path>> {
    let known: BTreeSet<Path> = files.clone().map(|(file, _)| module_of(file)).collect();
    let read = |(file, code): (&str, &str)| {
        let module = module_of(file);
        let reader = Reader { tokens: &tokens(code), at: 0, module: module.clone(), open: vec![], files: &known, found: Module::default() };
        (module, reader.all())
    };
    let modules: BTreeMap<Path, Module> = files.map(read).collect();
    let of = |(path, module): (&Path, &Module)| {
        let needed = module.needs.iter().map(|need| resolved(&modules, need, 9)).filter(|file| !file.is_empty() && file != path);
        (path.clone(), needed.collect())
    };
    modules.iter().map(of).collect()
}

/// The shortest way from a file back to it.
fn circle(needs: &BTreeMap<Path, BTreeSet<Path>>, from: &Path) -> Option<Vec<Path>> {
    let (mut before, mut next) = (BTreeMap::new(), VecDeque::from([from]));
    while let Some(file) = next.pop_front() {
        for needed in needs.get(file).into_iter().flatten() {
            if needed == from {
                let mut way = vec![from.clone()];
                let mut at = file;
                while at != from {
                    way.push(at.clone());
                    at = before[at];
                }
                way.push(from.clone());
                way.reverse();
                return Some(way);
            }
            if !before.contains_key(needed) {
                before.insert(needed, file);
                next.push_back(needed);
            }
        }
    }
    None
}

/// Circles through files of some folders, each once.
fn circles(needs: &BTreeMap<Path, BTreeSet<Path>>, folders: &[&str]) -> Vec<String> {
    let mut found: BTreeMap<BTreeSet<Path>, String> = BTreeMap::new();
    for way in needs.keys().filter(|file| folders.contains(&file[..].first().map_or("", |f| f))).filter_map(|file| circle(needs, file)) {
        let told = way.iter().map(|file| file.join("/")).collect::<Vec<_>>().join(" -> ");
        found.entry(way.into_iter().collect()).or_insert(told);
    }
    found.into_values().collect()
}

#[test]
fn files_do_not_need_each_other_in_circles() {
    let sources = sources();
    let needs = needs(sources.iter().map(|s| (&s.path[..], &s.text[..])));
    let known = |from: &str, to: &str| needs[&module_of(from)].contains(&module_of(to));
    assert!(known("exec/mod.rs", "exec/function.rs") && known("plan/interp/list.rs", "plan/interp/memory.rs"));
    report("files that need each other (move what both need to a file below both)", circles(&needs, WITHOUT));
}

/// A circle for each way in which a file may need another one, and as many things that only look so.
#[test]
fn circles_are_found_and_named() {
    let found = |files: &[(&str, &str)]| circles(&needs(files.iter().copied()), &["a"]);
    let top = ("a/mod.rs", "mod b; mod c; pub use c::{Other, inner::{self, Thing as Named}};");
    let uses = |code: &'static str| found(&[top, ("a/b.rs", code), ("a/c.rs", "use super::b::f;\npub struct Other;")]);
    for code in [
        "use super::c::Other;",
        "use crate::{base::X, a::{c::{self}}};",
        "use crate::a::Other;",
        "use crate::a::Named;",
        "use super::c::*;",
        "fn f() { super::c::g::<u8>('\"', \"\\\"\") }",
        "fn f<'a>(x: &'a u8) -> crate::a::Other { x }",
        "mod own { fn f() { super::super::c::g() } }",
        "#[cfg(any(test, feature = \"testing\"))]\nmod own { use crate::a::c::g; }",
    ] {
        assert_eq!(uses(code), ["a/b -> a/c -> a/b"], "{code}");
    }
    for code in [
        "// use super::c::Other;\n/* super::c::g() */ const T: &str = \"super::c::g()\"; const R: &str = r#\"use \" super::c::g; \"#;",
        "use crate::base::c::Other;",
        "use std::c::Other;",
        "fn f<'a>() -> impl Sized + use<'a> { 1 }",
        "#[cfg(test)]\nmod tests { use super::super::c::g; }",
        "#[cfg(all(test, feature = \"jit\"))]\nmod tests { use super::super::c::g; }",
        "pub(in crate::a) struct S; macro_rules! m { () => { $crate::a::c::g() } }",
    ] {
        assert_eq!(uses(code), [] as [&str; 0], "{code}");
    }
    // A module and what it exports, and a circle of three.
    assert_eq!(found(&[top, ("a/b.rs", ""), ("a/c.rs", "use super::f;")]), ["a -> a/c -> a"]);
    let three = [
        ("a/mod.rs", ""),
        ("a/b.rs", "use crate::a::c;"),
        ("a/c.rs", "use super::d::f;"),
        ("a/d.rs", "use super::b;"),
        ("a/e.rs", "use super::b;"),
    ];
    assert_eq!(found(&three), ["a/b -> a/c -> a/d -> a/b"]);
    assert_eq!(found(&[("a/mod.rs", "mod d;\nfn f() { d::g() }"), ("a/d.rs", "use crate::a;")]), ["a -> a/d -> a"]);
}
