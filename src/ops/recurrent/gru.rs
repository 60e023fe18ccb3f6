//! A step of a GRU as one op.

use serde::{Deserialize, Serialize};

use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernels::gemm::{Real, gemm};
use crate::kernels::recurrent as kernels;
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use crate::ops::real::{check_dtype, for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::ops::{apply_many, record};
use crate::tensor::{Shape, Tensor, checked_size, take};

use super::{
    columns, elements, expect_shape, matrix, ready, through_sigmoid, through_tanh, times_transposed,
    transposed_times,
};

const NAME: &str = "gru_step";

/// `z, r = sigmoid(x w_i + h w_h + b)`, `a = tanh(x w_i + (r h) w_h + b)`, each with its columns, and `y = (1 - z) h + z a`
/// (Cho et al. 2014).
///
/// Inputs `x [batch, m]`, `h [batch, hidden]`, `w_i [m, 3 hidden]`, `w_h [hidden, 3 hidden]` and `b [3 hidden]`, columns in the
/// order z, r, a. Outputs `y` and the gates `[batch, 3 hidden]`. As these are an output, the gradient is a formula of what
/// tapes know, and has gradients itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct GRUStep;

/// The columns of `z` and `r`, and those of `a`.
fn parts(x: &Tensor, hidden: usize) -> Result<(Tensor, Tensor)> {
    Ok((x.narrow(-1, 0, 2 * hidden)?, x.narrow(-1, 2 * hidden, hidden)?))
}

impl Op for GRUStep {
    fn name(&self) -> &'static str {
        NAME
    }

    fn saves(&self, _: Mask) -> Saves {
        let inputs = [0, 1, 2, 3].into_iter().fold(Mask::NONE, |kept, i| kept.and(Mask::only(i)));
        Saves { inputs, outputs: Mask::only(1) }
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, h, b) = (inputs.get(0)?, inputs.get(1)?, inputs.get(4)?);
        let (w_i, w_h) = (inputs.get(2)?, inputs.get(3)?);
        let real = real_dtype(NAME, "x", x)?;
        for (what, other) in [("h", h), ("w_i", w_i), ("w_h", w_h), ("b", b)] {
            check_dtype(NAME, what, other, ("x", x))?;
        }
        let &[batch, m] = x.shape().dims() else {
            return Err(Error::shape(NAME, "x", x.shape(), "rank 2: [batch, input_size]"));
        };
        let hidden = w_h.shape().first().copied().unwrap_or(0);
        expect_shape(NAME, "w_h", w_h, &[hidden, 3 * hidden])?;
        expect_shape(NAME, "w_i", w_i, &[m, 3 * hidden])?;
        expect_shape(NAME, "b", b, &[3 * hidden])?;
        expect_shape(NAME, "h", h, &[batch, hidden])?;
        checked_size(NAME, &[batch, 3 * hidden].into(), x.dtype())?;
        let wide = |x: &Tensor| x.converted(real);
        let (x_wide, w_i, w_h) = (wide(x)?, wide(w_i)?, wide(w_h)?);
        let (h, b) = (ready(h, real)?, ready(b, real)?);
        let [y, gates] = for_real!(real, T => compute::<T>(&x_wide, &h, &w_i, &w_h, &b)?);
        Ok(Computed::many(vec![y.converted(x.dtype())?, gates.converted(x.dtype())?]))
    }

    fn multiply_adds(&self, inputs: &[Shape], outputs: &[Shape]) -> u64 {
        match (inputs, outputs) {
            ([x, h, ..], [_, gates]) => (gates.size() as u64).saturating_mul((x[1] + h[1]) as u64),
            _ => 0,
        }
    }

    fn gradient(&self, saved: &Saved, d: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let [dy, dgates] = d else { return Ok(vec![None; 5]) };
        if dy.is_none() && dgates.is_none() {
            return Ok(vec![None; 5]);
        }
        let step = Step { h: saved.input(1)?, w_h: saved.input(3)?, gates: saved.output_at(1)? };
        let Slopes { dsums, dh, reset } = match dy {
            Some(dy) if !record::is_recording() && dgates.is_none() => step.fused_gradients(dy)?,
            _ => step.plain_gradients(dy.as_ref(), dgates.as_ref())?,
        };
        let mut gradients = vec![None; 5];
        if needs.has(0) {
            gradients[0] = Some(times_transposed(&dsums, saved.input(2)?)?);
        }
        if needs.has(2) {
            gradients[2] = Some(transposed_times(saved.input(0)?, &dsums)?);
        }
        if needs.has(3) {
            let (dzr, da) = parts(&dsums, step.h.dim(-1)?)?;
            let both = [transposed_times(step.h, &dzr)?, transposed_times(&reset, &da)?];
            gradients[3] = Some(Tensor::concat(&both.each_ref(), -1)?);
        }
        if needs.has(4) {
            gradients[4] = Some(dsums.sum_axes(0, false)?);
        }
        gradients[1] = needs.has(1).then_some(dh);
        Ok(gradients.into_iter().map(|d| d.map(Gradient::Dense)).collect())
    }
}

fn compute<T: Real + Element>(
    x: &Tensor,
    h: &Tensor,
    w_i: &Tensor,
    w_h: &Tensor,
    b: &Tensor,
) -> Result<[Tensor; 2]> {
    let (batch, hidden) = (h.shape()[0], h.shape()[1]);
    let size = batch * hidden;
    let (w_zr, w_a) = parts(w_h, hidden)?;
    let mut gates = take::<T>(3 * size);
    gemm(matrix(x)?, matrix(w_i)?, &mut gates, false, Some(elements(b)?));
    let mut sums = take::<T>(2 * size);
    gemm(matrix(h)?, matrix(&w_zr)?, &mut sums, false, None);
    let mut reset = take::<T>(size);
    kernels::gru_gates(hidden, &mut gates, &sums, elements(h)?, &mut reset);
    let reset = Tensor::from_taken(reset, h.shape().clone());
    let mut sums = take::<T>(size);
    gemm(matrix(&reset)?, matrix(&w_a)?, &mut sums, false, None);
    let mut y = take::<T>(size);
    kernels::gru_candidate(hidden, &mut gates, &sums, elements(h)?, &mut y);
    Ok([Tensor::from_taken(y, h.shape().clone()), Tensor::from_taken(gates, [batch, 3 * hidden].into())])
}

/// What one step knows.
struct Step<'a> {
    h: &'a Tensor,
    w_h: &'a Tensor,
    gates: &'a Tensor,
}

/// What the gradients of a step are made of.
struct Slopes {
    /// Of the arguments of the gates.
    dsums: Tensor,
    dh: Tensor,
    /// `r h`.
    reset: Tensor,
}

impl Step<'_> {
    /// The gates receive `dz = dy (a - h)` and `da = dy z`; what reaches the argument of `a` goes on to `r h` through the
    /// weights, and from there as `dr` and to `h`. Beside that `h` receives `dy (1 - z)` and what comes through the weights
    /// of `z` and `r`.
    fn plain_gradients(&self, dy: Option<&Tensor>, dgates: Option<&Tensor>) -> Result<Slopes> {
        let h = self.h;
        let (w_zr, w_a) = parts(self.w_h, h.dim(-1)?)?;
        let [z, r, a] = &columns(self.gates)?;
        let zeros = || Tensor::zeros(h.shape().clone(), h.dtype());
        let dy = dy.map_or_else(zeros, |dy| Ok(dy.clone()))?;
        let more = match dgates {
            Some(dgates) => columns(dgates)?,
            None => [zeros()?, zeros()?, zeros()?],
        };
        let dz = through_sigmoid(&((&dy * (a - h)?)? + &more[0])?, z)?;
        let da = through_tanh(&((&dy * z)? + &more[2])?, a)?;
        let dreset = times_transposed(&da, &w_a)?;
        let dr = through_sigmoid(&((&dreset * h)? + &more[1])?, r)?;
        let dzr = Tensor::concat(&[&dz, &dr], -1)?;
        let dh = ((dy * (1.0 - z)?)? + (dreset * r)?)? + times_transposed(&dzr, &w_zr)?;
        Ok(Slopes { dsums: Tensor::concat(&[&dzr, &da], -1)?, dh: dh?, reset: (r * h)? })
    }

    /// The same in few passes; not recorded.
    fn fused_gradients(&self, dy: &Tensor) -> Result<Slopes> {
        let (dtype, real) = (self.h.dtype(), real_dtype(NAME, "h", self.h)?);
        let (h, dy, gates) = (ready(self.h, real)?, ready(dy, real)?, ready(self.gates, real)?);
        let w_h = self.w_h.converted(real)?;
        let (batch, hidden) = (h.shape()[0], h.shape()[1]);
        let (w_zr, w_a) = parts(&w_h, hidden)?;
        let slopes = for_real!(real, T => {
            let (gates, dy, h_list) = (elements::<T>(&gates)?, elements::<T>(&dy)?, elements::<T>(&h)?);
            let mut dsums = take::<T>(gates.len());
            kernels::gru_candidate_gradients(hidden, gates, h_list, dy, &mut dsums);
            let mut dsums = Tensor::from_taken(dsums, [batch, 3 * hidden].into());
            let mut dreset = take::<T>(h_list.len());
            let da = parts(&dsums, hidden)?.1;
            gemm(matrix(&da)?, matrix::<T>(&w_a)?.transposed(), &mut dreset, false, None);
            drop(da);
            let mut dh = take::<T>(h_list.len());
            let to = dsums.make_mut::<T>()?;
            kernels::gru_reset_gradients(hidden, gates, (h_list, dy), &mut dreset, to, &mut dh);
            let dzr = parts(&dsums, hidden)?.0;
            gemm(matrix(&dzr)?, matrix::<T>(&w_zr)?.transposed(), &mut dh, true, None);
            let like = |v: Vec<T>| Tensor::from_taken(v, h.shape().clone());
            Slopes { dh: like(dh), reset: like(dreset), dsums }
        });
        Ok(Slopes {
            dsums: slopes.dsums.converted(dtype)?,
            dh: slopes.dh.converted(dtype)?,
            reset: slopes.reset.converted(dtype)?,
        })
    }
}

impl Listed for GRUStep {
    fn samples() -> Vec<Sample> {
        let sample = |batch: usize, m: usize, n: usize| {
            let shapes = [vec![batch, m], vec![batch, n], vec![m, 3 * n], vec![n, 3 * n], vec![3 * n]];
            Sample::new(GRUStep, shapes.map(|shape| SampleInput::float(&shape)))
        };
        vec![sample(2, 3, 2), sample(1, 1, 3), sample(1, 1, 1), sample(0, 2, 2)]
    }
}

/// The output of a GRU, which is its next state.
///
/// # Errors
/// The shapes do not fit, or the dtypes differ or are not floats.
pub(crate) fn gru_step(x: &Tensor, h: &Tensor, (w_i, w_h, b): (&Tensor, &Tensor, &Tensor)) -> Result<Tensor> {
    Ok(apply_many(GRUStep, [x, h, w_i, w_h, b])?.remove(0))
}
