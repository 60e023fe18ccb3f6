//! Draws rows of digits into a picture.

use std::error::Error;
use std::path::Path;

use couplet::prelude::*;
use plotters::style::text_anchor::HPos;

use super::idx::{PIXELS, SIDE};
use super::page::{self, MARGIN, bold, text};

/// Width of a pixel of a digit.
const ZOOM: i32 = 3;
const TITLE_HEIGHT: i32 = 92;
/// Between digits, and between bands.
const GAP: i32 = 6;
const BAND_GAP: i32 = 30;

/// Draws digits into the PNG file `file`: bands of rows that belong together, each row `[columns, 28, 28, 1]` from 0, which is
/// paper, to 1, which is ink.
///
/// # Errors
/// The file cannot be written.
pub fn draw(file: &Path, title: &str, bands: &[Vec<Tensor>]) -> std::result::Result<(), Box<dyn Error>> {
    let pitch = SIDE as i32 * ZOOM + GAP;
    let columns = bands.iter().flatten().map(|row| row.shape()[0]).max().unwrap_or(0) as i32;
    let rows = bands.iter().map(Vec::len).sum::<usize>() as i32;
    let height = TITLE_HEIGHT + rows * pitch + bands.len() as i32 * BAND_GAP;
    let page = page::open(file, ((columns * pitch - GAP + 2 * MARGIN) as u32, height as u32))?;
    text(&page, title, (MARGIN, 30), bold(28), HPos::Left)?;
    let mut top = TITLE_HEIGHT;
    for band in bands {
        for row in band {
            let bytes = (row * 255.0)?.round()?.clip_by_value(0.0, 255.0)?.cast(DType::U8)?.to_vec::<u8>()?;
            for (column, image) in bytes.chunks(PIXELS).enumerate() {
                page::digit(&page, image, (MARGIN + column as i32 * pitch, top), ZOOM)?;
            }
            top += pitch;
        }
        top += BAND_GAP;
    }
    page.present()?;
    Ok(())
}
