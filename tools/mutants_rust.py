"""Changes of Rust code, found in its tokens. What does not compile is told by the compiler."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from mutants_site import Site, numbered

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>b?r\#*".*?"\#*|b?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\\n]|\\[^\n]{1,8})')"""
    r"""|(?P<life>'\w+)|(?P<number>\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?\w*)|(?P<word>\w+)"""
    r"""|(?P<op>\.\.=|\.\.\.|<<=|>>=|::|->|=>|==|!=|<=|>=|&&|\|\||\+=|-=|\*=|/=|%=|\|=|&=|\^=|\.\.|<<|>>|[^\s\w])""",
    re.S | re.X,
)
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}
SWAPS = {
    "==": ["!="], "!=": ["=="], "<": ["<=", ">="], ">": [">=", "<="], "<=": ["<", "=="], ">=": [">", "=="], "+": ["-"], "-": ["+"],
    "*": ["+"], "/": ["*"], "%": ["/"], "&&": ["||"], "||": ["&&"], "+=": ["-="], "-=": ["+="], "|=": ["&="], "&": ["|"], "..": ["..="],
}  # fmt: skip
KINDS = dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), "comparison") | {"&&": "logic", "||": "logic", "..": "range"}
NAMES = {
    "min": "max", "max": "min", "any": "all", "all": "any", "first": "last", "last": "first", "is_some": "is_none", "is_none": "is_some",
    "is_some_and": "is_none_or", "is_none_or": "is_some_and", "is_ok": "is_err", "minimum": "maximum", "find": "rfind",
    "position": "rposition", "unwrap_or": "xor", "div_ceil": "div_euclid",
}  # fmt: skip
DROPPED = ("rev", "skip", "take", "filter", "chain", "skip_while", "take_while", "saturating_sub", "abs", "next_multiple_of")
ENDS_LEFT = {
    ";",
    ",",
    "=>",
    "=",
    "return",
    "if",
    "while",
    "match",
    "in",
    "let",
    "..",
    "..=",
    ":",
    "|",
    "break",
    "+=",
    "-=",
    "*=",
    "|=",
    "&=",
    "->",
}
ENDS_RIGHT = {";", ",", "=>", "=", "..", "..=", "+=", "-=", "*=", "|=", "&="}
NOT_STATEMENTS = {"let", "use", "fn", "const", "static", "type", "struct", "pub", "assert", "debug_assert", "debug_assert_eq", "assert_eq"}
#: Macros of texts and of tests.
TEXTS = {
    "format",
    "panic",
    "println",
    "eprintln",
    "debug_assert",
    "debug_assert_eq",
    "assert",
    "assert_eq",
    "unreachable",
    "write",
    "writeln",
}
SKIPPED_ITEMS = {"use", "const", "static", "struct", "enum", "type", "trait"}


@dataclass
class Token:
    kind: str
    text: str
    at: int


class Source:
    """A file as tokens, with the partners of brackets."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = TOKEN.finditer(text)
        self.tokens = [Token(m.lastgroup or "", m.group(), m.start()) for m in found if m.lastgroup != "comment"]
        self.comments = [(m.start(), m.end()) for m in TOKEN.finditer(text) if m.lastgroup == "comment"]
        self.partner: dict[int, int] = {}
        stack: list[int] = []
        for i, t in enumerate(self.tokens):
            if t.text in OPEN:
                stack.append(i)
            elif t.text in CLOSE and stack:
                other = stack.pop()
                self.partner[i], self.partner[other] = other, i
        self.code = self.bodies()

    def word(self, i: int) -> str:
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def end(self, i: int) -> int:
        return self.tokens[i].at + len(self.tokens[i].text)

    def bodies(self) -> list[bool]:
        """True per token inside the body of a function that is neither a test nor shows something."""
        inside = [False] * len(self.tokens)
        i = 0
        while i < len(self.tokens):
            if self.word(i) == "#" and self.word(i + 1) == "[":
                last = self.partner[i + 1]
                if "test" in [t.text for t in self.tokens[i : last + 1]]:
                    # The item that the attribute is of goes, too.
                    while self.word(i) not in ("{", ";"):
                        i = self.partner[i] + 1 if self.word(i) in ("[", "(") else i + 1
                    i = self.partner.get(i, i) + 1
                    continue
                i = last + 1
                continue
            if self.word(i) == "fn":
                name, j = self.word(i + 1), i
                while self.word(j) not in ("{", ";"):
                    j = self.partner[j] + 1 if self.word(j) in ("(", "[") else j + 1
                if self.word(j) == "{":
                    last = self.partner[j]
                    if name not in ("fmt", "text", "describe"):
                        inside[j + 1 : last] = [True] * (last - j - 1)
                    j = last
                i = j + 1
                continue
            i += 1
        for i, t in enumerate(self.tokens):
            if t.text in TEXTS and self.word(i + 1) == "!" and self.word(i + 2) in OPEN:
                last = self.partner[i + 2]
                inside[i + 3 : last] = [False] * (last - i - 3)
        return inside

    def left(self, i: int) -> int:
        """The first token of the expression around a token."""
        j = i - 1
        while j >= 0:
            t = self.word(j)
            if t in CLOSE:
                after = self.word(j + 1)
                joined = after in (".", "?", "else", "[", "(") or (
                    self.tokens[j + 1].kind == "op" and after not in ("&", "*", "-", "!", "|", "{", "#")
                )
                if t == "}" and not joined:
                    return j + 1
                j = self.partner[j] - 1
                continue
            if t in OPEN:
                if j >= 2 and self.word(j - 1) == "!" and self.tokens[j - 2].kind == "word":
                    return self.left(j - 2) if self.word(j - 2) in ("matches", "vec") else j + 1
                return j + 1
            if t in ENDS_LEFT or (t in ("&&", "||") and self.word(i) not in ("&&", "||")):
                return j + 1
            j -= 1
        return 0

    def right(self, i: int) -> int:
        """The last token of it."""
        header = self.in_header(i)
        j = i + 1
        while j < len(self.tokens):
            t = self.word(j)
            if t in OPEN:
                if t == "{" and header:
                    return j - 1
                j = self.partner[j] + 1
                if self.word(j - 1) == "}" and not (
                    self.word(j) in (".", "?", "else") or (self.tokens[j].kind == "op" and self.word(j) not in "&*-!|#")
                ):
                    return j - 1
                continue
            if t in CLOSE:
                before = self.partner[j]
                if before >= 2 and self.word(before - 1) == "!" and self.word(before - 2) in ("matches", "vec") and before < i:
                    return self.right(j)
                return j - 1
            if t in ENDS_RIGHT or (t in ("&&", "||") and self.word(i) not in ("&&", "||")):
                return j - 1
            j += 1
        return j - 1

    def in_header(self, i: int) -> bool:
        """True between `if` (or `while`, `match`, `in`) and its block."""
        j = i - 1
        while j >= 0:
            t = self.word(j)
            if t in CLOSE:
                if t == "}":
                    return False
                j = self.partner[j] - 1
                continue
            if t in OPEN or t in (";", "=>", ","):
                return False
            if t in ("if", "while", "match", "in"):
                return True
            j -= 1
        return False


class Finder:
    def __init__(self, file: str, text: str) -> None:
        self.file, self.source, self.text = file, Source(text), text
        self.found: list[Site] = []

    def put(self, kind: str, first: int, last: int, cuts: list[tuple[int, int, str]]) -> None:
        """The text from a token to another, some parts of which (by characters) are replaced."""
        if not (0 <= first <= last < len(self.source.tokens)) or not self.source.code[first]:
            return
        lo, hi = self.source.tokens[first].at, self.source.end(last)
        if hi - lo > 400 or any(lo < c[1] and c[0] < hi for c in self.source.comments):
            return
        old = new = self.text[lo:hi]
        for a, b, put in sorted(cuts, reverse=True):
            new = new[: a - lo] + put + new[b - lo :]
        if new != old:
            self.found.append(Site(self.file, lo, self.text.count("\n", 0, lo) + 1, kind, old, new))

    def around(self, kind: str, i: int, cuts: list[tuple[int, int, str]]) -> None:
        self.put(kind, self.source.left(i), self.source.right(i), cuts)

    def all(self) -> list[Site]:
        for i, token in enumerate(self.source.tokens):
            if self.source.code[i]:
                self.operator(i, token)
                self.constant(i, token)
                self.method(i, token)
                self.condition(i, token)
                self.statement(i, token)
        return numbered(self.found)

    def pick(self, i: int, options: list[str]) -> str:
        around = "".join(t.text for t in self.source.tokens[max(0, i - 4) : i + 4])
        return options[hashlib.sha256(around.encode()).digest()[0] % len(options)]

    def operator(self, i: int, token: Token) -> None:
        t, lo, hi = token.text, token.at, token.at + len(token.text)
        spaced = t == ".." or (self.text[lo - 1 : lo] == " " and self.text[hi : hi + 1] == " ")
        before = self.source.tokens[i - 1]
        operand = (
            (before.kind in ("number", "word", "string") and before.text not in ENDS_LEFT) or before.text in CLOSE or before.text == "?"
        )
        if token.kind == "op" and t in SWAPS and spaced and operand:
            new = self.pick(i, SWAPS[t])
            if t in ("+=", "-=", "|="):
                return self.put("arithmetic", self.source.left(i), self.source.right(i), [(lo, hi, new)])
            if t == "..":
                return self.range(i, lo, hi, new)
            self.around(KINDS.get(t, "arithmetic"), i, [(lo, hi, new)])
            if t in ("&&", "||"):
                self.operand(i, t)
        if t == "!" and not operand and self.source.word(i + 1) not in ("=", "["):
            self.around("logic", i, [(lo, hi, "")])

    def operand(self, i: int, t: str) -> None:
        """The right operand of a logical operator goes."""
        last = i + 1
        while last < len(self.source.tokens) and last <= self.source.right(i):
            if self.source.word(last) in ("&&", "||"):
                break
            last = self.source.partner[last] + 1 if self.source.word(last) in OPEN else last + 1
        self.around("operand dropped", i, [(self.source.tokens[i + 1].at, self.source.end(last - 1), "true" if t == "&&" else "false")])

    def range(self, i: int, lo: int, hi: int, new: str) -> None:
        """Of a range only what is around its brackets has one type."""
        j = i
        while j >= 0 and self.source.word(j) not in OPEN:
            j = self.source.partner[j] - 1 if self.source.word(j) in CLOSE else j - 1
        if j >= 0 and self.source.word(j) in ("(", "["):
            self.around("range", j, [(lo, hi, new)])

    def constant(self, i: int, token: Token) -> None:
        lo, hi = token.at, token.at + len(token.text)
        if token.text in ("true", "false"):
            self.around("constant", i, [(lo, hi, "false" if token.text == "true" else "true")])
        elif token.kind == "number" and token.text.isdigit() and self.source.word(i - 1) != ".":
            value = int(token.text)
            self.around("number", i, [(lo, hi, str(value + 1 if value == 0 or self.pick(i, ["+", "-"]) == "+" else value - 1))])
        elif token.text == "Some" and self.source.word(i + 1) == "(" and self.source.word(i - 1) not in ("let", "(", "|", ","):
            self.around("constant", i, [(lo, self.source.end(self.source.partner[i + 1]), "None")])

    def method(self, i: int, token: Token) -> None:
        if self.source.word(i - 1) != "." or self.source.word(i + 1) != "(":
            return
        lo, last = token.at, self.source.end(self.source.partner[i + 1])
        if token.text in NAMES:
            self.around("method", i, [(lo, lo + len(token.text), NAMES[token.text])])
        if token.text in DROPPED:
            self.around("call dropped", i, [(self.source.tokens[i - 1].at, last, "")])

    def condition(self, i: int, token: Token) -> None:
        if token.text != "if" or self.source.word(i + 1) == "let":
            return
        last = i + 1
        while last < len(self.source.tokens) and self.source.word(last) not in ("{", "=>"):
            if self.source.word(last) == "let":
                return
            last = self.source.partner[last] + 1 if self.source.word(last) in ("(", "[") else last + 1
        last -= 1
        lo, hi = self.source.tokens[i + 1].at, self.source.end(last)
        closing = self.source.partner.get(last + 1, -2)
        kind = "branches" if self.source.word(closing + 1) == "else" else "condition"
        self.put(kind, i + 1, last, [(lo, lo, "!("), (hi, hi, ")")])

    def statement(self, i: int, token: Token) -> None:
        if token.text != ";":
            return
        first = i - 1
        while first >= 0 and self.source.word(first) not in (";", "{", "}"):
            first = self.source.partner[first] - 1 if self.source.word(first) in (")", "]") else first - 1
        first += 1
        if first < i and self.source.word(first) not in NOT_STATEMENTS and self.source.word(first - 1) != "=>":
            self.put("statement", first, i, [(self.source.tokens[first].at, token.at + 1, "")])


def sites(file: str, text: str) -> list[Site]:
    """All changes of a file that might compile."""
    return Finder(file, text).all()
