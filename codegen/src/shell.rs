//! Words of shell commands that messages and scripts contain.

/// A word as a POSIX shell takes it: in single quotes if it needs any.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_each_word_as_it_was() {
        let words =
            ["a", "", "two words", "it's", "$HOME `x` \"y\" \\n", "rack.k=8", "ü/10.0.0.1:9559", "a;b\nc"];
        let line: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let script = format!("printf '%s\\0' {}", line.join(" "));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("sh starts");
        let read = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(read.split_terminator('\0').collect::<Vec<_>>(), words);
        assert_eq!((line[0].as_str(), line[5].as_str()), ("a", "rack.k=8"), "no more quotes than needed");
    }
}
