//! A program as blocks and statements: enough of P4's syntax to find declarations and their uses.

use std::ops::Range;

/// A word or a mark, and the place of both in the program.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub text: &'a str,
    /// Whether a dot precedes it: then it names a part of the expression before the dot.
    pub is_part: bool,
}

/// Content of a pair of braces.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// The statement that it belongs to, without annotations.
    pub opener: Vec<&'a str>,
    /// The same with its place, as tokens.
    pub head: Range<usize>,
    /// Its tokens, without the braces.
    pub tokens: Range<usize>,
    /// The block around it.
    pub around: Option<usize>,
}

/// Tokens up to a semicolon, in a block.
#[derive(Clone, Debug)]
pub struct Statement {
    pub tokens: Range<usize>,
    pub block: Option<usize>,
}

/// A program without comments and texts.
pub struct Program<'a> {
    pub tokens: Vec<Token<'a>>,
    pub blocks: Vec<Block<'a>>,
    pub statements: Vec<Statement>,
}

impl<'a> Program<'a> {
    pub fn new(lines: &[&'a str]) -> Program<'a> {
        let mut tokens: Vec<Token<'_>> = Vec::new();
        for line in lines.iter().filter(|line| !line.trim_start().starts_with('#')) {
            for (n, code) in line.split('"').enumerate() {
                // Every other part of a line is a text.
                let code = if n % 2 == 0 { code } else { "" };
                for text in marks(code) {
                    let is_part = tokens.last().is_some_and(|last| last.text == ".");
                    tokens.push(Token { text, is_part });
                }
            }
        }
        let mut program = Program { tokens, blocks: Vec::new(), statements: Vec::new() };
        program.divide();
        program
    }

    /// Finds blocks and statements.
    fn divide(&mut self) {
        let (mut around, mut from, mut brackets) = (Vec::new(), 0, 0usize);
        for at in 0..self.tokens.len() {
            match self.tokens[at].text {
                "(" | "[" => brackets += 1,
                ")" | "]" => brackets = brackets.saturating_sub(1),
                "{" => {
                    let block = Block {
                        opener: self.plain(from..at).map(|at| self.tokens[at].text).collect(),
                        head: from..at,
                        tokens: at + 1..at + 1,
                        around: around.last().map(|(block, _)| *block),
                    };
                    around.push((self.blocks.len(), brackets));
                    self.blocks.push(block);
                    (from, brackets) = (at + 1, 0);
                }
                "}" => {
                    if let Some((block, outside)) = around.pop() {
                        self.blocks[block].tokens.end = at;
                        brackets = outside;
                    }
                    from = at + 1;
                }
                ";" if brackets == 0 => {
                    let block = around.last().map(|(block, _)| *block);
                    self.statements.push(Statement { tokens: from..at, block });
                    from = at + 1;
                }
                _ => {}
            }
        }
    }

    /// The tokens of a statement without annotations, by place.
    pub fn plain(&self, tokens: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let mut skip = tokens.start;
        tokens.clone().filter(move |at| {
            if *at >= skip && self.tokens[*at].text == "@" {
                skip = at + 2;
                if self.text(skip) == "(" {
                    skip = self.closing(skip) + 1;
                }
            }
            *at >= skip
        })
    }

    /// The text at a place; empty behind the program's end.
    pub fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    /// Where the bracket at `at` is closed.
    pub fn closing(&self, at: usize) -> usize {
        let mut depth = 0;
        for place in at..self.tokens.len() {
            match self.text(place) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return place;
            }
        }
        self.tokens.len()
    }

    /// Places of a name in `within`, but for its declaration.
    pub fn uses<'p>(
        &'p self,
        name: &'p str,
        declared: usize,
        within: Range<usize>,
    ) -> impl Iterator<Item = usize> + 'p {
        within.filter(move |at| *at != declared && self.text(*at) == name && !self.tokens[*at].is_part)
    }

    /// Whether what ends before `next` is assigned as a whole, or by a slice.
    pub fn is_assigned(&self, next: usize) -> bool {
        let next = if self.text(next) == "[" { self.closing(next) + 1 } else { next };
        self.text(next) == "="
    }

    /// The tokens in which something declared in a block can be used.
    pub fn range(&self, block: Option<usize>) -> Range<usize> {
        block.map_or(0..self.tokens.len(), |block| self.blocks[block].tokens.clone())
    }

    /// Type, name and place of each parameter between the brackets that open at `at`.
    pub fn parameters(&self, at: usize) -> Vec<(&'a str, usize)> {
        let (mut parameters, mut from) = (Vec::new(), at + 1);
        let end = self.closing(at);
        let mut angles = 0i32;
        for place in at + 1..=end {
            match self.text(place) {
                "<" => angles += 1,
                ">" => angles -= 1,
                "," if angles > 0 => {}
                "," | ")" => {
                    let words: Vec<usize> = self.plain(from..place).collect();
                    if let Some(name) = words.last() {
                        let kind = words
                            .iter()
                            .map(|at| self.text(*at))
                            .find(|text| !["in", "out", "inout"].contains(text));
                        parameters.push((kind.unwrap_or_default(), *name));
                    }
                    from = place + 1;
                }
                _ => {}
            }
        }
        parameters
    }
}

/// The words and marks of a line.
fn marks(code: &str) -> impl Iterator<Item = &str> {
    let mut rest = code;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if ["==", "!=", "<=", ">=", "&&", "||", "++", "..", "<<"]
            .iter()
            .any(|mark| rest.starts_with(mark))
        {
            2
        } else {
            first.len_utf8()
        };
        let (mark, after) = rest.split_at(length);
        rest = after;
        Some(mark)
    })
}
