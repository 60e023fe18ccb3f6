//! Elements of arrays, in any order of bytes and of indices.

use std::borrow::Cow;

use super::super::stored::{Raw, Stored, Strings};
use super::descr::Kind;
use super::header::{Flaw, Header};
use crate::autodiff::no_grad;
use crate::dtype::DType;
use crate::error::{Fault, Result};
use crate::tensor::{Shape, Tensor};

/// The array of these elements, of which there are as many bytes as the header asks for.
pub(super) fn decode(header: &Header, bytes: &[u8]) -> std::result::Result<Stored, Flaw> {
    let malformed = |problem: String| (Fault::MalformedTensor, header.start, problem);
    let number = header.descr.number();
    let bytes = if header.descr.big_endian && number > 1 {
        let mut swapped = bytes.to_vec();
        swapped.chunks_exact_mut(number).for_each(<[u8]>::reverse);
        Cow::Owned(swapped)
    } else {
        Cow::Borrowed(bytes)
    };
    let shape = header.shape.clone();
    let transposed = header.fortran_order && shape.len() > 1;
    let tensor = |dtype| {
        let stored = if transposed { shape.iter().rev().copied().collect() } else { shape.clone() };
        let x = Tensor::from_bytes(&bytes, stored, dtype)?;
        if transposed { reversed(&x) } else { Ok(x) }
    };
    // Elements that are no tensor's are moved as lists of bytes.
    let row_major = |size: usize| -> std::result::Result<Vec<u8>, Flaw> {
        if !transposed {
            return Ok(bytes.to_vec());
        }
        let stored: Shape = shape.iter().rev().copied().chain([size]).collect();
        let list = || {
            let x = Tensor::from_bytes(&bytes, stored, DType::U8)?;
            let mut list = Vec::new();
            elements_reversed(&x)?.write_bytes(&mut list).map(|()| list)
        };
        list().map_err(|e| malformed(e.root().to_string()))
    };
    match &header.descr.kind {
        Kind::Tensor(dtype) => {
            tensor(*dtype).map(Stored::Tensor).map_err(|e| malformed(e.root().to_string()))
        }
        Kind::Raw { name, size, .. } => {
            Ok(Stored::Raw(Raw { dtype: name.clone(), shape: shape.clone(), bytes: row_major(*size)? }))
        }
        Kind::Bytes(size) => {
            let bytes = row_major(*size)?;
            let values =
                bytes.chunks_exact((*size).max(1)).map(|value| unpadded(value, 1).to_vec()).collect();
            Ok(Stored::Strings(Strings { shape: shape.clone(), values }))
        }
        Kind::Text(chars) => {
            let bytes = row_major(4 * chars)?;
            let values = bytes.chunks_exact((4 * chars).max(1)).map(|value| {
                let (codes, _) = unpadded(value, 4).as_chunks::<4>();
                let chars = codes.iter().map(|&code| char::from_u32(u32::from_le_bytes(code)));
                let text: Option<String> = chars.collect();
                text.map(String::into_bytes)
                    .ok_or_else(|| malformed("a string holds what is no character".into()))
            });
            Ok(Stored::Strings(Strings { shape: shape.clone(), values: values.collect::<Result<_, _>>()? }))
        }
        Kind::Opaque(name) => {
            let problem = format!("arrays of {name} cannot be read");
            Err((Fault::UnsupportedDType, header.start, problem))
        }
    }
}

/// The value without the zeros that fill it up, in steps of so many bytes.
fn unpadded(value: &[u8], step: usize) -> &[u8] {
    let units = value.chunks_exact(step).rev().take_while(|unit| unit.iter().all(|&byte| byte == 0)).count();
    &value[..value.len() - units * step]
}

/// All axes in the opposite order, as contiguous elements.
fn reversed(x: &Tensor) -> Result<Tensor> {
    let order: Vec<isize> = (0..x.rank() as isize).rev().collect();
    no_grad(|| x.transpose(&order)).map(|x| x.to_contiguous())
}

/// As [`reversed`], but for the last axis.
fn elements_reversed(x: &Tensor) -> Result<Tensor> {
    let last = x.rank() as isize - 1;
    let order: Vec<isize> = (0..last).rev().chain([last]).collect();
    no_grad(|| x.transpose(&order)).map(|x| x.to_contiguous())
}
