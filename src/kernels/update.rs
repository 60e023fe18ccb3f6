//! Steps of optimisers: one function on plain numbers each, and one loop that applies it.
//!
//! All take the parameters, what the optimiser remembers of each, and the updates `u` (gradients, most often), dense and
//! of one length. Hyper-parameters have the type of the parameters, and so has all arithmetic.

use super::blocks::{CHUNK, SERIAL};
use super::elementwise::slice_mut;
use super::layout::View;
use super::math::Math;
use super::parallel::{self, SendPtr};
use super::reduce::{Number, Op};
use super::simd::vectorized;

/// `p = p - learning_rate u`.
pub(crate) fn sgd<T: Math>(learning_rate: T, p: &mut [T], u: &[T]) {
    update([p], u, |[p], u| [p - learning_rate * u]);
}

/// Momentum, after Polyak 1964.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Momentum<T> {
    pub(crate) learning_rate: T,
    pub(crate) momentum: T,
    /// Whether to look one step ahead, as Nesterov 1983.
    pub(crate) nesterov: bool,
}

impl<T: Math> Momentum<T> {
    /// `m = momentum m + u`; `p = p - learning_rate m`, or with Nesterov `p - learning_rate (momentum m + u)`.
    pub(crate) fn update(self, p: &mut [T], m: &mut [T], u: &[T]) {
        if self.nesterov {
            update([p, m], u, |x, u| self.nesterov(x, u));
        } else {
            update([p, m], u, |x, u| self.plain(x, u));
        }
    }

    #[inline(always)]
    fn plain(self, [p, m]: [T; 2], u: T) -> [T; 2] {
        let m = self.momentum * m + u;
        [p - self.learning_rate * m, m]
    }

    #[inline(always)]
    fn nesterov(self, [p, m]: [T; 2], u: T) -> [T; 2] {
        let m = self.momentum * m + u;
        [p - self.learning_rate * (self.momentum * m + u), m]
    }
}

/// RMSProp, after Tieleman & Hinton 2012, with momentum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RmsProp<T> {
    pub(crate) learning_rate: T,
    pub(crate) decay: T,
    pub(crate) momentum: T,
    pub(crate) epsilon: T,
}

impl<T: Math> RmsProp<T> {
    /// `ms = decay ms + (1 - decay) u^2`; `mom = momentum mom + learning_rate u / sqrt(ms + epsilon)`; `p = p - mom`.
    pub(crate) fn update(self, p: &mut [T], mom: &mut [T], ms: &mut [T], u: &[T]) {
        update([p, mom, ms], u, |[p, mom, ms], u| {
            let ms = self.average(ms, u * u);
            let mom = self.step(mom, u, ms + self.epsilon);
            [p - mom, mom, ms]
        });
    }

    /// As [`update`](Self::update), with the variance in place of `ms`: `mg = decay mg + (1 - decay) u` and
    /// `mom = momentum mom + learning_rate u / sqrt(ms - mg^2 + epsilon)`.
    pub(crate) fn update_centered(self, p: &mut [T], mom: &mut [T], ms: &mut [T], mg: &mut [T], u: &[T]) {
        update([p, mom, ms, mg], u, |[p, mom, ms, mg], u| {
            let (ms, mg) = (self.average(ms, u * u), self.average(mg, u));
            let mom = self.step(mom, u, ms - mg * mg + self.epsilon);
            [p - mom, mom, ms, mg]
        });
    }

    #[inline(always)]
    fn average(self, mean: T, x: T) -> T {
        self.decay * mean + (T::one() - self.decay) * x
    }

    #[inline(always)]
    fn step(self, mom: T, u: T, square: T) -> T {
        self.momentum * mom + self.learning_rate * u / square.sqrt()
    }
}

/// Adam, algorithm 1 of Kingma & Ba 2015.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adam<T> {
    pub(crate) learning_rate: T,
    pub(crate) beta1: T,
    pub(crate) beta2: T,
    pub(crate) epsilon: T,
    /// Number of this step, from 1.
    pub(crate) step: T,
}

impl<T: Math> Adam<T> {
    /// `m = beta1 m + (1 - beta1) u`; `v = beta2 v + (1 - beta2) u^2`; with `m^ = m / (1 - beta1^t)` and
    /// `v^ = v / (1 - beta2^t)`: `p = p - learning_rate m^ / (sqrt(v^) + epsilon)`.
    pub(crate) fn update(self, p: &mut [T], m: &mut [T], v: &mut [T], u: &[T]) {
        self.update_decayed(T::zero(), p, m, v, u);
    }

    /// As [`update`](Self::update), with `p` pulled towards 0 by `learning_rate weight_decay p`: AdamW, algorithm 2 of
    /// Loshchilov & Hutter 2019.
    pub(crate) fn update_decayed(self, weight_decay: T, p: &mut [T], m: &mut [T], v: &mut [T], u: &[T]) {
        let correction = |beta: T| T::one() - beta.powf(self.step);
        let corrections = [correction(self.beta1), correction(self.beta2)];
        if weight_decay == T::zero() {
            update([p, m, v], u, |x, u| self.plain(corrections, x, u));
        } else {
            let keep = T::one() - self.learning_rate * weight_decay;
            update([p, m, v], u, |[p, m, v], u| self.plain(corrections, [keep * p, m, v], u));
        }
    }

    #[inline(always)]
    fn plain(self, corrections: [T; 2], [p, m, v]: [T; 3], u: T) -> [T; 3] {
        let m = self.beta1 * m + (T::one() - self.beta1) * u;
        let v = self.beta2 * v + (T::one() - self.beta2) * u * u;
        let (m_hat, v_hat) = (m / corrections[0], v / corrections[1]);
        [p - self.learning_rate * m_hat / (v_hat.sqrt() + self.epsilon), m, v]
    }
}

/// `y = y + a x`.
pub(crate) fn axpy<T: Math>(a: T, x: &[T], y: &mut [T]) {
    update([y], x, |[y], x| [y + a * x]);
}

/// The sum of the squares of `x`, in wide precision.
pub(crate) fn sum_squares<T: Number>(x: &[T]) -> T::Wide {
    let mut y = [T::ZERO];
    let add = |sum, x: T| T::plus(sum, T::times(x.widen(), x.widen()));
    Op::new(T::ZERO, add, T::plus, |sum| sum).reduce(View::new(x, 0, &[x.len()], &[1]), &[true], &mut y);
    y[0]
}

/// `slots = f(slots, u)`, element by element.
fn update<T: Math, const N: usize>(
    slots: [&mut [T]; N],
    u: &[T],
    f: impl Fn([T; N], T) -> [T; N] + Sync + Copy,
) {
    let len = u.len();
    assert!(slots.iter().all(|slot| slot.len() == len), "parameters, memory and updates have one length");
    let slots = slots.map(|slot| SendPtr(slot.as_mut_ptr()));
    // SAFETY: pieces lie inside the slots, which are exclusively ours and distinct; pieces do not overlap.
    let piece = |start, len| slots.each_ref().map(|slot| unsafe { slice_mut(slot, start, len) });
    if len <= SERIAL {
        return run(piece(0, len), u, f);
    }
    parallel::for_each(len.div_ceil(CHUNK), |i| {
        let start = i * CHUNK;
        let end = len.min(start + CHUNK);
        run(piece(start, end - start), &u[start..end], f);
    });
}

/// `slots = f(slots, u)` on this thread; all have one length. The loop owns `f`: the compiler then knows that writing to
/// the slots does not change what `f` holds.
#[inline(never)]
fn run<T: Math, const N: usize>(slots: [&mut [T]; N], u: &[T], f: impl Fn([T; N], T) -> [T; N] + Copy) {
    let slots = slots.map(|slot| slot.as_mut_ptr());
    vectorized(
        #[inline(always)]
        move || {
            for (i, &u) in u.iter().enumerate() {
                // SAFETY: the slots are as long as `u`.
                unsafe {
                    let new = f(slots.map(|slot| *slot.add(i)), u);
                    for n in 0..N {
                        *slots[n].add(i) = new[n];
                    }
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::super::parallel::with_threads;
    use super::*;

    fn assert_close(y: &[f64], expected: &[f64]) {
        for (y, e) in y.iter().zip(expected) {
            assert!((y - e).abs() < 1e-6, "{y:?}, expected {e:?}");
        }
    }

    /// The parameter, from 1 on, after each of the updates 0.5, -0.25 and 1.
    fn three_steps(mut update: impl FnMut(i32, &mut [f64], &[f64])) -> [f64; 3] {
        let mut p = [1.0];
        [(1, 0.5), (2, -0.25), (3, 1.0)].map(|(t, u)| {
            update(t, &mut p, &[u]);
            p[0]
        })
    }

    #[test]
    fn sgd_and_momentum_follow_their_formulas() {
        assert_close(&three_steps(|_, p, u| sgd(0.1, p, u)), &[0.95, 0.975, 0.875]);
        let mut c = Momentum { learning_rate: 0.1, momentum: 0.9, nesterov: false };
        let mut m = [0.0];
        // m: 0.5, 0.2, 1.18
        assert_close(&three_steps(|_, p, u| c.update(p, &mut m, u)), &[0.95, 0.93, 0.812]);
        assert_close(&m, &[1.18]);
        c.nesterov = true;
        m = [0.0];
        assert_close(&three_steps(|_, p, u| c.update(p, &mut m, u)), &[0.905, 0.912, 0.7058]);
    }

    #[test]
    fn rmsprop_follows_its_formula() {
        let c = RmsProp { learning_rate: 0.1, decay: 0.9, momentum: 0.0, epsilon: 1e-10 };
        let (mut mom, mut ms, mut mg) = ([0.0], [0.0], [0.0]);
        // Constant updates of 5: 1 - 0.1 * 5 / sqrt(2.5), then sqrt(4.75), sqrt(6.775) below.
        let mut p = [1.0];
        for e in [0.683_772, 0.454_357, 0.262_262] {
            c.update(&mut p, &mut mom, &mut ms, &[5.0]);
            assert_close(&p, &[e]);
        }
        (mom, ms, p) = ([0.0], [0.0], [1.0]);
        for e in [0.666_667, 0.411_76, 0.186_776] {
            c.update_centered(&mut p, &mut mom, &mut ms, &mut mg, &[5.0]);
            assert_close(&p, &[e]);
        }
        let c = RmsProp { momentum: 0.9, ..c };
        (mom, ms) = ([0.0], [0.0]);
        let p = three_steps(|_, p, u| c.update(p, &mut mom, &mut ms, u));
        // ms: 0.025, 0.02875, 0.125875; mom: lr u / sqrt(ms) plus 0.9 of the last.
        let mom1 = 0.05 / 0.025_f64.sqrt();
        let mom2 = 0.9 * mom1 - 0.025 / 0.028_75_f64.sqrt();
        let mom3 = 0.9 * mom2 + 0.1 / 0.125_875_f64.sqrt();
        assert_close(&p, &[1.0 - mom1, 1.0 - mom1 - mom2, 1.0 - mom1 - mom2 - mom3]);
    }

    #[test]
    fn adam_follows_its_formula() {
        let (mut m, mut v) = ([0.0], [0.0]);
        let c =
            |t: i32| Adam { learning_rate: 0.1, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, step: f64::from(t) };
        let p = three_steps(|t, p, u| c(t).update(p, &mut m, &mut v, u));
        // m: 0.05, 0.02, 0.118; v: 2.5e-4, 3.1225e-4, 1.31193775e-3
        let step = |m: f64, v: f64, t: i32| {
            let (m, v) = (m / (1.0 - 0.9_f64.powi(t)), v / (1.0 - 0.999_f64.powi(t)));
            0.1 * m / (v.sqrt() + 1e-8)
        };
        let steps = [step(0.05, 2.5e-4, 1), step(0.02, 3.1225e-4, 2), step(0.118, 1.311_937_75e-3, 3)];
        assert_close(&p, &[1.0 - steps[0], 1.0 - steps[0] - steps[1], 1.0 - steps.iter().sum::<f64>()]);
        assert_close(&m, &[0.118]);
        // AdamW: each step first takes 1 - 0.1 * 0.5 of p.
        let (mut m, mut v) = ([0.0], [0.0]);
        let decayed = three_steps(|t, p, u| c(t).update_decayed(0.5, p, &mut m, &mut v, u));
        let mut e = 1.0;
        let expected = steps.map(|step| {
            e = 0.95 * e - step;
            e
        });
        assert_close(&decayed, &expected);
    }

    #[test]
    fn long_parameters_equal_short_ones_on_any_number_of_threads() {
        let n = 100_003;
        let u: Vec<f32> = (0..n).map(|i| ((i * 7919) % 1000) as f32 * 0.01 - 5.0).collect();
        let c = Adam { learning_rate: 0.01, beta1: 0.9, beta2: 0.99, epsilon: 1e-6, step: 3.0 };
        let r = RmsProp { learning_rate: 0.01, decay: 0.9, momentum: 0.5, epsilon: 1e-6 };
        let run = |threads, size: usize| {
            let [mut p, mut m, mut v, mut g] = [1.0_f32, 0.5, 30.0, 0.25].map(|x| vec![x; n]);
            with_threads(threads, || {
                for start in (0..n).step_by(size) {
                    let at = start..n.min(start + size);
                    c.update(&mut p[at.clone()], &mut m[at.clone()], &mut v[at.clone()], &u[at.clone()]);
                    r.update_centered(
                        &mut p[at.clone()],
                        &mut m[at.clone()],
                        &mut v[at.clone()],
                        &mut g[at.clone()],
                        &u[at.clone()],
                    );
                    axpy(0.5, &u[at.clone()], &mut g[at]);
                }
            });
            [p, m, v, g]
        };
        let expected = run(1, 1);
        assert_eq!(run(1, n), expected);
        assert_eq!(run(8, n), expected);
        let squares: f64 = u.iter().map(|&u| f64::from(u) * f64::from(u)).sum();
        assert!((sum_squares(&u) / squares - 1.0).abs() < 1e-12);
    }
}
