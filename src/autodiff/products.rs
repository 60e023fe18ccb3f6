//! Products of a Jacobian or a Hessian with a vector, without the matrix.

use crate::error::{Error, Result};
use crate::ops::Gradient;
use crate::tensor::Tensor;

use super::source::Source;
use super::tape::{GradientTape, UnconnectedGradients};

/// Refuses vectors that do not fit the sources one to one.
fn check_vectors<S: Source>(op: &'static str, sources: &[S], vectors: &[&Tensor]) -> Result<()> {
    if sources.len() != vectors.len() {
        let problem = format!("{} vectors for {} sources", vectors.len(), sources.len());
        return Err(Error::usage(op, problem, "give one for each source"));
    }
    for (source, v) in sources.iter().zip(vectors) {
        let key = source.key();
        if *v.shape() != key.shape() {
            return Err(Error::shape(op, "v", v.shape(), format!("that of its source: {}", key.shape())));
        }
        if v.dtype() != key.dtype() {
            return Err(Error::dtype(op, "v", v.dtype(), format!("that of its source: {}", key.dtype())));
        }
    }
    Ok(())
}

/// A tape that watches `sources` and nothing else.
fn tape_of<S: Source>(sources: &[S]) -> GradientTape {
    let tape =
        GradientTape::new().watch_accessed_variables(false).unconnected_gradients(UnconnectedGradients::Zero);
    sources.iter().for_each(|source| tape.watch(source));
    tape
}

fn dense(gradients: Vec<Option<Gradient>>) -> Result<Vec<Tensor>> {
    gradients.into_iter().flatten().map(|g| g.to_dense()).collect()
}

/// `y = f()` and the vector-Jacobian product `v^T dy/dx` for each source `x` (reverse mode); zeros where `y` does not depend
/// on one.
///
/// ```
/// use couplet::{Tensor, autodiff::vjp};
/// let x = Tensor::from([1.0f64, 2.0]);
/// let (y, dx) = vjp(|| &x * &x, &[&x], &Tensor::from([1.0f64, 10.0]))?;
/// assert_eq!(y.to_vec::<f64>()?, [1.0, 4.0]);
/// assert_eq!(dx[0].to_vec::<f64>()?, [2.0, 40.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `f` fails, its result is not of a float dtype, or `v` has not its shape and dtype.
pub fn vjp<S: Source>(
    f: impl FnOnce() -> Result<Tensor>,
    sources: &[S],
    v: &Tensor,
) -> Result<(Tensor, Vec<Tensor>)> {
    let tape = tape_of(sources);
    let y = f()?;
    let products = dense(tape.gradient_with_seed(&y, v, sources)?)?;
    Ok((y, products))
}

/// `y = f()` and the Jacobian-vector product `sum_i dy/dx_i v_i`, the derivative of `y` along the direction `v`.
///
/// It is the derivative of [`vjp`] by its `v`, in which that is linear: two walks back and no Jacobian, at about three times
/// the cost of `f`, whatever the sizes are.
///
/// ```
/// use couplet::{Tensor, autodiff::jvp};
/// let x = Tensor::from([1.0f64, 2.0]);
/// let (_, dy) = jvp(|| &x * &x, &[&x], &[&Tensor::from([1.0f64, 10.0])])?;
/// assert_eq!(dy.to_vec::<f64>()?, [2.0, 40.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `f` fails, its result is not of a float dtype, or there is not one `v` of the right shape and dtype for each source.
pub fn jvp<S: Source>(
    f: impl FnOnce() -> Result<Tensor>,
    sources: &[S],
    v: &[&Tensor],
) -> Result<(Tensor, Tensor)> {
    check_vectors("jvp", sources, v)?;
    let outer = tape_of::<Tensor>(&[]);
    let inner = tape_of(sources);
    let y = f()?;
    let u = Tensor::ones(y.shape().clone(), y.dtype())?;
    outer.watch(&u);
    let gradients = dense(inner.gradient_with_seed(&y, &u, sources)?)?;
    let targets: Vec<_> = gradients.iter().zip(v).map(|(g, v)| (g, Some(*v))).collect();
    let product = dense(outer.gradient_of_all(&targets, &[&u])?)?.remove(0);
    Ok((y, product))
}

/// The scalar `y = f()` and the Hessian-vector products `sum_j d2y / (dx_i dx_j) v_j` for each source `x_i`, at about four
/// times the cost of `f` (Pearlmutter 1994, "Fast exact multiplication by the Hessian").
///
/// ```
/// use couplet::{Tensor, autodiff::hvp};
/// let x = Tensor::from([2.0f64, 3.0]);
/// let (_, hv) = hvp(|| x.prod(), &[&x], &[&Tensor::from([1.0f64, 10.0])])?;
/// assert_eq!(hv[0].to_vec::<f64>()?, [10.0, 1.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `f` fails, its result is not a scalar of a float dtype, or there is not one `v` of the right shape and dtype for each
/// source.
pub fn hvp<S: Source>(
    f: impl FnOnce() -> Result<Tensor>,
    sources: &[S],
    v: &[&Tensor],
) -> Result<(Tensor, Vec<Tensor>)> {
    check_vectors("hvp", sources, v)?;
    let (outer, inner) = (tape_of(sources), tape_of(sources));
    let y = f()?;
    let gradients = dense(inner.gradient(&y, sources)?)?;
    let targets: Vec<_> = gradients.iter().zip(v).map(|(g, v)| (g, Some(*v))).collect();
    Ok((y, dense(outer.gradient_of_all(&targets, sources)?)?))
}

#[cfg(test)]
mod tests {
    use super::super::jacobian::{hessian, jacobian};
    use super::*;
    use crate::{DType, Variable, random};

    /// A small network of a variable and a tensor, with a softmax and a normalisation, whose gradients are fused ops.
    fn network(w: &Variable, x: &Tensor) -> Result<Tensor> {
        let h = x.matmul(w.value())?.gelu()?;
        h.softmax(-1)? * h.tanh()?
    }

    fn inputs() -> Result<(Variable, Tensor, Tensor, Tensor)> {
        let g = random::Generator::seed(3);
        let draw = |shape: &[usize]| g.normal(shape, 0.0, 1.0, DType::F64);
        let w = Variable::from_tensor("w", draw(&[3, 4])?);
        Ok((w, draw(&[2, 3])?, draw(&[3, 4])?, draw(&[2, 3])?))
    }

    fn assert_close(a: &Tensor, b: &Tensor) -> Result<()> {
        assert_eq!(a.shape(), b.shape());
        for (a, b) in a.to_vec::<f64>()?.into_iter().zip(b.to_vec::<f64>()?) {
            assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{a}, expected {b}");
        }
        Ok(())
    }

    #[test]
    fn products_equal_those_with_the_whole_jacobian() -> Result<()> {
        let (w, x, vw, _) = inputs()?;
        let j = jacobian(|| network(&w, &x), &[&w])?.remove(0).reshape([8, 12])?;
        let (y, jv) = jvp(|| network(&w, &x), &[&w], &[&vw])?;
        assert_close(&jv.reshape([8, 1])?, &j.matmul(vw.reshape([12, 1])?)?)?;
        let (again, vj) = vjp(|| network(&w, &x), &[&w], &y)?;
        assert_eq!(again.to_vec::<f64>()?, y.to_vec::<f64>()?);
        assert_close(&vj[0].reshape([1, 12])?, &y.reshape([1, 8])?.matmul(&j)?)?;
        let none = w.value().stop_gradient();
        let zeros = jvp(|| network(&w, &x), &[&none], &[&vw])?.1;
        assert_eq!(zeros.to_vec::<f64>()?, [0.0; 8]);
        Ok(())
    }

    #[test]
    fn a_hessian_product_equals_that_with_the_whole_hessian() -> Result<()> {
        let (w, x, vw, vx) = inputs()?;
        let wx: [&dyn Source; 2] = [&w, &x];
        let f = || (network(&w, &x)? * network(&w, &x)?)?.sum();
        let h = hessian(f, &wx)?;
        let (_, hv) = hvp(f, &wx, &[&vw, &vx])?;
        let (column_w, column_x) = (vw.reshape([12, 1])?, vx.reshape([6, 1])?);
        for (i, size) in [(0, 12), (1, 6)] {
            let of_w = h[i][0].reshape([size, 12])?.matmul(&column_w)?;
            let of_x = h[i][1].reshape([size, 6])?.matmul(&column_x)?;
            assert_close(&hv[i].reshape([size, 1])?, &(of_w + of_x)?)?;
        }
        Ok(())
    }

    #[test]
    fn vectors_that_do_not_fit_are_refused() {
        let (x, v) = (Tensor::from([1.0f64, 2.0]), Tensor::from([1.0f64, 2.0, 3.0]));
        let message = jvp(|| x.exp(), &[&x], &[&v]).unwrap_err().to_string();
        assert!(message.contains("[3]") && message.contains("[2]"), "{message}");
        assert!(hvp(|| x.sum(), &[&x], &[]).unwrap_err().to_string().contains("0 vectors for 1"));
        assert!(vjp(|| x.exp(), &[&x], &v).is_err());
        assert!(hvp(|| x.exp(), &[&x], &[&x]).is_err());
        let single = Tensor::from([1.0f32, 2.0]);
        assert!(jvp(|| x.exp(), &[&x], &[&single]).unwrap_err().to_string().contains("f32"));
    }
}
