//! Ops from the list, inputs for them and their gradients.

use couplet::autodiff::check_gradients;
use couplet::ops::{
    Attributes, Computed, Gradient, Inputs, Mask, Op, OpEntry, Sample, SampleInput, Saved, Saves, apply_many,
    op_list,
};
use couplet::{DType, GradientTape, Result, Slice, Tensor};

/// A boxed op, so that one decoded by the list can be applied.
#[derive(Debug)]
pub struct Boxed(pub Box<dyn Op>);

impl Attributes for Boxed {
    fn attributes(&self) -> Result<Vec<u8>> {
        self.0.attributes()
    }
}

impl Op for Boxed {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn saves(&self, tracked: Mask) -> Saves {
        self.0.saves(tracked)
    }
    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        self.0.forward(inputs)
    }
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        self.0.gradient(saved, dy, needs)
    }
}

/// Uniform numbers in 0..1 (splitmix64).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// How an input lies in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Layout {
    Contiguous,
    Transposed,
    Sliced,
    Reversed,
    Broadcast,
}

pub const LAYOUTS: [Layout; 5] =
    [Layout::Contiguous, Layout::Transposed, Layout::Sliced, Layout::Reversed, Layout::Broadcast];

impl Layout {
    /// The shape that [`lay`](Layout::lay) turns into `shape`.
    pub fn base(self, shape: &[usize]) -> Vec<usize> {
        match self {
            Layout::Contiguous | Layout::Reversed => shape.to_vec(),
            Layout::Transposed => shape.iter().rev().copied().collect(),
            // One axis is enough to leave gaps everywhere.
            Layout::Sliced => {
                let last = shape.len().wrapping_sub(1);
                shape.iter().enumerate().map(|(i, &d)| if i == last { 2 * d + 1 } else { d }).collect()
            }
            Layout::Broadcast => {
                shape.iter().enumerate().map(|(i, &d)| if i == 0 { d.min(1) } else { d }).collect()
            }
        }
    }

    /// A view of `x` in this layout.
    pub fn lay(self, x: &Tensor, shape: &[usize]) -> Result<Tensor> {
        match self {
            Layout::Contiguous => Ok(x.clone()),
            Layout::Transposed => x.transpose(&(0..x.rank() as isize).rev().collect::<Vec<_>>()),
            Layout::Sliced => {
                let mut slices = vec![Slice::step(1); x.rank()];
                if let Some(last) = slices.last_mut() {
                    *last = Slice::from(1..).by(2);
                }
                x.slice(&slices)
            }
            Layout::Reversed => x.slice(&vec![Slice::step(-1); x.rank()]),
            Layout::Broadcast => x.broadcast_to(shape),
        }
    }
}

pub fn shape_of(input: &SampleInput) -> &[usize] {
    match input {
        SampleInput::Float { shape, .. } | SampleInput::Index { shape, .. } | SampleInput::Bool { shape } => {
            shape
        }
    }
}

/// A tensor of `shape` with values as `input` says.
pub fn draw(input: &SampleInput, shape: &[usize], numbers: &mut Numbers) -> Tensor {
    let size: usize = shape.iter().product();
    match input {
        SampleInput::Float { low, high, .. } => {
            let data: Vec<f64> = (0..size).map(|_| low + (high - low) * numbers.next()).collect();
            Tensor::from_vec(data, shape).unwrap()
        }
        SampleInput::Index { below, .. } => {
            let data: Vec<i64> = (0..size).map(|_| (numbers.next() * *below as f64) as i64).collect();
            Tensor::from_vec(data, shape).unwrap()
        }
        SampleInput::Bool { .. } => {
            let data: Vec<bool> = (0..size).map(|_| numbers.next() < 0.5).collect();
            Tensor::from_vec(data, shape).unwrap()
        }
    }
}

/// A copy of the sample's op, by way of its encoding.
pub fn copy(entry: &OpEntry, sample: &Sample) -> Result<Boxed> {
    (entry.decode)(&sample.op.attributes()?).map(Boxed)
}

/// Applies the op to `inputs`, which are laid out anew.
pub fn run(entry: &OpEntry, sample: &Sample, layout: Layout, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let laid = inputs.iter().zip(&sample.inputs).map(|(x, s)| layout.lay(x, shape_of(s)));
    apply_many(copy(entry, sample)?, laid.collect::<Result<Vec<_>>>()?)
}

/// All float tensors as one vector.
pub fn joined(tensors: &[Tensor]) -> Result<Tensor> {
    let flat: Vec<Tensor> = tensors
        .iter()
        .filter(|t| t.dtype().is_float())
        .map(|t| t.reshape([t.size()]))
        .collect::<Result<_>>()?;
    Tensor::concat(&flat.iter().collect::<Vec<_>>(), 0)
}

/// The gradients of the outputs, with unequal seeds, as one vector; zeros where there is none.
pub fn gradients(entry: &OpEntry, sample: &Sample, layout: Layout, inputs: &[Tensor]) -> Result<Tensor> {
    let tape = GradientTape::new();
    let sources: Vec<&Tensor> = inputs.iter().filter(|x| x.dtype().is_float()).collect();
    sources.iter().for_each(|x| tape.watch(*x));
    let y = joined(&run(entry, sample, layout, inputs)?)?;
    let seed = Tensor::linspace(0.7, 1.9, y.size(), y.dtype())?;
    let gradients = tape.gradient_with_seed(&y, &seed, &sources)?;
    let dense = |(g, x): (Option<Gradient>, &&Tensor)| {
        g.map_or_else(|| Tensor::zeros(x.shape().clone(), x.dtype()), |g| g.to_dense())
    };
    joined(&gradients.into_iter().zip(&sources).map(dense).collect::<Result<Vec<_>>>()?)
}

/// Calls `f` with every op, sample, layout and inputs for it.
pub fn for_each_case(mut f: impl FnMut(&str, &OpEntry, &Sample, Layout, &[Tensor])) {
    for entry in op_list() {
        for (number, sample) in (entry.samples)().iter().enumerate() {
            for layout in LAYOUTS {
                let mut numbers = Numbers(number as u64 + 1);
                let draw = |s| draw(s, &layout.base(shape_of(s)), &mut numbers);
                let inputs: Vec<Tensor> = sample.inputs.iter().map(draw).collect();
                let case = format!("{}, sample {number}, {layout:?}", entry.name);
                f(&case, &entry, sample, layout, &inputs);
            }
        }
    }
}

/// Whether any output can be differentiated.
pub fn has_float_output(entry: &OpEntry, sample: &Sample, layout: Layout, inputs: &[Tensor]) -> bool {
    let y = run(entry, sample, layout, inputs).unwrap_or_else(|e| panic!("{}: {e}", entry.name));
    y.iter().any(|y| y.dtype().is_float()) && inputs.iter().any(|x| x.dtype().is_float())
}

/// Checks the gradient of `f` along random directions that move all float inputs together: six evaluations, however many
/// elements there are.
pub fn check_along_directions(f: impl Fn(&[Tensor]) -> Result<Tensor>, inputs: &[Tensor]) -> Result<()> {
    const DIRECTIONS: usize = 3;
    let mut numbers = Numbers(99);
    let mut direction =
        |x: &Tensor| draw(&SampleInput::within(x.shape(), -1.0, 1.0), x.shape(), &mut numbers);
    let directions: Vec<Vec<Tensor>> =
        inputs.iter().map(|x| (0..DIRECTIONS).map(|_| direction(x)).collect()).collect();
    let moved = |along: &[Tensor]| {
        let moved = |(x, directions): (&Tensor, &Vec<Tensor>)| {
            let mut x = x.clone();
            if x.dtype().is_float() {
                for (i, direction) in directions.iter().enumerate() {
                    x = (x + (along[0].index(i as isize)? * direction))?;
                }
            }
            Ok(x)
        };
        f(&inputs.iter().zip(&directions).map(moved).collect::<Result<Vec<_>>>()?)
    };
    check_gradients(moved, &[&Tensor::zeros([DIRECTIONS], DType::F64)?], 1e-6)
}
