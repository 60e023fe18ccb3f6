//! A picture to draw on: paper, letters and digits.

use std::error::Error;
use std::fs::File;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};

use super::idx::{PIXELS, SIDE};

pub type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;
pub type Drawn = Result<(), Box<dyn Error>>;

pub const INK: RGBColor = RGBColor(38, 43, 51);
pub const MARGIN: i32 = 44;

pub const FONT: &str = "noto";

/// White paper of a width and a height, which [`present`](DrawingArea::present) writes into the PNG file `file`.
///
/// # Errors
/// The file cannot be written.
pub fn open(file: &Path, size: (u32, u32)) -> Result<Area<'_>, Box<dyn Error>> {
    // The fonts come with the `notosans` crate, so that a machine without any draws the same picture.
    for (style, bytes) in [(FontStyle::Normal, notosans::REGULAR_TTF), (FontStyle::Bold, notosans::BOLD_TTF)]
    {
        register_font(FONT, style, bytes).map_err(|_| "the embedded font is damaged")?;
    }
    // Says more plainly than the drawing library why a file cannot be written.
    File::create(file)?;
    let page = BitMapBackend::new(file, size).into_drawing_area();
    page.fill(&WHITE)?;
    Ok(page)
}

/// Black ink on white paper, enlarged `zoom` times; `image` has [`PIXELS`] bytes.
pub fn digit(area: &Area, image: &[u8], (left, top): (i32, i32), zoom: i32) -> Drawn {
    for (i, &pixel) in image.iter().enumerate().take(PIXELS) {
        let (x, y) = (left + (i % SIDE) as i32 * zoom, top + (i / SIDE) as i32 * zoom);
        let shade = 255 - pixel;
        let square = [(x, y), (x + zoom, y + zoom)];
        area.draw(&Rectangle::new(square, RGBColor(shade, shade, shade).filled()))?;
    }
    Ok(())
}

pub fn text(area: &Area, text: &str, at: (i32, i32), style: TextStyle, align: HPos) -> Drawn {
    Ok(area.draw_text(text, &style.pos(Pos::new(align, VPos::Top)), at)?)
}

pub fn bold(size: u32) -> TextStyle<'static> {
    (FONT, size, FontStyle::Bold).into_font().color(&INK)
}
