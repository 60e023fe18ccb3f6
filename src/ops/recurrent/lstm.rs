//! The gates of an LSTM as one op.

use serde::{Deserialize, Serialize};

use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernels::gemm::Real;
use crate::kernels::recurrent::{self as kernels, CellGradients};
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Input, Inputs, Mask, Op, Saved, Saves};
use crate::ops::real::{check_dtype, check_shape, for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::ops::{apply_many, record};
use crate::tensor::{Tensor, take};

use super::{columns, elements, plus, ready, through_sigmoid, through_tanh};

const NAME: &str = "lstm_cell";

/// `cell = f before + i g` and `y = o tanh(cell)`, with the gates `i, f, o = sigmoid(..)` and `g = tanh(..)` (Hochreiter &
/// Schmidhuber 1997; Gers et al. 2000).
///
/// Inputs: the arguments of the gates `[.., 4 hidden]` in the order i, f, g, o, and `before [.., hidden]`. Outputs `y`,
/// `cell` and the gates. As the gates are an output, the gradient is a formula of what tapes know, and has gradients itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LSTMCell;

impl Op for LSTMCell {
    fn name(&self) -> &'static str {
        NAME
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves { inputs: Mask::only(1), outputs: Mask::only(1).and(Mask::only(2)) }
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (sums, before) = (inputs.take(0)?, inputs.get(1)?);
        let real = real_dtype(NAME, "the gates", &sums)?;
        let dtype = sums.dtype();
        check_dtype(NAME, "the cell", before, ("the gates", &sums))?;
        let mut shape = before.shape().clone();
        let Some(hidden) = shape.last().copied() else {
            return Err(Error::shape(NAME, "the cell", before.shape(), "rank 1 or more"));
        };
        let last = shape.rank() - 1;
        shape.dims_mut()[last] = 4 * hidden;
        if *sums.shape() != shape {
            let expected = format!("{shape}, four times the cell's last dim");
            return Err(Error::shape(NAME, "the gates", sums.shape(), expected));
        }
        let [y, cell, gates] =
            for_real!(real, T => compute::<T>(sums.converted(real)?, &ready(before, real)?, hidden)?);
        Ok(Computed::many(vec![y.converted(dtype)?, cell.converted(dtype)?, gates.converted(dtype)?]))
    }

    fn gradient(&self, saved: &Saved, d: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let step = Step { before: saved.input(1)?, cell: saved.output_at(1)?, gates: saved.output_at(2)? };
        let [dy, dcell, dgates] = d else { return Ok(vec![None, None]) };
        if dy.is_none() && dcell.is_none() && dgates.is_none() {
            return Ok(vec![None, None]);
        }
        let (dsums, dbefore) = if record::is_recording() || dgates.is_some() {
            step.plain_gradients(dy.clone(), dcell.clone(), dgates.clone())?
        } else {
            step.fused_gradients(dy.as_ref(), dcell.as_ref())?
        };
        let wanted = |i: usize, d: Tensor| needs.has(i).then_some(Gradient::Dense(d));
        Ok(vec![wanted(0, dsums), wanted(1, dbefore)])
    }
}

fn compute<T: Real + Element>(mut gates: Tensor, before: &Tensor, hidden: usize) -> Result<[Tensor; 3]> {
    let (mut cell, mut y) = (take::<T>(before.size()), take::<T>(before.size()));
    kernels::lstm_cell(hidden, gates.make_mut::<T>()?, elements(before)?, &mut cell, &mut y);
    let one = |v: Vec<T>| Tensor::from_taken(v, before.shape().clone());
    Ok([one(y), one(cell), gates])
}

/// What one step knows.
pub(super) struct Step<'a> {
    pub(super) before: &'a Tensor,
    pub(super) cell: &'a Tensor,
    pub(super) gates: &'a Tensor,
}

impl Step<'_> {
    /// Gradients of the arguments of the gates and of `before`, from those of `y`, of `cell` and of the gates. With
    /// `t = tanh(cell)` and `d = dcell + dy o (1 - t^2)` the gates receive `d g`, `d before`, `d i` and `dy t`, and `before`
    /// receives `d f`.
    pub(super) fn plain_gradients(
        &self,
        dy: Option<Tensor>,
        dcell: Option<Tensor>,
        dgates: Option<Tensor>,
    ) -> Result<(Tensor, Tensor)> {
        let zeros = || Tensor::zeros(self.cell.shape().clone(), self.cell.dtype());
        let [i, f, g, o] = &columns(self.gates)?;
        let dy = dy.map_or_else(zeros, Ok)?;
        let t = self.cell.tanh()?;
        let d = through_tanh(&(&dy * o)?, &t)?;
        let d = plus(dcell, Some(d))?.map_or_else(zeros, Ok)?;
        let mut parts = [(&d * g)?, (&d * self.before)?, (&d * i)?, (&dy * &t)?];
        if let Some(dgates) = dgates {
            for (part, more) in parts.iter_mut().zip(columns::<4>(&dgates)?) {
                *part = (&*part + more)?;
            }
        }
        let dsums = [
            through_sigmoid(&parts[0], i)?,
            through_sigmoid(&parts[1], f)?,
            through_tanh(&parts[2], g)?,
            through_sigmoid(&parts[3], o)?,
        ];
        Ok((Tensor::concat(&dsums.each_ref(), -1)?, (d * f)?))
    }

    /// The same in one pass; not recorded.
    fn fused_gradients(&self, dy: Option<&Tensor>, dcell: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let (dtype, real) = (self.cell.dtype(), real_dtype(NAME, "the cell", self.cell)?);
        for d in [dy, dcell].into_iter().flatten() {
            check_shape(NAME, "a gradient", d, ("the cell", self.cell))?;
        }
        let wide = |x: Option<&Tensor>| x.map(|x| ready(x, real)).transpose();
        let (dy, dcell) = (wide(dy)?, wide(dcell)?);
        let hidden = self.cell.dim(-1)?;
        let (gates, before, cell) =
            (ready(self.gates, real)?, ready(self.before, real)?, ready(self.cell, real)?);
        let (dsums, dbefore) = for_real!(real, T => {
            let (mut dsums, mut dbefore) = (take::<T>(gates.size()), take::<T>(before.size()));
            let forward = CellGradients {
                gates: elements(&gates)?,
                before: elements(&before)?,
                cell: elements(&cell)?,
                dy: dy.as_ref().map(elements).transpose()?,
                dcell: dcell.as_ref().map(elements).transpose()?,
            };
            kernels::lstm_cell_gradients(hidden, forward, &mut dsums, &mut dbefore);
            (Tensor::from_taken(dsums, gates.shape().clone()), Tensor::from_taken(dbefore, before.shape().clone()))
        });
        Ok((dsums.converted(dtype)?, dbefore.converted(dtype)?))
    }
}

impl Listed for LSTMCell {
    fn samples() -> Vec<Sample> {
        let sample = |gates: &[usize], cell: &[usize]| {
            Sample::new(LSTMCell, [SampleInput::float(gates), SampleInput::float(cell)])
        };
        vec![
            sample(&[2, 12], &[2, 3]),
            sample(&[2, 2, 4], &[2, 2, 1]),
            sample(&[1, 4], &[1, 1]),
            sample(&[0, 8], &[0, 2]),
        ]
    }
}

/// The output and the next cell of an LSTM, from the arguments of its gates, `[.., 4 hidden]`, and the cell before.
///
/// # Errors
/// The shapes do not fit, or the dtypes differ or are not floats.
pub(crate) fn lstm_cell(sums: Tensor, before: &Tensor) -> Result<(Tensor, Tensor)> {
    let mut list = apply_many(LSTMCell, [Input::Own(sums), Input::Ref(before)])?.into_iter();
    match (list.next(), list.next()) {
        (Some(y), Some(cell)) => Ok((y, cell)),
        _ => Err(Error::usage(NAME, "an output is missing", "report this as a bug")),
    }
}
