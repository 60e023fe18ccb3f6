//! Draws a training run into one picture: the loss, the test accuracy and the worst-classified digits.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::chart::SeriesAnno;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::idx::SIDE;
use super::page::{self, Area, Drawn, FONT, INK, MARGIN, bold, text};

/// Number of digits that are drawn.
pub const WORST: usize = 12;

/// Losses and accuracies of a run.
#[derive(Debug, Default)]
pub struct History {
    /// Training loss of each step.
    pub losses: Vec<f32>,
    /// Mean training loss of each epoch.
    pub epoch_losses: Vec<f64>,
    /// Test accuracy after each epoch, in percent.
    pub accuracies: Vec<f64>,
}

/// A test digit and what the model said of it.
#[derive(Debug, Clone, Copy)]
pub struct Verdict<'a> {
    /// One byte for each pixel.
    pub image: &'a [u8],
    pub label: usize,
    pub predicted: usize,
}

type Chart<'a, 'b> = ChartContext<'a, BitMapBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

const WIDTH: u32 = 1600;
const HEIGHT: u32 = 884;
const TITLE_HEIGHT: u32 = 92;
const CHARTS_HEIGHT: u32 = 548;
/// Width of a pixel of a digit.
const ZOOM: i32 = 4;

const GREY: RGBColor = RGBColor(112, 120, 132);
const GRID: RGBColor = RGBColor(228, 231, 236);
const BLUE: RGBColor = RGBColor(31, 102, 190);
const PALE_BLUE: RGBColor = RGBColor(150, 188, 232);
const GREEN: RGBColor = RGBColor(30, 132, 84);
const RED: RGBColor = RGBColor(196, 48, 43);

/// Draws `history` and up to [`WORST`] digits, the worst first, into the PNG file `file`.
///
/// # Errors
/// The file cannot be written.
pub fn draw(file: &Path, title: &str, history: &History, worst: &[Verdict]) -> Drawn {
    let page = page::open(file, (WIDTH, HEIGHT))?;
    let (head, body) = page.split_vertically(TITLE_HEIGHT);
    text(&head, title, (MARGIN, 28), bold(38), HPos::Left)?;
    let (charts, digits) = body.split_vertically(CHARTS_HEIGHT);
    let (left, right) = charts.split_horizontally(WIDTH / 2);
    draw_losses(&left, history)?;
    draw_accuracies(&right, history)?;
    draw_digits(&digits, worst)?;
    page.present()?;
    Ok(())
}

fn draw_losses(area: &Area, history: &History) -> Drawn {
    let epochs = history.epoch_losses.len();
    let epochs_per_step = epochs as f64 / history.losses.len() as f64;
    let steps = history.losses.iter().enumerate();
    let steps = steps.map(|(step, &loss)| ((step + 1) as f64 * epochs_per_step, decades(loss.into())));
    // The mean of an epoch stands in its middle.
    let means = history.epoch_losses.iter().enumerate();
    let means = means.map(|(epoch, &loss)| (epoch as f64 + 0.5, decades(loss)));
    let (low, high) = history.losses.iter().fold((0.0_f64, 0.0_f64), |(low, high), &loss| {
        let y = decades(loss.into());
        (low.min(y), high.max(y))
    });

    // A loss falls through several powers of ten, and may start far above its level at chance.
    let scale = low.floor()..high + 0.1;
    let label = |y: &f64| if y.fract() == 0.0 { format!("{}", 10_f64.powf(*y)) } else { String::new() };
    let mut chart = axes(area, "Training loss, logarithmic", epochs, scale, &label)?;
    chart
        .draw_series(LineSeries::new(steps, PALE_BLUE.stroke_width(1)))?
        .label("each step")
        .legend(key(PALE_BLUE));
    curve(&mut chart, means.collect(), BLUE)?.label("mean of each epoch").legend(key(BLUE));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .margin(12)
        .legend_area_size(40)
        .label_font(font(21))
        .background_style(WHITE)
        .draw()?;
    Ok(())
}

/// The decimal logarithm of a loss, as far as it is drawn.
fn decades(loss: f64) -> f64 {
    loss.max(1e-6).log10()
}

fn draw_accuracies(area: &Area, history: &History) -> Drawn {
    let points = history.accuracies.iter().enumerate();
    let points: Vec<_> = points.map(|(epoch, &accuracy)| ((epoch + 1) as f64, accuracy)).collect();
    let lowest = history.accuracies.iter().fold(95.0_f64, |lowest, &accuracy| lowest.min(accuracy));
    let floor = (lowest / 5.0 - 0.2).floor() * 5.0;

    let scale = floor.max(0.0)..100.0;
    let mut chart = axes(area, "Test accuracy in percent", points.len(), scale, &|y| format!("{y:.0}"))?;
    curve(&mut chart, points.clone(), GREEN)?;
    if let Some(&(x, y)) = points.last() {
        let style = bold(22).color(&GREEN).pos(Pos::new(HPos::Right, VPos::Top));
        chart.draw_series([Text::new(format!("{y:.2} %"), (x, y - 0.03 * (100.0 - floor)), style)])?;
    }
    Ok(())
}

fn draw_digits(area: &Area, worst: &[Verdict]) -> Drawn {
    text(area, "Worst-classified test digits", (MARGIN, 0), bold(26).color(&INK), HPos::Left)?;
    let (side, top) = (SIDE as i32 * ZOOM, 48);
    let pitch = (WIDTH as i32 - 2 * MARGIN - side) / (WORST as i32 - 1);
    for (place, verdict) in worst.iter().take(WORST).enumerate() {
        let left = MARGIN + place as i32 * pitch;
        let frame = [(left - 1, top - 1), (left + side, top + side)];
        area.draw(&Rectangle::new(frame, GRID.stroke_width(1)))?;
        page::digit(area, verdict.image, (left, top), ZOOM)?;
        let (middle, below) = (left + side / 2, top + side + 8);
        let color = if verdict.predicted == verdict.label { GREEN } else { RED };
        let (read, is) = (format!("read as {}", verdict.predicted), format!("is a {}", verdict.label));
        text(area, &read, (middle, below), bold(22).color(&color), HPos::Center)?;
        text(area, &is, (middle, below + 26), font(22).color(&GREY), HPos::Center)?;
    }
    Ok(())
}

/// Two axes over `0..=epochs` and `y`, with a caption above.
fn axes<'a, 'b>(
    area: &'a Area<'b>,
    caption: &str,
    epochs: usize,
    y: Range<f64>,
    y_label: &dyn Fn(&f64) -> String,
) -> Result<Chart<'a, 'b>, Box<dyn Error>> {
    let mut chart = ChartBuilder::on(area)
        .caption(caption, bold(26).color(&INK))
        .margin_left(MARGIN - 24)
        .margin_right(MARGIN)
        .margin_bottom(24)
        .x_label_area_size(54)
        .y_label_area_size(76)
        .build_cartesian_2d(0.0..epochs as f64 * 1.02, y)?;
    // A label that is no whole number of epochs is left out.
    let whole = |x: &f64| if x.fract() == 0.0 { format!("{x:.0}") } else { String::new() };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(GREY)
        .label_style(font(20).color(&GREY))
        .x_desc("epoch")
        .axis_desc_style(font(21).color(&GREY))
        .x_labels(epochs.clamp(2, 12))
        .y_labels(7)
        .x_label_formatter(&whole)
        .y_label_formatter(&y_label)
        .draw()?;
    Ok(chart)
}

/// Draws a line through `points`, and a dot on each while they are few.
fn curve<'c, 'a, 'b>(
    chart: &'c mut Chart<'a, 'b>,
    points: Vec<(f64, f64)>,
    color: RGBColor,
) -> Result<&'c mut SeriesAnno<'a, BitMapBackend<'b>>, Box<dyn Error>> {
    let dot = if points.len() <= 40 { 4 } else { 0 };
    Ok(chart.draw_series(LineSeries::new(points, color.filled().stroke_width(3)).point_size(dot))?)
}

/// A dash of `color` for the legend.
fn key(color: RGBColor) -> impl Fn((i32, i32)) -> Rectangle<(i32, i32)> {
    move |(x, y)| Rectangle::new([(x + 2, y - 2), (x + 30, y + 2)], color.filled())
}

fn font(size: u32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&INK)
}
