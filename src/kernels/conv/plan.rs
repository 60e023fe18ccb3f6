//! What a convolution reads for each of its results, axis by axis.

use super::ConvGeometry;
use crate::kernels::gemm::Real;
use crate::kernels::pack::{fetch, pack_panel};
use crate::kernels::parallel::for_each_chunk_mut;

/// `y[y_first + y_step * q] = sum over t of x[x_step * q + taps[t]] * w[t]` for `q < count`, along one axis.
#[derive(Debug)]
pub(super) struct Axis {
    pub x: usize,
    pub x_step: usize,
    pub y: usize,
    pub y_first: usize,
    pub y_step: usize,
    pub count: usize,
    pub taps: Vec<isize>,
}

impl Axis {
    /// The first and the last position of `x` that the results from `q` to `q + n - 1` read; they may lie outside.
    pub fn reach(&self, q: usize, n: usize) -> (isize, isize) {
        let (low, high) = self.ends();
        ((self.x_step * q) as isize + low, (self.x_step * (q + n - 1)) as isize + high)
    }

    /// The lowest and the highest tap.
    pub fn ends(&self) -> (isize, isize) {
        let low = self.taps.iter().copied().min().unwrap_or(0);
        (low, self.taps.iter().copied().max().unwrap_or(0))
    }

    /// Positions of `x` under `n` neighbouring results.
    fn span(&self, n: usize) -> usize {
        let (first, last) = self.reach(0, n);
        (last - first) as usize + 1
    }
}

/// A convolution as three axes.
#[derive(Debug)]
pub(super) struct Plan {
    pub batch: usize,
    pub x_channels: usize,
    pub y_channels: usize,
    pub axes: [Axis; 3],
}

impl Plan {
    pub fn forward(g: &ConvGeometry) -> Self {
        let axis = |d: usize| Axis {
            x: g.input[d],
            x_step: g.stride[d],
            y: g.output[d],
            y_first: 0,
            y_step: 1,
            count: g.output[d],
            taps: (0..g.kernel[d]).map(|k| (k * g.rate[d]) as isize - g.before[d]).collect(),
        };
        Self {
            batch: g.batch,
            x_channels: g.in_channels,
            y_channels: g.out_channels,
            axes: inner_last(g, [0, 1, 2]).map(axis),
        }
    }

    /// The gradient of the inputs `phase`, `phase + stride`, `phase + 2 stride`, …, and the taps of the filter it uses,
    /// axis by axis, in its order.
    ///
    /// Input `phase + stride * q` meets output `o` under tap `k` if `o = q + (phase + before - k * rate) / stride`, and
    /// only if the division leaves no rest.
    pub fn backward(g: &ConvGeometry, phase: [usize; 3]) -> (Self, [Vec<usize>; 3]) {
        let shift = |d: usize, k: usize| phase[d] as isize + g.before[d] - (k * g.rate[d]) as isize;
        let taps = [0, 1, 2].map(|d| {
            let reaches = |&k: &usize| shift(d, k).rem_euclid(g.stride[d] as isize) == 0;
            (0..g.kernel[d]).rev().filter(reaches).collect::<Vec<_>>()
        });
        let axis = |d: usize| Axis {
            x: g.output[d],
            x_step: 1,
            y: g.input[d],
            y_first: phase[d],
            y_step: g.stride[d],
            count: g.input[d].saturating_sub(phase[d]).div_ceil(g.stride[d]),
            taps: taps[d].iter().map(|&k| shift(d, k).div_euclid(g.stride[d] as isize)).collect(),
        };
        let plan = Self {
            batch: g.batch,
            x_channels: g.out_channels,
            y_channels: g.in_channels,
            axes: inner_last(g, [0, 1, 2]).map(axis),
        };
        (plan, taps)
    }

    pub fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.taps.len()).product()
    }

    /// Multiplications for one position of `y`.
    pub fn work(&self) -> usize {
        self.taps() * self.x_channels * self.y_channels
    }

    /// Whether the taps along the last axis are neighbours, so that they and the channels form one run.
    pub fn runs_along_last_axis(&self) -> bool {
        self.axes[2].taps.windows(2).all(|pair| pair[1] == pair[0] + 1)
    }

    /// The places of the runs of `a` relative to the lowest tap, in the order of the filter, and the length of a run.
    pub fn segments(&self, strides: [isize; 3]) -> (Vec<isize>, usize) {
        let mut last: Vec<isize> = self.axes[2].taps.clone();
        let mut run = self.x_channels;
        if self.runs_along_last_axis() {
            run *= last.len();
            last.truncate(1);
        }
        let mut segments = Vec::with_capacity(self.taps());
        let low = [0, 1, 2].map(|d| self.axes[d].ends().0);
        for i in &self.axes[0].taps {
            for j in &self.axes[1].taps {
                for k in &last {
                    let at = [i - low[0], j - low[1], k - low[2]];
                    segments.push((0..3).map(|d| at[d] * strides[d]).sum());
                }
            }
        }
        (segments, run)
    }

    /// Sizes of the tiles into which the results are cut: as many as need at most `budget` elements of `x`, taken row by
    /// row, and at most `most` of them.
    pub fn tile(&self, budget: usize, most: usize) -> [usize; 3] {
        let mut tile = [1; 3];
        for d in [2, 1, 0] {
            let others: usize = (0..3).filter(|&e| e != d).map(|e| self.axes[e].span(tile[e])).product();
            let positions: usize = (0..3).filter(|&e| e != d).map(|e| tile[e]).product();
            let span = budget / (others * self.x_channels).max(1);
            let axis = &self.axes[d];
            let fits = (span.saturating_sub(axis.span(1)) / axis.x_step + 1).min(most / positions).max(1);
            tile[d] = axis.count.div_ceil(axis.count.div_ceil(fits).max(1)).max(1);
            if tile[d] < axis.count {
                break;
            }
        }
        tile
    }
}

/// The axes in their order, but those along which nothing happens first: the last axis is the one with long runs.
fn inner_last(g: &ConvGeometry, axes: [usize; 3]) -> [usize; 3] {
    let idle = |d: &usize| g.input[*d] == 1 && g.kernel[*d] == 1 && g.output[*d] == 1;
    let mut sorted = axes;
    sorted.sort_by_key(|d| !idle(d));
    sorted
}

/// `turned[t, co, ci] = w[taps[t], ci, co]` for the product of the taps of the three axes.
pub(super) fn turn_filter<T: Real>(g: &ConvGeometry, taps: &[Vec<usize>; 3], w: &[T], turned: &mut [T]) {
    let (inputs, outputs) = (g.in_channels, g.out_channels);
    let size = inputs * outputs;
    let count = [taps[1].len() * taps[2].len(), taps[2].len()];
    let used = taps[0].len() * count[0] * size;
    let group = (1_usize << 16).div_ceil(size.max(1));
    for_each_chunk_mut(&mut turned[..used], group * size, |chunk, to| {
        for (n, to) in to.chunks_exact_mut(size).enumerate() {
            let n = chunk * group + n;
            let (i, j, k) = (taps[0][n / count[0]], taps[1][n % count[0] / count[1]], taps[2][n % count[1]]);
            let tap = (i * g.kernel[1] + j) * g.kernel[2] + k;
            let from = &w[tap * size..][..size];
            // SAFETY: `from` holds the `inputs` x `outputs` numbers of the tap.
            unsafe { pack_panel(from.as_ptr(), (outputs, inputs), (1, outputs as isize), to, inputs) };
        }
    });
}

/// A box of results: the first along each axis, and how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile {
    pub item: usize,
    pub first: [usize; 3],
    pub count: [usize; 3],
}

impl Tile {
    /// Tiles in a whole convolution.
    pub fn number(plan: &Plan, size: [usize; 3]) -> usize {
        plan.batch * (0..3).map(|d| plan.axes[d].count.div_ceil(size[d])).product::<usize>()
    }

    /// The tile with number `index`.
    pub fn new(plan: &Plan, size: [usize; 3], mut index: usize) -> Self {
        let (mut first, mut count) = ([0; 3], [0; 3]);
        for d in [2, 1, 0] {
            let tiles = plan.axes[d].count.div_ceil(size[d]);
            first[d] = index % tiles * size[d];
            count[d] = size[d].min(plan.axes[d].count - first[d]);
            index /= tiles;
        }
        Self { item: index, first, count }
    }

    /// Results in the tile.
    pub fn positions(&self) -> usize {
        self.count.iter().product()
    }

    /// Writes one offset for each result, row by row: its distance from the first in a space with these strides.
    pub fn offsets(&self, strides: [isize; 3], offsets: &mut [isize]) {
        let mut next = offsets.iter_mut();
        for i in 0..self.count[0] as isize {
            for j in 0..self.count[1] as isize {
                let row = i * strides[0] + j * strides[1];
                for (k, offset) in next.by_ref().take(self.count[2]).enumerate() {
                    *offset = row + k as isize * strides[2];
                }
            }
        }
    }
}

/// The part of `x` that a tile reads.
pub(super) struct Window<T> {
    /// What the lowest tap of the first result reads.
    pub start: *const T,
    /// Distance between neighbours along each axis.
    pub strides: [isize; 3],
    /// Planes, rows, and elements of a row.
    lengths: [usize; 3],
    in_place: bool,
}

impl<T: Real> Window<T> {
    /// Elements that any tile of this size needs at most.
    pub fn size(plan: &Plan, tile: [usize; 3]) -> usize {
        (0..3).map(|d| plan.axes[d].span(tile[d])).product::<usize>() * plan.x_channels
    }

    /// The window in `x` itself, or in `copy` with zeros for what is outside of `x`.
    pub fn new(plan: &Plan, tile: &Tile, x: &[T], copy: &mut [T]) -> Self {
        let (channels, axes) = (plan.x_channels, &plan.axes);
        let reach = [0, 1, 2].map(|d| axes[d].reach(tile.first[d], tile.count[d]));
        let strides = |lengths: [usize; 3]| {
            [lengths[1] * lengths[2] * channels, lengths[2] * channels, channels].map(|n| n as isize)
        };
        let length = reach.map(|(first, last)| (last - first) as usize + 1);
        let lengths = [length[0], length[1], length[2] * channels];
        let size = [0, 1, 2].map(|d| axes[d].x);
        let x = &x[tile.item * size.iter().product::<usize>() * channels..];
        if (0..3).all(|d| reach[d].0 >= 0 && reach[d].1 < size[d] as isize) {
            let strides = strides(size);
            let offset: isize = (0..3).map(|d| reach[d].0 * strides[d]).sum();
            return Self { start: x.as_ptr().wrapping_offset(offset), strides, lengths, in_place: true };
        }
        // Of each row of the window, `left` elements lie before `x`, `inside` in it.
        let clip = |at: isize| at.clamp(0, size[2] as isize) as usize;
        let (from, to) = (clip(reach[2].0), clip(reach[2].1 + 1));
        let left = ((from as isize - reach[2].0) as usize).min(length[2]) * channels;
        let inside = (to - from) * channels;
        let mut rows = copy.chunks_exact_mut((length[2] * channels).max(1));
        for i in (reach[0].0..).take(length[0]) {
            for j in (reach[1].0..).take(length[1]) {
                let Some(row) = rows.next() else { break };
                let exists = (0..size[0] as isize).contains(&i) && (0..size[1] as isize).contains(&j);
                if !exists || inside == 0 {
                    row.fill(T::zero());
                    continue;
                }
                let at = ((i as usize * size[1] + j as usize) * size[2] + from) * channels;
                row[..left].fill(T::zero());
                row[left..left + inside].copy_from_slice(&x[at..at + inside]);
                row[left + inside..].fill(T::zero());
            }
        }
        Self { start: copy.as_ptr(), strides: strides(length), lengths, in_place: false }
    }

    /// Brings the window into the caches, unless it was copied just now.
    ///
    /// # Safety
    /// The slices given to `new` are still there.
    pub unsafe fn fetch(&self) {
        if self.in_place {
            for plane in 0..self.lengths[0] as isize {
                let start = self.start.wrapping_offset(plane * self.strides[0]);
                // SAFETY: the rows lie in `x`, as `new` has seen.
                unsafe { fetch(start, (self.lengths[1], self.lengths[2]), self.strides[1]) };
            }
        }
    }
}
