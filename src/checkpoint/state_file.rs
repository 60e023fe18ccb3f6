//! The file `checkpoint` of a folder: which checkpoints it holds, and which is the latest.
//!
//! Text that TensorFlow reads and writes too, a message of four fields.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::temporary::{TemporaryFile, file_error};
use crate::error::{Error, Result};

const NAME: &str = "checkpoint";

/// What the file says. Paths are as they stand there: relative to its folder, or absolute.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CheckpointState {
    pub(crate) latest: String,
    /// The oldest first.
    pub(crate) all: Vec<String>,
    /// Seconds since 1970, one for each of `all`, or none.
    pub(crate) timestamps: Vec<f64>,
    /// When the last checkpoint was put aside for good.
    pub(crate) last_preserved: Option<f64>,
}

impl CheckpointState {
    /// The state of a folder in which one checkpoint is known, without its time.
    pub(crate) fn only(prefix: &Path) -> Self {
        let name = prefix.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        CheckpointState { latest: name.clone(), all: vec![name], ..CheckpointState::default() }
    }

    /// Reads the state of a folder; `None` if it has none.
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(e) => return Err(file_error(&path, &e)),
        };
        let state =
            parse(&text).map_err(|problem| Error::File { path: path.display().to_string(), problem })?;
        Ok(Some(state))
    }

    /// Writes the state of the folder in which a checkpoint lies.
    pub(crate) fn write_beside(&self, prefix: &Path) -> Result<()> {
        self.write(prefix.parent().unwrap_or(Path::new("")))
    }

    /// Writes the state of a folder: the file is the old one or the new one at every moment.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(NAME);
        let mut file = TemporaryFile::create(&path)?;
        file.write(self.to_text().as_bytes())?;
        file.put_in_place(&path)
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name}: {value}"); // a string takes whatever is written to it
        };
        line("model_checkpoint_path", quoted(&self.latest));
        self.all.iter().for_each(|path| line("all_model_checkpoint_paths", quoted(path)));
        self.timestamps.iter().for_each(|&time| line("all_model_checkpoint_timestamps", number(time)));
        if let Some(time) = self.last_preserved.filter(|&time| time != 0.0) {
            line("last_preserved_timestamp", number(time));
        }
        text
    }

    /// The latest checkpoint of a folder.
    pub(crate) fn latest_in(&self, folder: &Path) -> PathBuf {
        folder.join(&self.latest)
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '"' | '\'' | '\\' => quoted.extend(['\\', c]),
            c if c.is_ascii_control() => {
                let _ = write!(quoted, "\\{:03o}", c as u32); // a string takes whatever is written to it
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The shortest text that reads back as the same number.
fn number(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let size = x.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{x:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        };
    }
    format!("{x:?}")
}

type Parsed<T> = std::result::Result<T, String>;

/// Reads the text: fields in any order, separated by spaces, commas or semicolons.
fn parse(text: &str) -> Parsed<CheckpointState> {
    let mut scanner = Scanner { text, at: 0 };
    let mut state = CheckpointState::default();
    while let Some(name) = scanner.name()? {
        scanner.take(':');
        match name.as_str() {
            "model_checkpoint_path" => state.latest = scanner.string()?,
            "all_model_checkpoint_paths" => scanner.list(Scanner::string, &mut state.all)?,
            "all_model_checkpoint_timestamps" => scanner.list(Scanner::number, &mut state.timestamps)?,
            "last_preserved_timestamp" => state.last_preserved = Some(scanner.number()?),
            _ => return Err(scanner.problem(&format!("{name} is no field of this file"))),
        }
        if !scanner.take(',') {
            scanner.take(';');
        }
    }
    if state.latest.is_empty() {
        return Err("there is no model_checkpoint_path in it".to_owned());
    }
    Ok(state)
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl Scanner<'_> {
    fn problem(&self, what: &str) -> String {
        let line = self.text[..self.at].matches('\n').count() + 1;
        format!("line {line}: {what}")
    }

    /// The next character that is neither space nor in a comment.
    fn peek(&mut self) -> Option<char> {
        loop {
            let rest = &self.text[self.at..];
            let next = rest.chars().next()?;
            match next {
                '#' => self.at += rest.find('\n').unwrap_or(rest.len()),
                c if c.is_ascii_whitespace() => self.at += 1,
                c => return Some(c),
            }
        }
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    /// The characters that belong to a name or a number.
    fn word(&mut self) -> String {
        self.peek();
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_+-.".contains(c);
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    fn name(&mut self) -> Parsed<Option<String>> {
        if self.peek().is_none() {
            return Ok(None);
        }
        let name = self.word();
        if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Ok(Some(name));
        }
        Err(self.problem("expected the name of a field"))
    }

    fn number(&mut self) -> Parsed<f64> {
        let word = self.word();
        let text = word.strip_suffix(['f', 'F']).filter(|text| !text.ends_with("in")).unwrap_or(&word);
        text.parse().map_err(|_| self.problem(&format!("expected a number, got {word:?}")))
    }

    /// Several strings one after the other are one.
    fn string(&mut self) -> Parsed<String> {
        let mut bytes = Vec::new();
        let mut any = false;
        while let Some(quote @ ('"' | '\'')) = self.peek() {
            any = true;
            self.at += 1;
            self.quoted(quote, &mut bytes)?;
        }
        if !any {
            return Err(self.problem("expected a string in quotes"));
        }
        String::from_utf8(bytes).map_err(|_| self.problem("the string is not UTF-8"))
    }

    fn quoted(&mut self, quote: char, bytes: &mut Vec<u8>) -> Parsed<()> {
        loop {
            let Some(c) = self.text[self.at..].chars().next() else {
                return Err(self.problem("the string does not end"));
            };
            self.at += c.len_utf8();
            match c {
                c if c == quote => return Ok(()),
                '\n' => return Err(self.problem("the string does not end on its line")),
                '\\' => self.escaped(bytes)?,
                c => bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    fn escaped(&mut self, bytes: &mut Vec<u8>) -> Parsed<()> {
        let Some(c) = self.text[self.at..].chars().next() else {
            return Err(self.problem("the string does not end"));
        };
        let (radix, most) = match c {
            '0'..='7' => (8, 3),
            'x' | 'X' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            _ => (0, 0),
        };
        if radix == 0 {
            let simple =
                "abfnrtv\\'\"?".find(c).ok_or_else(|| self.problem(&format!("\\{c} is no escape")))?;
            self.at += 1;
            bytes.push(b"\x07\x08\x0c\n\r\t\x0b\\'\"?"[simple]);
            return Ok(());
        }
        self.at += usize::from(radix == 16);
        let rest = &self.text[self.at..];
        let digits: String = rest.chars().take(most).take_while(|c| c.is_digit(radix)).collect();
        self.at += digits.len();
        let code = u32::from_str_radix(&digits, radix).map_err(|_| self.problem("expected digits"))?;
        match c {
            'u' | 'U' => {
                let c = char::from_u32(code).ok_or_else(|| self.problem("the escape is no character"))?;
                bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => bytes.push(u8::try_from(code).map_err(|_| self.problem("the escape is no byte"))?),
        }
        Ok(())
    }

    /// One value, or several in brackets.
    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Parsed<T>, list: &mut Vec<T>) -> Parsed<()> {
        if !self.take('[') {
            list.push(one(self)?);
            return Ok(());
        }
        while !self.take(']') {
            list.push(one(self)?);
            if !self.take(',') && self.peek() != Some(']') {
                return Err(self.problem("expected a comma or ]"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What TensorFlow's manager wrote after five saves, three of them kept.
    const MANAGED: &str = r#"model_checkpoint_path: "ckpt-5"
all_model_checkpoint_paths: "ckpt-3"
all_model_checkpoint_paths: "ckpt-4"
all_model_checkpoint_paths: "ckpt-5"
all_model_checkpoint_timestamps: 1796060884.9458709
all_model_checkpoint_timestamps: 1796060884.9685102
all_model_checkpoint_timestamps: 1796060884.9941363
last_preserved_timestamp: 1796060883.7851315
"#;

    #[test]
    fn what_tensorflow_wrote_comes_back_byte_for_byte() {
        let state = parse(MANAGED).unwrap();
        assert_eq!((state.latest.as_str(), state.all.len()), ("ckpt-5", 3));
        assert_eq!(state.timestamps[2], 1796060884.9941363);
        assert_eq!(state.to_text(), MANAGED);
        let single = "model_checkpoint_path: \"tf_list_example-1\"\nall_model_checkpoint_paths: \"tf_list_example-1\"\n";
        assert_eq!(CheckpointState::only(Path::new("folder/tf_list_example-1")).to_text(), single);
    }

    #[test]
    fn every_spelling_is_read() {
        let text = "# a comment\nlast_preserved_timestamp: 3,  all_model_checkpoint_paths: ['a\\x41' \"b\", \"\\101\\u00e9\"];\
                    model_checkpoint_path: \"old\" model_checkpoint_path: \"a\\tb\" # the last one counts\n\
                    all_model_checkpoint_timestamps: [1e3, -inf, 2.5f]";
        let state = parse(text).unwrap();
        assert_eq!(state.latest, "a\tb");
        assert_eq!(state.all, ["aAb", "Aé"]);
        assert_eq!(state.timestamps, [1000.0, f64::NEG_INFINITY, 2.5]);
        assert_eq!(state.last_preserved, Some(3.0));
    }

    #[test]
    fn what_is_no_such_text_is_refused_with_its_line() {
        for (text, problem) in [
            ("", "no model_checkpoint_path"),
            ("model_checkpoint_path: \"a\"\nother: 3", "line 2: other is no field"),
            ("model_checkpoint_path: 3", "expected a string"),
            ("model_checkpoint_path: \"a", "does not end"),
            ("model_checkpoint_path: \"a\\q\"", "is no escape"),
            ("last_preserved_timestamp: \"a\"", "expected a number"),
            ("all_model_checkpoint_paths: [\"a\" 3", "expected a comma"),
            ("\u{0}\u{1}", "expected the name"),
        ] {
            let e = parse(text).unwrap_err();
            assert!(e.contains(problem), "{text:?}: {e}");
        }
    }

    #[test]
    fn numbers_and_strings_are_written_as_tensorflow_writes_them() {
        for (x, text) in
            [(3e6, "3000000.0"), (1.5e300, "1.5e+300"), (0.1, "0.1"), (1e-7, "1e-07"), (1e16, "1e+16")]
        {
            assert_eq!(number(x), text);
            assert_eq!(text.parse::<f64>().unwrap(), x);
        }
        assert_eq!(quoted("a\"b\\\n\u{1}é"), r#""a\"b\\\n\001é""#);
    }

    proptest::proptest! {
        #[test]
        fn any_state_comes_back(latest in ".+", all in proptest::collection::vec(".*", 0..4), time in proptest::num::f64::NORMAL) {
            let timestamps = vec![time; all.len()];
            let state = CheckpointState { latest, all, timestamps, last_preserved: Some(time) };
            proptest::prop_assert_eq!(parse(&state.to_text()), Ok(state));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = parse(&text);
            let _ = parse(&format!("model_checkpoint_path: \"{text}"));
        }
    }
}
