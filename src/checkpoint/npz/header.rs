//! The header of an array: element type, order and shape, written as a literal of Python.
//!
//! | part    | bytes                                                                   |
//! |---------|-------------------------------------------------------------------------|
//! | magic   | `0x93` and `NUMPY`                                                      |
//! | version | two: 1.0, 2.0 or 3.0                                                    |
//! | length  | of the header: `u16` in version 1, else `u32`, little-endian            |
//! | header  | `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }` and a line end |
//!
//! Version 3 differs from 2 in that the header is UTF-8.

use std::io::Read;

use super::super::stored::Entry;
use super::descr::{Descr, Kind};
use crate::error::Fault;
use crate::tensor::Shape;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The largest header that is read. Long ones list the fields of structures.
const MOST: u64 = 1 << 20;

/// What is wrong, and at which byte of the array.
pub(super) type Flaw = (Fault, u64, String);

/// What an array says of itself.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) descr: Descr,
    /// Whether the first index varies fastest.
    pub(super) fortran_order: bool,
    pub(super) shape: Shape,
    /// Where the elements begin.
    pub(super) start: u64,
}

impl Header {
    /// Reads a header and leaves `source` at the elements.
    pub(super) fn read(source: &mut impl Read) -> Result<Self, Flaw> {
        let mut at = 0;
        let magic = bytes(source, &mut at, 8)?;
        if !magic.starts_with(MAGIC) {
            return Err((Fault::BadMagic, 0, "it does not begin as an array of NumPy does".into()));
        }
        let version = magic[6];
        let length = match version {
            1 => bytes(source, &mut at, 2)?.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)),
            2 | 3 => bytes(source, &mut at, 4)?.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)),
            _ => return Err((Fault::UnsupportedVersion, 6, format!("version {version}, expected 1 to 3"))),
        };
        if length > MOST {
            let problem = format!("a header of {length} bytes, expected {MOST} at most");
            return Err((Fault::MalformedHeader, 8, problem));
        }
        let text = bytes(source, &mut at, length)?;
        let text = match version {
            3 => String::from_utf8(text).map_err(|e| {
                let at = 12 + e.utf8_error().valid_up_to() as u64;
                (Fault::MalformedHeader, at, "the header is no UTF-8".to_owned())
            })?,
            _ => text.into_iter().map(char::from).collect(),
        };
        let mut literal = Literal { rest: &text };
        let header = literal.header(at);
        header.map_err(|(fault, problem)| {
            let offset = at - length + (text.len() - literal.rest.len()) as u64;
            (fault, offset.min(at), problem)
        })
    }

    /// The bytes of the elements; `None` if they are not all of one size.
    ///
    /// # Errors
    /// No memory has so many.
    pub(super) fn size(&self) -> Result<Option<u64>, Flaw> {
        let Some(size) = self.descr.size() else { return Ok(None) };
        let too_large = || (Fault::SizeMismatch, 0, format!("shape {} is too large to exist", self.shape));
        if self.shape.contains(&0) {
            return Ok(Some(0));
        }
        if size == 0 {
            return Err((Fault::UnsupportedDType, 0, "elements of no bytes".into()));
        }
        let size = self.shape.iter().try_fold(size, |size, &dim| size.checked_mul(dim));
        size.map(|size| Some(size as u64)).ok_or_else(too_large)
    }

    /// The array as an entry. `bytes` counts those that are there.
    pub(super) fn entry(&self, key: String, bytes: u64) -> Entry {
        Entry { key, dtype: self.descr.dtype(), shape: self.shape.clone(), bytes }
    }

    /// The bytes of a header in row-major order, as long as makes the elements lie at a multiple of 64.
    pub(super) fn write(descr: &str, shape: &[usize]) -> Vec<u8> {
        let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
        let shape = match &dims[..] {
            [dim] => format!("({dim},)"),
            dims => format!("({})", dims.join(", ")),
        };
        let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let long = text.len() + 75 > usize::from(u16::MAX);
        let before = if long { 12 } else { 10 };
        let padding = (before + text.len() + 1).next_multiple_of(64) - (before + text.len() + 1);
        text.extend(std::iter::repeat_n(' ', padding));
        text.push('\n');
        let mut bytes = MAGIC.to_vec();
        if long {
            bytes.extend([2, 0]);
            bytes.extend((text.len() as u32).to_le_bytes());
        } else {
            bytes.extend([1, 0]);
            bytes.extend((text.len() as u16).to_le_bytes());
        }
        bytes.extend(text.as_bytes());
        bytes
    }
}

/// The next bytes, of which no more are kept than there are.
fn bytes(source: &mut impl Read, at: &mut u64, length: u64) -> Result<Vec<u8>, Flaw> {
    let mut bytes = Vec::new();
    let read = source.take(length).read_to_end(&mut bytes);
    read.map_err(|e| (Fault::MalformedEntry, *at, format!("the header cannot be read: {e}")))?;
    *at += bytes.len() as u64;
    if (bytes.len() as u64) < length {
        return Err((
            Fault::Truncated,
            *at,
            format!("the header ends {} bytes early", length - bytes.len() as u64),
        ));
    }
    Ok(bytes)
}

/// A literal of Python on its way through.
struct Literal<'a> {
    rest: &'a str,
}

type Parsed<T> = Result<T, (Fault, String)>;

impl<'a> Literal<'a> {
    fn header(&mut self, start: u64) -> Parsed<Header> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.skip('}') {
            let is_new = match self.string()? {
                "descr" if self.colon()? => descr.replace(self.descr()?).is_none(),
                "fortran_order" if self.colon()? => fortran_order.replace(self.bool()?).is_none(),
                "shape" if self.colon()? => shape.replace(self.tuple()?).is_none(),
                other => return Err(malformed(format!("{other:?} is no part of a header"))),
            };
            if !is_new {
                return Err(malformed("a part of the header comes twice"));
            }
            if !self.skip(',') && !self.rest.starts_with('}') {
                return Err(malformed("expected , or }"));
            }
        }
        if !self.rest.is_empty() {
            return Err(malformed("something follows the header"));
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => {
                Ok(Header { descr, fortran_order, shape, start })
            }
            _ => Err(malformed("expected descr, fortran_order and shape")),
        }
    }

    /// Goes past a character and the blanks around it, if it comes next.
    fn skip(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, c: char) -> Parsed<()> {
        if self.skip(c) { Ok(()) } else { Err(malformed(format!("expected {c}"))) }
    }

    fn colon(&mut self) -> Parsed<bool> {
        self.expect(':').map(|()| true)
    }

    fn string(&mut self) -> Parsed<&'a str> {
        let quote = if self.rest.starts_with('"') { '"' } else { '\'' };
        self.expect(quote)?;
        let (string, rest) = self.rest.split_once(quote).ok_or_else(|| malformed("a string does not end"))?;
        self.rest = rest;
        Ok(string)
    }

    /// The element type: a name, or the fields of a structure, which are not looked at.
    fn descr(&mut self) -> Parsed<Descr> {
        if !self.rest.starts_with(['[', '(']) {
            let name = self.string()?;
            return Descr::parse(name);
        }
        let (mut depth, mut quote) = (0usize, None);
        for (at, c) in self.rest.char_indices() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, '[' | '(') => depth += 1,
                (None, ']' | ')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                let (fields, rest) = self.rest.split_at(at + 1);
                self.rest = rest;
                return Ok(Descr { kind: Kind::Opaque(fields.to_owned()), big_endian: false });
            }
        }
        Err(malformed("the element type does not end"))
    }

    fn bool(&mut self) -> Parsed<bool> {
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(malformed("expected True or False"))
    }

    fn tuple(&mut self) -> Parsed<Shape> {
        self.expect('(')?;
        let mut dims = Vec::new();
        while !self.skip(')') {
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            let dim = digits.parse().map_err(|_| malformed("expected a dim"))?;
            dims.push(dim);
            // Python 2 marked long integers.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.skip(',') && !self.rest.starts_with(')') {
                return Err(malformed("expected , or )"));
            }
        }
        Ok(Shape::from(dims))
    }
}

fn malformed(problem: impl Into<String>) -> (Fault, String) {
    (Fault::MalformedHeader, problem.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(version: u8, text: &str) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        let length = (text.len() as u32).to_le_bytes();
        bytes.extend(if version == 1 { &length[..2] } else { &length });
        bytes.extend(text.as_bytes());
        bytes
    }

    #[test]
    fn all_versions_and_spellings_are_read() {
        let text = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }   \n";
        for v in 1..=3 {
            let mut bytes = version(v, text);
            bytes.extend([1, 2, 3]);
            let mut rest = &bytes[..];
            let header = Header::read(&mut rest).unwrap();
            assert_eq!(
                (rest, header.shape.as_ref(), header.fortran_order),
                (&[1u8, 2, 3][..], &[2, 3][..], true)
            );
            assert_eq!(header.start as usize + 3, bytes.len());
            assert_eq!(header.size(), Ok(Some(24)));
        }
        for (text, shape) in [
            (r#"{"shape":(3L,),"descr":">i8","fortran_order":False}"#, &[3][..]),
            ("{'shape': (), 'fortran_order': False, 'descr': '|b1'}", &[]),
            ("{'descr': [('a', '<f4', (2,)), (']', '<i4')], 'fortran_order': False, 'shape': (5,)}", &[5]),
        ] {
            assert_eq!(Header::read(&mut &version(1, text)[..]).unwrap().shape.as_ref(), shape);
        }
    }

    #[test]
    fn headers_come_back_and_leave_the_elements_aligned() {
        for shape in [&[][..], &[3], &[2, 0, 7], &[1; 30000]] {
            let bytes = Header::write("<f8", shape);
            assert_eq!(bytes.len() % 64, 0);
            let header = Header::read(&mut &bytes[..]).unwrap();
            assert_eq!((header.shape.as_ref(), header.start), (shape, bytes.len() as u64));
        }
    }

    #[test]
    fn what_is_no_header_is_named_with_its_place() {
        let shape = |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
        for (text, fault) in [
            ("", Fault::MalformedHeader),
            ("{", Fault::MalformedHeader),
            ("{}", Fault::MalformedHeader),
            ("{'descr': '<f4', 'shape': (2,)}", Fault::MalformedHeader),
            ("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", Fault::MalformedHeader),
            ("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", Fault::MalformedHeader),
            ("{'descr': '<q4', 'fortran_order': False, 'shape': ()}", Fault::UnsupportedDType),
            ("{'descr': [('a', 'fortran_order': False, 'shape': ()}", Fault::MalformedHeader),
            ("{'descr': 'a", Fault::MalformedHeader),
            (&shape("(-1,)"), Fault::MalformedHeader),
            (&shape("(2.5,)"), Fault::MalformedHeader),
            (&shape("(99999999999999999999,)"), Fault::MalformedHeader),
            (&shape("(2 3)"), Fault::MalformedHeader),
            (&shape("(,)"), Fault::MalformedHeader),
            (&shape("(2"), Fault::MalformedHeader),
            (&(shape("()") + "x"), Fault::MalformedHeader),
        ] {
            let (found, offset, problem) = Header::read(&mut &version(1, text)[..]).unwrap_err();
            assert_eq!(found, fault, "{text}: {problem}");
            assert!(offset >= 10 && offset <= 10 + text.len() as u64, "{text}: {offset}");
        }
        let good = version(1, &shape("(2,)"));
        for cut in 0..good.len() {
            assert_eq!(Header::read(&mut &good[..cut]).unwrap_err().0, Fault::Truncated);
        }
        let other = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            Header::read(&mut &bytes[..]).unwrap_err().0
        };
        assert_eq!(
            (other(0, 0), other(6, 4), other(9, 9)),
            (Fault::BadMagic, Fault::UnsupportedVersion, Fault::Truncated)
        );
        let long = [&MAGIC[..], &[2, 0, 255, 255, 255, 255]].concat();
        assert_eq!(Header::read(&mut &long[..]).unwrap_err().0, Fault::MalformedHeader);
        let not_utf8 = [&version(3, "{'descr': '")[..], b"\xff"].concat();
        let mut not_utf8 = not_utf8;
        not_utf8[8] += 1;
        assert_eq!(Header::read(&mut &not_utf8[..]).unwrap_err().1, 23);
    }

    #[test]
    fn sizes_that_no_memory_has_are_refused() {
        for (descr, shape) in [("<f4", "(4294967296, 4294967296)"), ("|S0", "(3,)")] {
            let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}");
            assert!(Header::read(&mut &version(1, &text)[..]).unwrap().size().is_err());
        }
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 18446744073709551615)}";
        assert_eq!(Header::read(&mut &version(1, text)[..]).unwrap().size(), Ok(Some(0)));
    }
}
