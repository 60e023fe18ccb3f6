//! An LSTM over a sequence as one op.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::gemm::{Matrix, Real, gemm};
use crate::kernels::math::Math;
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
            x: saved.input(0)?,
            h: saved.input(1)?,
            c: saved.input(2)?,
            w_i: saved.input(3)?,
            w_h: saved.input(4)?,
            ys: saved.output_at(0)?,
            cells: saved.output_at(1)?,
            gates: saved.output_at(2)?,
        };
        let list = if record::is_recording() || dgates.is_some() {
            run.plain_gradients(dy.as_ref(), dcells.as_ref(), dgates.as_ref(), needs)?
        } else {
            run.fused_gradients(dy.as_ref(), dcells.as_ref(), needs)?
        };
        Ok(list.into_iter().map(|d| d.map(Gradient::Dense)).collect())
    }
}

/// What is known of the steps.
struct Run<'a> {
    x: &'a Tensor,
    h: &'a Tensor,
    c: &'a Tensor,
    w_i: &'a Tensor,
    w_h: &'a Tensor,
    ys: &'a Tensor,
    cells: &'a Tensor,
    gates: &'a Tensor,
}

impl Run<'_> {
    /// Gradients of the inputs, made of tensor ops.
    fn plain_gradients(
        &self,
        dys: Option<&Tensor>,
        dcells: Option<&Tensor>,
        dgates: Option<&Tensor>,
        needs: Mask,
    ) -> Result<Vec<Option<Tensor>>> {
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
        let flat = |x: &Tensor| x.reshape([x.shape()[0] * x.shape()[1], x.shape()[2]]);
        let all = flat(&Tensor::stack(&in_order, 0)?)?;
        let mut gradients = vec![None, dh, dc, None, None, None];
        if needs.has(0) {
            gradients[0] = Some(times_transposed(&all, self.w_i)?.reshape(self.x.shape().clone())?);
        }
        if needs.has(3) {
            gradients[3] = Some(transposed_times(&flat(self.x)?, &all)?);
        }
        if needs.has(4) {
            let last = self.ys.narrow(0, 0, cells.len() - 1)?;
            let last = Tensor::concat(&[&self.h.expand_dims(0)?, &last], 0)?;
            gradients[4] = Some(transposed_times(&flat(&last)?, &all)?);
        }
        if needs.has(5) {
            gradients[5] = Some(all.sum_axes(0, false)?);
        }
        Ok(gradients)
    }

    /// The same in one kernel; not recorded.
    fn fused_gradients(
        &self,
        dys: Option<&Tensor>,
        dcells: Option<&Tensor>,
        needs: Mask,
    ) -> Result<Vec<Option<Tensor>>> {
        let (dtype, real) = (self.cells.dtype(), real_dtype(NAME, "the cells", self.cells)?);
        let wide = |x: Option<&Tensor>| x.map(|x| ready(x, real)).transpose();
        let (dys, dcells) = (wide(dys)?, wide(dcells)?);
        let (x, h, c) = (ready(self.x, real)?, ready(self.h, real)?, ready(self.c, real)?);
        let (ys, cells, gates) = (ready(self.ys, real)?, ready(self.cells, real)?, ready(self.gates, real)?);
        let (w_i, w_h) = (self.w_i.converted(real)?, self.w_h.converted(real)?);
        let size = Sequence { steps: cells.dim(0)?, batch: cells.dim(1)?, hidden: cells.dim(2)? };
        let list = for_real!(real, T => {
            let zeros = |input: usize, like: &Tensor| -> Result<Option<Tensor>> {
                needs.has(input).then(|| Tensor::zeros(like.shape().clone(), real)).transpose()
            };
            let mut dx = needs.has(0).then(|| take::<T>(x.size()));
            let (mut dw_i, mut dw_h) = (zeros(3, &w_i)?, zeros(4, &w_h)?);
            let mut db = needs.has(5).then(|| vec![0.0f64; gates.shape()[2]]);
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
            let weights = Products {
                size,
                inputs: x.dim(2)?,
                x: elements::<T>(&x)?,
                h: elements(&h)?,
                ys: elements(&ys)?,
                w_i: matrix(&w_i)?,
            };
            let mut to_w_i = dw_i.as_mut().map(|d| d.make_mut::<T>()).transpose()?;
            let mut to_w_h = dw_h.as_mut().map(|d| d.make_mut::<T>()).transpose()?;
            kernels::lstm_sequence_gradients(forward, &mut dh, &mut dc, |steps, dgates| {
                if let Some(dx) = &mut dx {
                    weights.inputs(steps.clone(), dgates, dx);
                }
                if let Some(dw_i) = &mut to_w_i {
                    weights.add_input_weights(steps.clone(), dgates, dw_i);
                }
                if let Some(dw_h) = &mut to_w_h {
                    weights.add_state_weights(steps, dgates, dw_h);
                }
                if let Some(db) = &mut db {
                    kernels::add_columns(dgates, db);
                }
            });
            let like = |v: Vec<T>, like: &Tensor| Some(Tensor::from_taken(v, like.shape().clone()));
            let narrow = |sums: Vec<f64>| sums.into_iter().map(<T as Math>::from_f64).collect::<Vec<T>>();
            let db = db.map(|sums| Tensor::from_vec(narrow(sums), [gates.shape()[2]])).transpose()?;
            vec![dx.and_then(|dx| like(dx, &x)), like(dh, &c), like(dc, &c), dw_i, dw_h, db]
        });
        list.into_iter().map(|d| d.map(|d| d.converted(dtype)).transpose()).collect()
    }
}

/// The products of the gradients of the gates' arguments, for some steps at a time.
struct Products<'a, T> {
    size: Sequence,
    /// Numbers of one input.
    inputs: usize,
    x: &'a [T],
    h: &'a [T],
    ys: &'a [T],
    w_i: Matrix<'a, T>,
}

impl<T: Real> Products<'_, T> {
    /// The rows of some steps.
    fn rows<'a>(&self, x: &'a [T], steps: Range<usize>, columns: usize) -> Matrix<'a, T> {
        let rows = steps.start * self.size.batch..steps.end * self.size.batch;
        Matrix::row_major(&x[rows.start * columns..rows.end * columns], rows.len(), columns)
    }

    /// `dx = dgates w_i^T`.
    fn inputs(&self, steps: Range<usize>, dgates: &[T], dx: &mut [T]) {
        let step = self.size.batch * self.inputs;
        let to = &mut dx[steps.start * step..steps.end * step];
        let dgates = self.rows(dgates, 0..steps.len(), 4 * self.size.hidden);
        gemm(dgates, self.w_i.transposed(), to, false, None);
    }

    /// `dw_i += x^T dgates`.
    fn add_input_weights(&self, steps: Range<usize>, dgates: &[T], dw_i: &mut [T]) {
        let x = self.rows(self.x, steps.clone(), self.inputs);
        gemm(x.transposed(), self.rows(dgates, 0..steps.len(), 4 * self.size.hidden), dw_i, true, None);
    }

    /// `dw_h += y^T dgates`, with the outputs `y` of the steps before.
    fn add_state_weights(&self, steps: Range<usize>, dgates: &[T], dw_h: &mut [T]) {
        let Sequence { batch, hidden, .. } = self.size;
        let first = usize::from(steps.start == 0);
        if first == 1 {
            let h = self.rows(self.h, 0..1, hidden);
            gemm(h.transposed(), self.rows(dgates, 0..1, 4 * hidden), dw_h, true, None);
        }
        let before = steps.start + first - 1..steps.end - 1;
        let rest = &dgates[first * batch * 4 * hidden..];
        let rest = self.rows(rest, 0..before.len(), 4 * hidden);
        gemm(self.rows(self.ys, before, hidden).transposed(), rest, dw_h, true, None);
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
