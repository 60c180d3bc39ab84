//! Splits text into tokens.
//!
//! A `>` is always a token of its own, so that `tuple<bit<8>>` closes both brackets. The parser combines
//! adjacent tokens into `>>` and `>>=`. The preprocessor has already removed comments.

use crate::ast::Span;
use crate::diag::Diagnostic;

/// A token of the preprocessed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Kind of the token.
    pub kind: TokenKind,
    /// Source location.
    pub span: Span,
}

macro_rules! tokens {
    (
        $(#[doc = $class_doc:literal] $class:ident;)*
        keywords { $($keyword:ident = $keyword_text:literal,)* }
        signs { $($sign:ident = $sign_text:literal,)* }
    ) => {
        /// The kinds of tokens.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "keywords and signs are named by their text")]
        pub enum TokenKind {
            $(#[doc = $class_doc] $class,)*
            $($keyword,)*
            $($sign,)*
        }

        impl TokenKind {
            /// Spelling of a keyword or sign; a description for other kinds.
            pub fn describe(self) -> &'static str {
                match self {
                    TokenKind::Ident => "a name",
                    TokenKind::Int => "a number",
                    TokenKind::String => "a string",
                    TokenKind::Unknown => "a character that is not part of P4",
                    TokenKind::End => "end of file",
                    $(TokenKind::$keyword => concat!("`", $keyword_text, "`"),)*
                    $(TokenKind::$sign => concat!("`", $sign_text, "`"),)*
                }
            }

            /// The keyword of that spelling, or [`TokenKind::Ident`].
            fn of_word(word: &str) -> TokenKind {
                match word {
                    $($keyword_text => TokenKind::$keyword,)*
                    _ => TokenKind::Ident,
                }
            }
        }

        /// Signs. Of those with a common start, the longest comes first.
        const SIGNS: &[(&str, TokenKind)] = &[$(($sign_text, TokenKind::$sign),)*];

        /// All keywords.
        #[cfg(test)]
        pub(crate) const KEYWORDS: &[&str] = &[$($keyword_text,)*];
    };
}

tokens! {
    /// An identifier.
    Ident;
    /// An integer literal, width prefix included.
    Int;
    /// A string literal, quotes included.
    String;
    /// Characters that start no token. They are legal only inside an annotation.
    Unknown;
    /// The end of the text.
    End;
    keywords {
        Abstract = "abstract",
        Action = "action",
        Actions = "actions",
        Apply = "apply",
        Bit = "bit",
        Bool = "bool",
        Break = "break",
        Const = "const",
        Continue = "continue",
        Control = "control",
        Default = "default",
        Else = "else",
        Entries = "entries",
        Enum = "enum",
        Error = "error",
        Exit = "exit",
        Extern = "extern",
        False = "false",
        For = "for",
        Header = "header",
        HeaderUnion = "header_union",
        If = "if",
        In = "in",
        InOut = "inout",
        IntType = "int",
        Key = "key",
        List = "list",
        MatchKind = "match_kind",
        Out = "out",
        Package = "package",
        Parser = "parser",
        Priority = "priority",
        Return = "return",
        Select = "select",
        State = "state",
        StringType = "string",
        Struct = "struct",
        Switch = "switch",
        Table = "table",
        This = "this",
        Transition = "transition",
        True = "true",
        Tuple = "tuple",
        Type = "type",
        Typedef = "typedef",
        ValueSet = "value_set",
        Varbit = "varbit",
        Void = "void",
        Underscore = "_",
    }
    signs {
        PlusSatAssign = "|+|=",
        MinusSatAssign = "|-|=",
        Invalid = "{#}",
        Mask = "&&&",
        PlusSat = "|+|",
        MinusSat = "|-|",
        ShlAssign = "<<=",
        Dots = "...",
        DotDot = "..",
        AndAnd = "&&",
        OrOr = "||",
        EqEq = "==",
        NotEq = "!=",
        LessEq = "<=",
        GreaterEq = ">=",
        Shl = "<<",
        PlusPlus = "++",
        PlusColon = "+:",
        PlusAssign = "+=",
        MinusAssign = "-=",
        StarAssign = "*=",
        SlashAssign = "/=",
        PercentAssign = "%=",
        AndAssign = "&=",
        OrAssign = "|=",
        XorAssign = "^=",
        Plus = "+",
        Minus = "-",
        Star = "*",
        Slash = "/",
        Percent = "%",
        And = "&",
        Or = "|",
        Xor = "^",
        Tilde = "~",
        Not = "!",
        Less = "<",
        Greater = ">",
        Assign = "=",
        OpenParen = "(",
        CloseParen = ")",
        OpenBracket = "[",
        CloseBracket = "]",
        OpenBrace = "{",
        CloseBrace = "}",
        Colon = ":",
        Comma = ",",
        Semicolon = ";",
        Dot = ".",
        Question = "?",
        At = "@",
    }
}

impl TokenKind {
    /// Whether it can be used as a name: identifiers, and keywords that are reserved only in some places.
    pub fn is_name(self) -> bool {
        use TokenKind::*;
        matches!(self, Ident | Actions | Apply | Entries | Key | List | Priority | State | Type)
    }

    /// Whether it is a word: a name or any keyword.
    pub fn is_word(self) -> bool {
        self == TokenKind::Ident
            || (self as u8 >= TokenKind::Abstract as u8 && self as u8 <= TokenKind::Underscore as u8)
    }
}

/// Splits a text into tokens; the last one is [`TokenKind::End`]. A string that is not closed is reported and
/// ends at its line end.
pub fn lex(text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::with_capacity(text.len() / 5), errors: Vec::new() };
    lexer.run();
    (lexer.tokens, lexer.errors)
}

/// Length of the sign at the start of a text.
pub(crate) fn sign_length(text: &str) -> Option<usize> {
    SIGNS.iter().find(|(sign, _)| text.starts_with(sign)).map(|(sign, _)| sign.len())
}

/// The lexer gives up after this many errors. (Finding out that a string is not closed reads everything that
/// follows.)
const MAX_ERRORS: usize = 100;

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
    errors: Vec<Diagnostic>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(byte) = self.byte(0) {
            let start = self.at;
            if self.errors.len() >= MAX_ERRORS {
                self.at = self.text.len();
                break;
            }
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C => self.at += 1,
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    self.skip(is_word_byte);
                    let kind = TokenKind::of_word(&self.text[start..self.at]);
                    self.push(kind, start);
                }
                b'0'..=b'9' => self.number(),
                b'"' => self.string(),
                _ => self.sign(),
            }
        }
        self.push(TokenKind::End, self.at);
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Moves past ASCII bytes, so `at` stays on a character boundary.
    fn skip(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.byte(0).is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn span(&self, start: usize) -> Span {
        Span { lo: start as u32, hi: self.at as u32 }
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        let span = self.span(start);
        self.tokens.push(Token { kind, span });
    }

    fn number(&mut self) {
        let start = self.at;
        self.skip(is_word_byte);
        // `8s-1`: the sign belongs to the literal.
        let prefix = &self.text[start..self.at];
        if prefix.strip_suffix('s').is_some_and(|w| w.bytes().all(|b| b.is_ascii_digit()))
            && self.byte(0) == Some(b'-')
            && self.byte(1).is_some_and(|b| b.is_ascii_digit())
        {
            self.at += 1;
            self.skip(is_word_byte);
        }
        self.push(TokenKind::Int, start);
    }

    fn string(&mut self) {
        let start = self.at;
        let rest = &self.text.as_bytes()[start + 1..];
        let mut escaped = false;
        let close = rest.iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        });
        match close {
            Some(length) => {
                self.at = start + length + 2;
                self.push(TokenKind::String, start);
            }
            None => {
                // Most likely its end is missing on its line, before the signs at the end of it.
                let line = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                let text = self.text.get(start..start + 1 + line).unwrap_or("\"");
                let text = text.trim_end_matches(|c: char| {
                    c.is_whitespace() || matches!(c, ';' | ',' | ')' | ']' | '}')
                });
                self.at = start + 1;
                let error =
                    Diagnostic::error(self.span(start), "this string is never closed").help("add a `\"`");
                self.errors.push(error);
                self.at = start + text.len();
                self.push(TokenKind::String, start);
            }
        }
    }

    fn sign(&mut self) {
        let start = self.at;
        let rest = &self.text[start..];
        if let Some((sign, kind)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            self.at += sign.len();
            self.push(*kind, start);
            return;
        }
        // One token for a whole run of such characters.
        let is_foreign =
            |c: &char| !c.is_ascii() || matches!(c, '$' | '`' | '\'' | '\\' | '#') || c.is_ascii_control();
        let run: usize =
            rest.chars().take_while(|c| is_foreign(c) && !c.is_whitespace()).map(char::len_utf8).sum();
        self.at += run.max(rest.chars().next().map_or(1, char::len_utf8));
        self.push(TokenKind::Unknown, start);
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::TokenKind::*;
    use super::*;
    use proptest::prelude::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let (tokens, errors) = lex(text);
        assert!(errors.is_empty(), "{text}: {errors:?}");
        tokens.iter().map(|t| t.kind).filter(|k| *k != End).collect()
    }

    fn texts(text: &str) -> Vec<&str> {
        lex(text).0.iter().map(|t| &text[t.span.lo as usize..t.span.hi as usize]).collect()
    }

    #[test]
    fn the_longest_sign_wins() {
        for (index, (long, _)) in SIGNS.iter().enumerate() {
            for (earlier, _) in &SIGNS[..index] {
                assert!(!long.starts_with(earlier), "`{earlier}` hides `{long}`");
            }
        }
        assert_eq!(kinds("a&&&b"), [Ident, Mask, Ident]);
        assert_eq!(kinds("a|+|b|-|=c"), [Ident, PlusSat, Ident, MinusSatAssign, Ident]);
        assert_eq!(kinds("x[a+:4]"), [Ident, OpenBracket, Ident, PlusColon, Int, CloseBracket]);
        assert_eq!(kinds("{#} {1, ...}"), [Invalid, OpenBrace, Int, Comma, Dots, CloseBrace]);
        assert_eq!(kinds("1..2"), [Int, DotDot, Int]);
    }

    #[test]
    fn closing_angles_stay_apart() {
        assert_eq!(kinds("a<b<c>>"), [Ident, Less, Ident, Less, Ident, Greater, Greater]);
        assert_eq!(kinds("a >>= b"), [Ident, Greater, GreaterEq, Ident]);
    }

    #[test]
    fn every_keyword_is_a_word() {
        for word in KEYWORDS {
            assert_ne!(kinds(word), [Ident], "{word}");
            assert!(kinds(word)[0].is_word(), "{word}");
            assert_eq!(kinds(&format!("{word}x")), [Ident]);
        }
        assert!(!Plus.is_word() && !End.is_word() && !Int.is_word());
    }

    #[test]
    fn numbers_are_one_token() {
        for number in ["0", "1_000", "0xFF", "0X0f_f", "0b1010", "0o17", "0d19", "8w0xFF", "4s0b1", "4s-1"] {
            assert_eq!(texts(number), [number, ""]);
        }
        assert_eq!(kinds("8w1-1"), [Int, Minus, Int]);
        assert_eq!(kinds("s-1"), [Ident, Minus, Int]);
    }

    #[test]
    fn strings_know_escapes() {
        assert_eq!(texts(r#""a\"b" "\\" x"#), [r#""a\"b""#, r#""\\""#, "x", ""]);
        assert_eq!(kinds("\"two\nlines\""), [String]);
    }

    #[test]
    fn foreign_characters_are_tokens_and_open_strings_are_reported() {
        let (tokens, errors) = lex("a §§§ b # \"open);\nc");
        let kinds: Vec<_> = tokens.iter().map(|t| t.kind).collect();
        assert_eq!(kinds, [Ident, Unknown, Ident, Unknown, String, CloseParen, Semicolon, Ident, End]);
        assert_eq!(errors.len(), 1, "{errors:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_covered_in_order(text in "\\PC*|[ -~\\n]*") {
            let (tokens, _) = lex(&text);
            let mut at = 0;
            for token in &tokens {
                prop_assert!(token.span.lo >= at && token.span.hi >= token.span.lo);
                prop_assert!(text.is_char_boundary(token.span.lo as usize) && text.is_char_boundary(token.span.hi as usize));
                at = token.span.hi;
            }
            prop_assert_eq!(tokens.last().map(|t| (t.kind, t.span.hi as usize)), Some((End, text.len())));
        }
    }
}
