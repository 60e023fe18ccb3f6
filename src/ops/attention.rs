//! Scaled dot-product attention as one op.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::attention::{Attention as Kernel, Heads};
use crate::kernels::math::Math;
use crate::tensor::{Shape, Tensor, take};

use super::broadcast::broadcast_shape;
use super::gradient::Gradient;
use super::matmul::{Matmul, lead};
use super::op::{Computed, Input, Inputs, Mask, Op, Saved, Saves};
use super::real::{check_dtype, check_shape, for_real, real_dtype};
use super::registry::{Listed, Sample, SampleInput};
use super::softmax::softmax_gradient;
use super::{apply, apply_many, record};

const NAME: &str = "scaled_dot_product_attention";

/// `y = softmax(scale q k^T) v` over the last two axes, with scores left out where the mask is false.
///
/// Inputs `q`, `k`, `v` and perhaps a bool mask, whose leading axes broadcast.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Attention {
    causal: bool,
    scale: f64,
}

/// The inputs, broadcast over the leading axes.
struct Ready {
    lead: Shape,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Option<Tensor>,
}

impl Ready {
    fn new(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> Result<Ready> {
        let real = real_dtype(NAME, "q", q)?;
        for (what, x) in [("q", q), ("k", k), ("v", v)] {
            check_dtype(NAME, what, x, ("q", q))?;
            if x.rank() < 2 {
                let expected = "rank 2 or more: [.., sequence, channels]";
                return Err(Error::shape(NAME, what, x.shape(), expected));
            }
        }
        let last = |x: &Tensor, back: usize| x.shape()[x.rank() - back];
        if last(k, 1) != last(q, 1) {
            let expected = format!("{} channels, as q of shape {} has", last(q, 1), q.shape());
            return Err(Error::shape(NAME, "k", k.shape(), expected));
        }
        if last(v, 2) != last(k, 2) {
            let expected = format!("{} rows, as k of shape {} has", last(k, 2), k.shape());
            return Err(Error::shape(NAME, "v", v.shape(), expected));
        }
        let front = |x: &Tensor| Shape::from(&x.shape()[..x.rank() - 2]);
        let mut lead = broadcast_shape(NAME, &front(q), &broadcast_shape(NAME, &front(k), &front(v))?)?;
        let scores = [last(q, 2), last(k, 2)];
        if let Some(mask) = mask {
            if mask.dtype() != DType::Bool {
                return Err(Error::dtype(NAME, "the mask", mask.dtype(), "bool; numbers to add are a bias"));
            }
            let tail = Shape::from(&mask.shape()[mask.rank().saturating_sub(2)..]);
            if broadcast_shape(NAME, &tail, &Shape::from(scores)).ok() != Some(Shape::from(scores)) {
                let expected = format!("a shape that broadcasts to [.., {}, {}]", scores[0], scores[1]);
                return Err(Error::shape(NAME, "the mask", mask.shape(), expected));
            }
            let front = Shape::from(&mask.shape()[..mask.rank().saturating_sub(2)]);
            lead = broadcast_shape(NAME, &lead, &front)?;
        }
        let whole = |x: &Tensor, tail: [usize; 2]| x.expanded(&lead.iter().copied().chain(tail).collect());
        let wide = |x: &Tensor| whole(x, [last(x, 2), last(x, 1)])?.converted(real);
        let (q, k, v) = (wide(q)?, wide(k)?, wide(v)?);
        let mask = mask.map(|mask| whole(mask, scores)).transpose()?;
        crate::tensor::checked_size(NAME, &shape(&lead, [scores[0], last(&v, 1)]), q.dtype())?;
        Ok(Ready { lead, q, k, v, mask })
    }

    fn kernel<T: Element + Math>(&self, op: Attention) -> Result<Kernel<'_, T>> {
        let tail = |x: &Tensor, back: usize| x.shape()[x.rank() - back];
        Ok(Kernel {
            heads: self.lead.size(),
            queries: tail(&self.q, 2),
            keys: tail(&self.k, 2),
            depth: tail(&self.q, 1),
            width: tail(&self.v, 1),
            q: heads(&self.q, &self.lead)?,
            k: heads(&self.k, &self.lead)?,
            v: heads(&self.v, &self.lead)?,
            mask: self.mask.as_ref().map(|mask| heads(mask, &self.lead)).transpose()?,
            causal: op.causal,
            scale: <T as Math>::from_f64(op.scale),
        })
    }

    fn of_queries(&self, dim: usize) -> Shape {
        shape(&self.lead, [self.q.shape()[self.lead.rank()], dim])
    }
}

fn shape(lead: &Shape, tail: [usize; 2]) -> Shape {
    lead.iter().copied().chain(tail).collect()
}

/// The last two axes of `x` at each position of the leading ones.
fn heads<'a, T: Element>(x: &'a Tensor, batch: &Shape) -> Result<Heads<'a, T>> {
    let rank = x.rank();
    let at = |i: usize| if x.size() == 0 { 0 } else { (x.offset() as isize + lead(x, batch, i)) as usize };
    Ok(Heads {
        data: x.storage::<T>()?,
        offsets: (0..batch.size()).map(at).collect(),
        dims: (x.shape()[rank - 2], x.shape()[rank - 1]),
        strides: (x.strides()[rank - 2], x.strides()[rank - 1]),
    })
}

impl Attention {
    /// `y`, in the dtype to compute in, and the logarithm of the sum of the powers of each query.
    fn compute(self, ready: &Ready) -> Result<(Tensor, Tensor)> {
        let of_y = ready.of_queries(ready.v.shape()[ready.v.rank() - 1]);
        let rows = ready.of_queries(1).size();
        for_real!(ready.q.dtype(), T => {
            let (mut y, mut log_sums) = (take::<T>(of_y.size()), take::<T>(rows));
            ready.kernel::<T>(self)?.forward(&mut y, &mut log_sums);
            Ok((Tensor::from_taken(y, of_y), Tensor::from_taken(log_sums, Shape::from([rows]))))
        })
    }

    /// `dq`, `dk` and `dv`, given `y` and the logarithms if they are known; not recorded.
    fn gradients(
        self,
        inputs: [&Tensor; 3],
        mask: Option<&Tensor>,
        dy: &Tensor,
        known: Option<(&Tensor, &Tensor)>,
    ) -> Result<[Tensor; 3]> {
        let [q, k, v] = inputs;
        let ready = Ready::new(q, k, v, mask)?;
        check_dtype(NAME, "dy", dy, ("q", q))?;
        let (y, log_sums) = match known {
            Some((y, log_sums)) => (y.converted(ready.q.dtype())?.to_contiguous(), log_sums.clone()),
            None => self.compute(&ready)?,
        };
        check_shape(NAME, "dy", dy, ("y", &y))?;
        let dy = dy.converted(ready.q.dtype())?;
        let parts = for_real!(ready.q.dtype(), T => {
            let [mut dq, mut dk, mut dv] = [&ready.q, &ready.k, &ready.v].map(|x| take::<T>(x.size()));
            let known = (y.as_slice::<T>()?.unwrap_or(&[]), log_sums.as_slice::<T>()?.unwrap_or(&[]));
            ready.kernel::<T>(self)?.gradients(known, &heads(&dy, &ready.lead)?, [&mut dq, &mut dk, &mut dv]);
            [(dq, &ready.q), (dk, &ready.k), (dv, &ready.v)].map(|(d, x)| Tensor::from_taken(d, x.shape().clone()))
        });
        let [dq, dk, dv] = parts;
        Ok([dq.converted(q.dtype())?, dk.converted(q.dtype())?, dv.converted(q.dtype())?])
    }

    /// Which keys each query sees, as a tensor; `None` if all.
    fn visible(self, q: &Tensor, k: &Tensor, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        if !self.causal {
            return Ok(mask.cloned());
        }
        let (queries, keys) = (q.shape()[q.rank() - 2], k.shape()[k.rank() - 2]);
        let last = Tensor::arange(0.0, queries as f64, 1.0, DType::I64)?.reshape([queries, 1])?;
        let last = (last + (keys as f64 - queries as f64))?;
        let seen = Tensor::arange(0.0, keys as f64, 1.0, DType::I64)?.less_equal(&last)?;
        match mask {
            Some(mask) => seen.logical_and(mask).map(Some),
            None => Ok(Some(seen)),
        }
    }

    /// `softmax(scale q k^T + bias)`, 0 where a query does not see a key: the whole matrix, recorded op by op.
    fn weights(
        self,
        q: &Tensor,
        k: &Tensor,
        bias: Option<&Tensor>,
        visible: Option<&Tensor>,
    ) -> Result<Tensor> {
        let transposed = Matmul { transpose_a: false, transpose_b: true };
        let mut s = (apply(transposed, [q, k])? * self.scale)?;
        if let Some(bias) = bias {
            s = (s + bias)?;
        }
        match visible {
            None => s.softmax(-1),
            // Finite, so that a query that sees nothing does not make NaN of 0 times an infinity.
            Some(visible) => visible.where_else(&visible.where_else(&s, -1e30)?.softmax(-1)?, 0.0),
        }
    }
}

/// The mask, if there is one.
fn mask_of<'a>(inputs: &'a Inputs<'_, '_>, position: usize) -> Result<Option<&'a Tensor>> {
    if inputs.len() > position { inputs.get(position).map(Some) } else { Ok(None) }
}

impl Op for Attention {
    fn name(&self) -> &'static str {
        NAME
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS_AND_OUTPUT
    }

    fn multiply_adds(&self, inputs: &[Shape], outputs: &[Shape]) -> u64 {
        let ([q, k, ..], [y]) = (inputs, outputs) else { return 0 };
        let (&depth, &keys) = (q.last().unwrap_or(&0), k.iter().rev().nth(1).unwrap_or(&0));
        let rows = y.iter().rev().skip(1).product::<usize>() as u64;
        rows * keys as u64 * (depth + y.last().unwrap_or(&0)) as u64
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let q = inputs.get(0)?;
        let ready = Ready::new(q, inputs.get(1)?, inputs.get(2)?, mask_of(inputs, 3)?)?;
        let (y, log_sums) = self.compute(&ready)?;
        Ok(Computed::from(y.converted(q.dtype())?).saving(log_sums))
    }

    /// [`AttentionGradient`]; on what the forward kept, unless the gradient is itself recorded: then that must be seen to
    /// depend on the inputs.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let (q, k, v, mask) = (saved.input(0)?, saved.input(1)?, saved.input(2)?, saved.input(3).ok());
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None; 3 + usize::from(mask.is_some())]) };
        let parts = if record::is_recording() {
            apply_many(AttentionGradient(*self), [q, k, v, dy].into_iter().chain(mask))?
        } else {
            self.gradients([q, k, v], mask, dy, Some((saved.output()?, saved.extra(0)?)))?.into()
        };
        let wanted = |(i, part)| needs.has(i).then_some(Gradient::Dense(part));
        Ok(parts.into_iter().enumerate().map(wanted).chain(mask.map(|_| None)).collect())
    }
}

impl Listed for Attention {
    fn samples() -> Vec<Sample> {
        let sample = |causal, q: &[usize], k: &[usize], v: &[usize], mask: Option<&[usize]>| {
            let inputs = [q, k, v].into_iter().map(SampleInput::float);
            let mask = mask.map(|shape| SampleInput::Bool { shape: shape.to_vec() });
            Sample::new(Attention { causal, scale: 0.7 }, inputs.chain(mask).collect::<Vec<_>>())
        };
        vec![
            sample(false, &[2, 3], &[4, 3], &[4, 2], None),
            sample(true, &[2, 3, 2], &[2, 3, 2], &[2, 3, 2], None),
            sample(false, &[2, 1, 2, 2], &[3, 3, 2], &[3, 3, 1], Some(&[2, 3])),
            sample(true, &[2, 2], &[3, 2], &[3, 2], Some(&[2, 1, 3])),
        ]
    }
}

/// What reaches the inputs of an [`Attention`]: with `p` its weights and `ds = scale p (dy v^T - sum(dy y))`,
/// `dq = ds k`, `dk = ds^T q` and `dv = p^T dy`.
///
/// Inputs `q`, `k`, `v`, `dy` and perhaps the mask; outputs `dq`, `dk`, `dv`, all with the leading axes broadcast.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct AttentionGradient(Attention);

impl Op for AttentionGradient {
    fn name(&self) -> &'static str {
        "scaled_dot_product_attention_gradient"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let qkv = [inputs.get(0)?, inputs.get(1)?, inputs.get(2)?];
        self.0
            .gradients(qkv, mask_of(inputs, 4)?, inputs.get(3)?, None)
            .map(|parts| Computed::many(parts.into()))
    }

    /// The plain formulas once more, with the whole matrix of scores.
    ///
    /// With `gq`, `gk`, `gv` the gradients of the outputs, `dp = dy v^T` and `softmax'(u) = p (u - sum(u p))`, the scores'
    /// gradient `ds = softmax'(dp)` receives `u = scale (gq k^T + q gk^T)`, the weights
    /// `w = u (dp - sum(dp p)) - dp sum(u p) + dy gv^T`, and the scores themselves `r = scale softmax'(w)`. So
    /// `scale ds gk + r k` goes to `q`, `scale ds^T gq + r^T q` to `k`, `softmax'(u)^T dy` to `v` and
    /// `p gv + softmax'(u) v` to `dy`.
    fn gradient(&self, saved: &Saved, g: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let (q, k, v, dy) = (saved.input(0)?, saved.input(1)?, saved.input(2)?, saved.input(3)?);
        let mask = saved.input(4).ok();
        let (op, axis) = (self.0, -1);
        let ready = Ready::new(q, k, v, mask)?;
        let last = ready.lead.rank() + 1;
        let [gq, gk, gv] = g else { return Ok(vec![None; 4 + usize::from(mask.is_some())]) };
        let or_zeros = |g: &Option<Tensor>, like: &Tensor| match g {
            Some(g) => Ok(g.clone()),
            None => Tensor::zeros(like.shape().clone(), q.dtype()),
        };
        let (gq, gk, gv) = (or_zeros(gq, &ready.q)?, or_zeros(gk, &ready.k)?, or_zeros(gv, &ready.v)?);
        let product = |a: &Tensor, transpose_a: bool, b: &Tensor, transpose_b: bool| {
            apply(Matmul { transpose_a, transpose_b }, [a, b])
        };
        let sum = |x: Tensor| x.sum_axes(axis, true);
        let visible = op.visible(q, k, mask)?;
        // The leading axes of a mask too.
        let p = op
            .weights(q, k, None, visible.as_ref())?
            .broadcast_to(shape(&ready.lead, [q.shape()[q.rank() - 2], k.shape()[k.rank() - 2]]))?;
        let dp = product(dy, false, v, true)?;
        let ds = softmax_gradient(last, &p, &dp)?;
        let u = ((product(&gq, false, k, true)? + product(q, false, &gk, true)?)? * op.scale)?;
        let through = softmax_gradient(last, &p, &u)?;
        let direct = ((&u * (&dp - sum((&dp * &p)?)?)?)? - (&dp * sum((&u * &p)?)?)?)?;
        let w = (direct + product(dy, false, &gv, true)?)?;
        let r = (softmax_gradient(last, &p, &w)? * op.scale)?;
        let mut list = vec![None; 4 + usize::from(mask.is_some())];
        if needs.has(0) {
            list[0] = Some(((product(&ds, false, &gk, false)? * op.scale)? + product(&r, false, k, false)?)?);
        }
        if needs.has(1) {
            list[1] = Some(((product(&ds, true, &gq, false)? * op.scale)? + product(&r, true, q, false)?)?);
        }
        if needs.has(2) {
            list[2] = Some(product(&through, true, dy, false)?);
        }
        if needs.has(3) {
            list[3] = Some((product(&p, false, &gv, false)? + product(&through, false, v, false)?)?);
        }
        Ok(list.into_iter().map(|g| g.map(Gradient::Dense)).collect())
    }
}

impl Listed for AttentionGradient {
    fn samples() -> Vec<Sample> {
        let sample = |causal, q: &[usize], k: &[usize], v: &[usize], dy: &[usize], mask: Option<&[usize]>| {
            let inputs = [q, k, v, dy].into_iter().map(SampleInput::float);
            let mask = mask.map(|shape| SampleInput::Bool { shape: shape.to_vec() });
            Sample::new(
                AttentionGradient(Attention { causal, scale: 0.7 }),
                inputs.chain(mask).collect::<Vec<_>>(),
            )
        };
        vec![
            sample(false, &[2, 3], &[4, 3], &[4, 2], &[2, 2], None),
            sample(true, &[2, 3, 2], &[2, 3, 2], &[2, 3, 2], &[2, 3, 2], None),
            sample(true, &[2, 2], &[3, 2], &[3, 2], &[2, 2, 2], Some(&[2, 1, 3])),
        ]
    }
}

/// What a query attends to, and how.
///
/// ```
/// use couplet::{DType, Tensor, ops::AttentionOptions};
/// // [batch, heads, sequence, channels]
/// let x = Tensor::ones([2, 4, 16, 8], DType::F32)?;
/// let y = x.scaled_dot_product_attention(&x, &x, AttentionOptions::default().causal(true))?;
/// assert_eq!(y.shape(), &[2, 4, 16, 8]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct AttentionOptions<'a> {
    mask: Option<&'a Tensor>,
    bias: Option<&'a Tensor>,
    causal: bool,
    scale: Option<f64>,
}

impl<'a> AttentionOptions<'a> {
    /// Which keys each query may see: bool, a shape that broadcasts to `[.., queries, keys]`. Default: all.
    #[must_use]
    pub fn mask(mut self, mask: &'a Tensor) -> Self {
        self.mask = Some(mask);
        self
    }

    /// Added to the scores before the softmax: floats, a shape that broadcasts to `[.., queries, keys]`, such as relative
    /// positions. With a bias all scores are held in memory. Default: none.
    #[must_use]
    pub fn bias(mut self, bias: &'a Tensor) -> Self {
        self.bias = Some(bias);
        self
    }

    /// Whether a query sees the keys up to its own place alone, the last query standing at the last key: query `i` sees keys
    /// `0..=i + keys - queries`. Default: no.
    #[must_use]
    pub fn causal(mut self, causal: bool) -> Self {
        self.causal = causal;
        self
    }

    /// What the products of queries and keys are multiplied by. Default: `1 / sqrt(channels of q)`, with which the scores of
    /// independent unit-variance channels have variance 1.
    #[must_use]
    pub fn scale(mut self, scale: f64) -> Self {
        self.scale = Some(scale);
        self
    }
}

impl Tensor {
    /// Attention `y = softmax(scale q k^T) v` of the queries `self`, `[.., queries, d]`, to the keys `k`, `[.., keys, d]`, and
    /// their values `v`, `[.., keys, e]`; gives `[.., queries, e]` (Vaswani et al. 2017, "Attention is all you need", 3.2.1).
    ///
    /// Leading axes broadcast: one `k` and `v` may serve several heads. The scores are computed tile by tile, forward and
    /// backward, so memory grows with `queries + keys` and not with their product (Dao et al. 2022); a second derivative
    /// or a bias does hold them all. A query that sees no key gives 0. `f16` and `bf16` are computed in `f32`.
    ///
    /// ```
    /// use couplet::{Tensor, ops::AttentionOptions};
    /// let (q, k) = (Tensor::from([[1.0f64, 0.0]]), Tensor::from([[3.0f64.ln(), 5.0], [0.0, -5.0]]));
    /// let v = Tensor::from([[4.0f64], [8.0]]);
    /// // Scores log 3 and 0, weights 3/4 and 1/4.
    /// let y = q.scaled_dot_product_attention(&k, &v, AttentionOptions::default().scale(1.0))?;
    /// assert!((y.to_vec::<f64>()?[0] - 5.0).abs() < 1e-12);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// Ranks below 2, shapes that do not fit each other, two dtypes, a dtype that is not a float, or a mask that is not
    /// bool.
    pub fn scaled_dot_product_attention(
        &self,
        k: &Tensor,
        v: &Tensor,
        options: AttentionOptions<'_>,
    ) -> Result<Tensor> {
        let channels = self.shape().last().copied().unwrap_or(1).max(1) as f64;
        let op = Attention { causal: options.causal, scale: options.scale.unwrap_or(1.0 / channels.sqrt()) };
        if let Some(bias) = options.bias {
            // Refuses what does not fit, in the words of this op.
            Ready::new(self, k, v, options.mask)?;
            check_dtype(NAME, "the bias", bias, ("q", self))?;
            let visible = op.visible(self, k, options.mask)?;
            return op.weights(self, k, Some(bias), visible.as_ref())?.matmul(v);
        }
        match options.mask {
            None => apply(op, [Input::Ref(self), Input::Ref(k), Input::Ref(v)]),
            Some(mask) => apply(op, [Input::Ref(self), Input::Ref(k), Input::Ref(v), Input::Ref(mask)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;
    use crate::random::Generator;

    fn inputs(lead: &[usize], queries: usize, keys: usize) -> [Tensor; 3] {
        let g = Generator::seed(7);
        let draw = |rows: usize, cols: usize| {
            g.normal([lead, &[rows, cols]].concat(), 0.0, 1.0, DType::F64).unwrap()
        };
        [draw(queries, 6), draw(keys, 6), draw(keys, 5)]
    }

    fn assert_close(a: &Tensor, b: &Tensor, tolerance: f64) {
        assert_eq!(a.shape(), b.shape());
        let list = |x: &Tensor| x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
        for (a, b) in list(a).into_iter().zip(list(b)) {
            assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a}, expected {b}");
        }
    }

    #[test]
    fn it_is_the_softmax_of_the_scores_times_the_values_with_its_gradients() -> Result<()> {
        let [q, k, v] = inputs(&[2, 3], 9, 11);
        let mask = Generator::seed(1).bernoulli([3, 9, 11], 0.6, DType::Bool)?;
        for (causal, mask) in [(false, None), (true, None), (false, Some(&mask)), (true, Some(&mask))] {
            let options = AttentionOptions { mask, causal, ..AttentionOptions::default() };
            let bias = Tensor::zeros([11], DType::F64)?;
            let run = |options: AttentionOptions<'_>| -> Result<Vec<Tensor>> {
                let tape = GradientTape::new();
                [&q, &k, &v].iter().for_each(|x| tape.watch(*x));
                let y = q.scaled_dot_product_attention(&k, &v, options)?;
                let gradients = tape.gradient(&(&y * &y)?.sum()?, &[&q, &k, &v])?;
                let dense = gradients.into_iter().map(|g| g.expect("all are used").to_dense());
                [Ok(y)].into_iter().chain(dense).collect()
            };
            // With a bias the plain ops run.
            for (fused, plain) in run(options)?.iter().zip(&run(options.bias(&bias))?) {
                assert_close(fused, plain, 1e-12);
            }
        }
        Ok(())
    }

    #[test]
    fn heads_that_lie_crosswise_and_shared_keys_are_read_in_place() -> Result<()> {
        let [q, k, v] = inputs(&[2, 3], 4, 5);
        // [batch, sequence, heads, channels] as most models have it.
        let crosswise = |x: &Tensor| x.transpose(&[0, 2, 1, 3])?.to_contiguous().transpose(&[0, 2, 1, 3]);
        let options = AttentionOptions::default();
        let y = q.scaled_dot_product_attention(&k, &v, options)?;
        let z = crosswise(&q)?.scaled_dot_product_attention(&crosswise(&k)?, &crosswise(&v)?, options)?;
        assert_close(&z, &y, 1e-14);
        let (k, v) = (k.index(0)?.index(0)?, v.index(0)?.index(0)?);
        let y = q.scaled_dot_product_attention(&k, &v, options)?;
        let whole = |x: &Tensor| x.broadcast_to([2, 3, 5, x.shape()[1]]);
        assert_close(&y, &q.scaled_dot_product_attention(&whole(&k)?, &whole(&v)?, options)?, 1e-14);
        Ok(())
    }

    #[test]
    fn halves_are_computed_in_single_precision_and_rounded_once() -> Result<()> {
        let [q, k, v] = inputs(&[2], 3, 4);
        let options = AttentionOptions::default();
        for dtype in [DType::F16, DType::BF16] {
            let half = |x: &Tensor| x.cast(dtype);
            let wide = |x: &Tensor| half(x)?.cast(DType::F32);
            let y = half(&q)?.scaled_dot_product_attention(&half(&k)?, &half(&v)?, options)?;
            let want =
                wide(&q)?.scaled_dot_product_attention(&wide(&k)?, &wide(&v)?, options)?.cast(dtype)?;
            assert_eq!(y.dtype(), dtype);
            assert_close(&y, &want, 0.0);
        }
        Ok(())
    }

    #[test]
    fn nothing_to_see_gives_zeros_and_a_nan_stays_where_it_is_seen() -> Result<()> {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32);
        let options = AttentionOptions::default();
        let y = zeros(&[2, 3, 4])?.scaled_dot_product_attention(
            &zeros(&[2, 0, 4])?,
            &zeros(&[2, 0, 5])?,
            options,
        )?;
        assert_eq!((y.shape().to_vec(), y.to_vec::<f32>()?), (vec![2, 3, 5], vec![0.0; 30]));
        let y = zeros(&[0, 3, 4])?.scaled_dot_product_attention(
            &zeros(&[0, 2, 4])?,
            &zeros(&[0, 2, 5])?,
            options,
        )?;
        assert_eq!(y.shape(), &[0, 3, 5]);
        let v = Tensor::from([[1.0f32], [2.0]]);
        let k = Tensor::from([[1.0f32], [f32::NAN]]);
        let y = Tensor::from([[1.0f32], [1.0]]).scaled_dot_product_attention(&k, &v, options.causal(true))?;
        let list = y.to_vec::<f32>()?;
        assert!(list[0] == 1.0 && list[1].is_nan(), "{list:?}");
        Ok(())
    }

    #[test]
    fn misfits_are_named() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
        let message = |q: &[usize], k: &[usize], v: &[usize], mask: Option<&Tensor>| {
            let options = AttentionOptions { mask, ..AttentionOptions::default() };
            let y = zeros(q).scaled_dot_product_attention(&zeros(k), &zeros(v), options);
            y.unwrap_err().to_string()
        };
        assert!(message(&[3], &[2, 3], &[2, 3], None).contains("rank 2 or more"));
        assert!(message(&[4, 3], &[2, 5], &[2, 3], None).contains("3 channels"));
        assert!(message(&[4, 3], &[2, 3], &[7, 3], None).contains("2 rows"));
        assert!(message(&[2, 4, 3], &[3, 2, 3], &[2, 3], None).contains("[2]"));
        let mask = Tensor::zeros([4, 5], DType::Bool).unwrap();
        assert!(message(&[4, 3], &[2, 3], &[2, 3], Some(&mask)).contains("[.., 4, 2]"));
        assert!(message(&[4, 3], &[2, 3], &[2, 3], Some(&zeros(&[4, 2]))).contains("bias"));
    }
}
