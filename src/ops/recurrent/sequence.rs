//! An LSTM over a sequence as one op.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::gemm::Matrix;
use crate::kernels::recurrent::{self as kernels, Sequence, SequenceGradients};
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use crate::ops::real::{check_dtype, for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::ops::{apply_many, record};
use crate::tensor::{Shape, Tensor, checked_size, take};

use super::lstm::Step;
use super::{elements, expect_shape, matrix, plus, ready, times_transposed, transposed_times};

const NAME: &str = "lstm_sequence";

/// An LSTM over a sequence: at each step `[i, f, g, o] = x[t] w_i + y[t - 1] w_h + b`, then [`LSTMCell`](super::LSTMCell).
///
/// Inputs: `x [steps, batch, m]`, the state before the first step `h` and `c [batch, hidden]`, `w_i [m, 4 hidden]`,
/// `w_h [hidden, 4 hidden]` and `b [4 hidden]`. Outputs of each step: `y` and `cell [steps, batch, hidden]`, and the gates
/// after their functions, `[steps, batch, 4 hidden]`. As these are outputs, the gradient is a formula of what tapes know, and
/// has gradients itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LSTMSequence;

/// The sizes that the inputs agree on, and the number of inputs of a step.
fn sizes(
    x: &Tensor,
    h: &Tensor,
    c: &Tensor,
    w_i: &Tensor,
    w_h: &Tensor,
    b: &Tensor,
) -> Result<(Sequence, usize)> {
    let (steps, batch, m) = match x.shape().dims() {
        &[steps, batch, m] if steps > 0 => (steps, batch, m),
        _ => {
            let expected = "rank 3 and at least one step: [steps, batch, input_size]";
            return Err(Error::shape(NAME, "x", x.shape(), expected));
        }
    };
    let hidden = w_h.shape().first().copied().unwrap_or(0);
    expect_shape(NAME, "w_h", w_h, &[hidden, 4 * hidden])?;
    expect_shape(NAME, "w_i", w_i, &[m, 4 * hidden])?;
    expect_shape(NAME, "b", b, &[4 * hidden])?;
    expect_shape(NAME, "the hidden state", h, &[batch, hidden])?;
    expect_shape(NAME, "the cell state", c, &[batch, hidden])?;
    for (what, other) in
        [("the hidden state", h), ("the cell state", c), ("w_i", w_i), ("w_h", w_h), ("b", b)]
    {
        check_dtype(NAME, what, other, ("x", x))?;
    }
    Ok((Sequence { steps, batch, hidden }, m))
}

impl Op for LSTMSequence {
    fn name(&self) -> &'static str {
        NAME
    }

    fn saves(&self, _: Mask) -> Saves {
        let inputs = [0, 1, 2, 3, 4].into_iter().fold(Mask::NONE, |kept, i| kept.and(Mask::only(i)));
        Saves { inputs, outputs: Mask::ALL }
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, h, c) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
        let (w_i, w_h, b) = (inputs.get(3)?, inputs.get(4)?, inputs.get(5)?);
        let real = real_dtype(NAME, "x", x)?;
        let (size, m) = sizes(x, h, c, w_i, w_h, b)?;
        let Sequence { steps, batch, hidden } = size;
        let (of_gates, of_cells) =
            (Shape::from([steps, batch, 4 * hidden]), Shape::from([steps, batch, hidden]));
        let many = checked_size(NAME, &of_gates, x.dtype())?;
        let flat = ready(x, real)?;
        let (h, c, b) = (ready(h, real)?, ready(c, real)?, ready(b, real)?);
        let (w_i, w_h) = (w_i.converted(real)?, w_h.converted(real)?);
        let dtype = x.dtype();
        let outputs = for_real!(real, T => {
            let (mut gates, mut cells, mut ys) = (take::<T>(many), take::<T>(many / 4), take::<T>(many / 4));
            let rows = Matrix::row_major(elements::<T>(&flat)?, steps * batch, m);
            let weights = (matrix(&w_i)?, matrix(&w_h)?, elements(&b)?);
            let state = (elements(&h)?, elements(&c)?);
            kernels::lstm_sequence(size, rows, weights, state, &mut gates, &mut cells, &mut ys);
            vec![
                Tensor::from_taken(ys, of_cells.clone()).converted(dtype)?,
                Tensor::from_taken(cells, of_cells).converted(dtype)?,
                Tensor::from_taken(gates, of_gates).converted(dtype)?,
            ]
        });
        Ok(Computed::many(outputs))
    }

    fn multiply_adds(&self, inputs: &[Shape], outputs: &[Shape]) -> u64 {
        match (inputs, outputs) {
            ([_, _, _, w_i, w_h, _], [y, _, _]) if w_i.rank() == 2 && w_h.rank() == 2 => {
                4 * (y.size() as u64).saturating_mul((w_i[0] + w_h[0]) as u64)
            }
            _ => 0,
        }
    }

    /// From the last step to the first, as [`LSTMCell`](super::LSTMCell) has it, for `dgates`: `dgates[t] w_h^T` reaches
    /// `y[t - 1]`. Then `dx = dgates w_i^T`, `dw_i = x^T dgates`, `dw_h = y[t - 1]^T dgates[t]` and `db = sum(dgates)` over
    /// all steps and rows.
    fn gradient(&self, saved: &Saved, d: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let [dy, dcells, dgates] = d else { return Ok(vec![None; 6]) };
        if dy.is_none() && dcells.is_none() && dgates.is_none() {
            return Ok(vec![None; 6]);
        }
        let run = Run {
            c: saved.input(2)?,
            w_h: saved.input(4)?,
            cells: saved.output_at(1)?,
            gates: saved.output_at(2)?,
        };
        let [dgates, dh, dc] = if record::is_recording() || dgates.is_some() {
            run.plain_gradients(dy.as_ref(), dcells.as_ref(), dgates.as_ref())?
        } else {
            run.fused_gradients(dy.as_ref(), dcells.as_ref())?
        };
        let (x, h, w_i, ys) = (saved.input(0)?, saved.input(1)?, saved.input(3)?, saved.output_at(0)?);
        let (steps, rows) = (x.shape()[0], x.shape()[0] * x.shape()[1]);
        let flat = |x: &Tensor| x.reshape([x.shape()[0] * x.shape()[1], x.shape()[2]]);
        let all = flat(&dgates)?;
        let mut gradients = vec![None; 6];
        if needs.has(0) {
            gradients[0] = Some(times_transposed(&all, w_i)?.reshape(x.shape().clone())?);
        }
        if needs.has(3) {
            gradients[3] = Some(transposed_times(&flat(x)?, &all)?);
        }
        if needs.has(4) {
            let first = transposed_times(h, &all.narrow(0, 0, rows / steps)?)?;
            let rest = (steps > 1).then(|| {
                let last = flat(&ys.narrow(0, 0, steps - 1)?)?;
                transposed_times(&last, &all.narrow(0, rows / steps, rows - rows / steps)?)
            });
            gradients[4] = plus(Some(first), rest.transpose()?)?;
        }
        if needs.has(5) {
            gradients[5] = Some(all.sum_axes(0, false)?);
        }
        gradients[1] = needs.has(1).then_some(dh);
        gradients[2] = needs.has(2).then_some(dc);
        Ok(gradients.into_iter().map(|d| d.map(Gradient::Dense)).collect())
    }
}

/// What is known of the steps.
struct Run<'a> {
    c: &'a Tensor,
    w_h: &'a Tensor,
    cells: &'a Tensor,
    gates: &'a Tensor,
}

impl Run<'_> {
    /// Gradients of the arguments of the gates at all steps, and of the state before the first.
    fn plain_gradients(
        &self,
        dys: Option<&Tensor>,
        dcells: Option<&Tensor>,
        dgates: Option<&Tensor>,
    ) -> Result<[Tensor; 3]> {
        let (cells, gates) = (self.cells.unstack(0)?, self.gates.unstack(0)?);
        let parts = |d: Option<&Tensor>| -> Result<Vec<Option<Tensor>>> {
            match d {
                Some(d) => Ok(d.unstack(0)?.into_iter().map(Some).collect()),
                None => Ok(vec![None; cells.len()]),
            }
        };
        let (dys, dcells, dgates) = (parts(dys)?, parts(dcells)?, parts(dgates)?);
        let (mut dh, mut dc) = (None, None);
        let mut list = Vec::with_capacity(cells.len());
        for t in (0..cells.len()).rev() {
            let before = if t == 0 { self.c } else { &cells[t - 1] };
            let step = Step { before, cell: &cells[t], gates: &gates[t] };
            let (dy, dcell) = (plus(dys[t].clone(), dh)?, plus(dcells[t].clone(), dc)?);
            let (dsums, dbefore) = step.plain_gradients(dy, dcell, dgates[t].clone())?;
            dh = Some(times_transposed(&dsums, self.w_h)?);
            dc = Some(dbefore);
            list.push(dsums);
        }
        let in_order: Vec<&Tensor> = list.iter().rev().collect();
        let zeros = || Tensor::zeros(self.c.shape().clone(), self.c.dtype());
        Ok([Tensor::stack(&in_order, 0)?, dh.map_or_else(zeros, Ok)?, dc.map_or_else(zeros, Ok)?])
    }

    /// The same in one kernel; not recorded.
    fn fused_gradients(&self, dys: Option<&Tensor>, dcells: Option<&Tensor>) -> Result<[Tensor; 3]> {
        let (dtype, real) = (self.cells.dtype(), real_dtype(NAME, "the cells", self.cells)?);
        let wide = |x: Option<&Tensor>| x.map(|x| ready(x, real)).transpose();
        let (dys, dcells) = (wide(dys)?, wide(dcells)?);
        let (c, cells, gates) = (ready(self.c, real)?, ready(self.cells, real)?, ready(self.gates, real)?);
        let w_h = self.w_h.converted(real)?;
        let size = Sequence { steps: cells.dim(0)?, batch: cells.dim(1)?, hidden: cells.dim(2)? };
        let list = for_real!(real, T => {
            let mut dgates = take::<T>(gates.size());
            let (mut dh, mut dc) = (take::<T>(c.size()), take::<T>(c.size()));
            let forward = SequenceGradients {
                size,
                w: matrix(&w_h)?,
                c: elements(&c)?,
                gates: elements(&gates)?,
                cells: elements(&cells)?,
                dys: dys.as_ref().map(elements).transpose()?,
                dcells: dcells.as_ref().map(elements).transpose()?,
            };
            kernels::lstm_sequence_gradients(forward, &mut dgates, &mut dh, &mut dc);
            let state = |v: Vec<T>| Tensor::from_taken(v, c.shape().clone());
            [Tensor::from_taken(dgates, gates.shape().clone()), state(dh), state(dc)]
        });
        let [dgates, dh, dc] = list;
        Ok([dgates.converted(dtype)?, dh.converted(dtype)?, dc.converted(dtype)?])
    }
}

impl Listed for LSTMSequence {
    fn samples() -> Vec<Sample> {
        let sample = |steps: usize, batch: usize, m: usize, n: usize| {
            let shapes = [
                vec![steps, batch, m],
                vec![batch, n],
                vec![batch, n],
                vec![m, 4 * n],
                vec![n, 4 * n],
                vec![4 * n],
            ];
            Sample::new(LSTMSequence, shapes.map(|shape| SampleInput::float(&shape)))
        };
        vec![sample(3, 2, 2, 2), sample(1, 1, 1, 3), sample(1, 1, 1, 1), sample(2, 0, 2, 2)]
    }
}

/// Outputs and cells of all steps of an LSTM.
///
/// # Errors
/// The shapes do not fit, or the dtypes differ or are not floats.
pub(crate) fn lstm_sequence(
    x: &Tensor,
    (h, c): (&Tensor, &Tensor),
    (w_i, w_h, b): (&Tensor, &Tensor, &Tensor),
) -> Result<(Tensor, Tensor)> {
    let mut list = apply_many(LSTMSequence, [x, h, c, w_i, w_h, b])?.into_iter();
    match (list.next(), list.next()) {
        (Some(y), Some(cells)) => Ok((y, cells)),
        _ => Err(Error::usage(NAME, "an output is missing", "report this as a bug")),
    }
}
