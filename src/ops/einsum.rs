//! Products summed over named axes.

use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor, resolve_axis};

/// The name of an axis: a letter, or a place in the ellipsis counted from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Letter(char),
    Ellipsis(usize),
}

/// A tensor and the names of its axes.
struct Term {
    x: Tensor,
    labels: Vec<Label>,
}

/// The labels of each input and of the output.
struct Equation {
    inputs: Vec<Vec<Label>>,
    output: Vec<Label>,
}

fn refusal(equation: &str, expected: impl Into<String>) -> Error {
    Error::argument("einsum", "equation", format!("{equation:?}"), expected)
}

/// Names of the axes of one subscript; an ellipsis stands for `extra` axes.
fn labels(equation: &str, subscript: &str, extra: usize) -> Result<Vec<Label>> {
    let mut labels = Vec::new();
    let mut rest = subscript;
    if subscript.matches("...").count() > 1 {
        return Err(refusal(equation, "at most one ellipsis in a subscript"));
    }
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            labels.extend((0..extra).rev().map(Label::Ellipsis));
            rest = after;
            continue;
        }
        if !c.is_ascii_alphabetic() {
            return Err(refusal(equation, "letters, commas, `...` and `->` alone"));
        }
        labels.push(Label::Letter(c));
        rest = &rest[1..];
    }
    Ok(labels)
}

impl Equation {
    fn parse(equation: &str, tensors: &[&Tensor]) -> Result<Self> {
        let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = text.split_once("->").map_or((text.as_str(), None), |(l, r)| (l, Some(r)));
        let subscripts: Vec<&str> = left.split(',').collect();
        if subscripts.len() != tensors.len() {
            return Err(refusal(
                equation,
                format!("one subscript for each of the {} tensors", tensors.len()),
            ));
        }
        let mut inputs = Vec::new();
        let mut widest = 0;
        for (i, (subscript, x)) in subscripts.iter().zip(tensors).enumerate() {
            let letters = subscript.chars().filter(char::is_ascii_alphabetic).count();
            let extra = match x.rank().checked_sub(letters) {
                Some(extra) if extra == 0 || subscript.contains("...") => extra,
                _ => {
                    let expected = format!("rank {letters}, as subscript {subscript:?} has");
                    return Err(Error::shape("einsum", format!("tensor {i}"), x.shape(), expected));
                }
            };
            widest = widest.max(extra);
            inputs.push(labels(equation, subscript, extra)?);
        }
        let output = match right {
            Some(right) => labels(equation, right, widest)?,
            None => Self::implied(&inputs, widest),
        };
        for (i, label) in output.iter().enumerate() {
            if output[..i].contains(label) || !inputs.iter().any(|input| input.contains(label)) {
                return Err(refusal(
                    equation,
                    "each letter of the output once, from among those of the inputs",
                ));
            }
        }
        let kept = output.iter().filter(|l| matches!(l, Label::Ellipsis(_))).count();
        if kept != widest {
            return Err(refusal(equation, "an ellipsis in the output, since the inputs have one"));
        }
        Ok(Equation { inputs, output })
    }

    /// Without an arrow: the ellipsis, then the letters that stand once, in alphabetical order.
    fn implied(inputs: &[Vec<Label>], widest: usize) -> Vec<Label> {
        let all =
            || inputs.iter().flatten().filter_map(|l| if let Label::Letter(c) = l { Some(*c) } else { None });
        let mut once: Vec<char> = all().filter(|c| all().filter(|d| d == c).count() == 1).collect();
        once.sort_unstable();
        (0..widest).rev().map(Label::Ellipsis).chain(once.into_iter().map(Label::Letter)).collect()
    }
}

impl Term {
    fn position(&self, label: Label) -> Option<usize> {
        self.labels.iter().position(|&l| l == label)
    }

    fn dim(&self, label: Label) -> usize {
        self.position(label).map_or(1, |axis| self.x.shape()[axis])
    }

    /// The axes in the order of `labels`; those it has not are new ones of size 1.
    fn ordered(&self, labels: &[Label]) -> Result<Tensor> {
        let order: Vec<isize> = labels.iter().filter_map(|&l| self.position(l)).map(|a| a as isize).collect();
        let shape: Shape = labels.iter().map(|&l| self.dim(l)).collect();
        self.x.transpose(&order)?.reshape(shape)
    }

    /// Takes the diagonal where a letter stands twice.
    fn without_repeats(mut self, equation: &str) -> Result<Self> {
        while let Some(second) = (1..self.labels.len()).find(|&i| self.labels[..i].contains(&self.labels[i]))
        {
            let first = self.position(self.labels[second]).unwrap_or(0);
            if self.x.shape()[first] != self.x.shape()[second] {
                let expected = format!("one size for each letter of {equation:?}");
                return Err(Error::shape("einsum", "a tensor", self.x.shape(), expected));
            }
            let others = (0..self.labels.len()).filter(|&a| a != first && a != second);
            let order: Vec<isize> = others.clone().chain([first, second]).map(|a| a as isize).collect();
            let labels = others.chain([first]).map(|a| self.labels[a]).collect();
            self = Term { x: self.x.transpose(&order)?.diag_part()?, labels };
        }
        Ok(self)
    }

    /// Sums over the axes that nobody else names.
    fn summed(self, wanted: impl Fn(Label) -> bool) -> Result<Self> {
        let unwanted: Vec<isize> =
            (0..self.labels.len()).filter(|&a| !wanted(self.labels[a])).map(|a| a as isize).collect();
        if unwanted.is_empty() {
            return Ok(self);
        }
        let labels = self.labels.iter().copied().filter(|&l| wanted(l)).collect();
        Ok(Term { x: self.x.sum_axes(unwanted, false)?, labels })
    }

    /// The product of two terms, summed over the axes that both have and nobody else wants.
    fn times(self, other: Term, wanted: impl Fn(Label) -> bool) -> Result<Self> {
        let (a, b) = (self.summed(|l| wanted(l) || other.labels.contains(&l))?, other);
        let b = b.summed(|l| wanted(l) || a.labels.contains(&l))?;
        let shared = |l: &&Label| b.labels.contains(l);
        let batch: Vec<Label> = a.labels.iter().filter(shared).filter(|&&l| wanted(l)).copied().collect();
        let inner: Vec<Label> = a.labels.iter().filter(shared).filter(|&&l| !wanted(l)).copied().collect();
        let left: Vec<Label> = a.labels.iter().filter(|l| !shared(l)).copied().collect();
        let right: Vec<Label> = b.labels.iter().filter(|l| !a.labels.contains(l)).copied().collect();
        let size = |t: &Term, labels: &[Label]| labels.iter().map(|&l| t.dim(l)).product::<usize>();
        let matrix = |t: &Term, rows: &[Label], columns: &[Label]| {
            let outer = batch.iter().map(|&l| t.dim(l));
            let shape: Shape = outer.chain([size(t, rows), size(t, columns)]).collect();
            t.ordered(&[&batch, rows, columns].concat())?.reshape(shape)
        };
        let (x, y) = (matrix(&a, &left, &inner)?, matrix(&b, &inner, &right)?);
        let product = if inner.is_empty() { (x * y)? } else { x.matmul(&y)? };
        let labels = [&batch[..], &left, &right].concat();
        let free = left.iter().map(|&l| a.dim(l)).chain(right.iter().map(|&l| b.dim(l)));
        let shape: Shape = product.shape()[..batch.len()].iter().copied().chain(free).collect();
        Ok(Term { x: product.reshape(shape)?, labels })
    }
}

/// Refuses a letter with two sizes; axes of an ellipsis may broadcast.
fn check_sizes(equation: &str, terms: &[Term]) -> Result<()> {
    let mut sizes: Vec<(Label, usize)> = Vec::new();
    for (i, term) in terms.iter().enumerate() {
        for (&label, &dim) in term.labels.iter().zip(term.x.shape().iter()) {
            match sizes.iter_mut().find(|(l, _)| *l == label) {
                None => sizes.push((label, dim)),
                Some((_, size)) if *size == dim => {}
                Some((Label::Ellipsis(_), size)) if *size == 1 || dim == 1 => *size = dim.max(*size),
                Some((_, size)) => {
                    let expected = format!("one size for each letter of {equation:?}, here {size}");
                    return Err(Error::shape("einsum", format!("tensor {i}"), term.x.shape(), expected));
                }
            }
        }
    }
    Ok(())
}

/// The two terms whose product takes the fewest multiplications, of equal ones those that leave the fewest elements.
fn cheapest(terms: &[Term], output: &[Label]) -> (usize, usize) {
    let pairs = (0..terms.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let cost = |&(a, b): &(usize, usize)| {
        let others = || (0..terms.len()).filter(|&i| i != a && i != b).map(|i| &terms[i]);
        let labels =
            terms[a].labels.iter().chain(terms[b].labels.iter().filter(|&&l| terms[a].position(l).is_none()));
        let (mut work, mut left) = (1usize, 1usize);
        for &label in labels {
            let dim = terms[a].dim(label).max(terms[b].dim(label));
            let wanted = output.contains(&label) || others().any(|t| t.position(label).is_some());
            work = work.saturating_mul(dim);
            left = left.saturating_mul(if wanted { dim } else { 1 });
        }
        (work, left)
    };
    pairs.min_by_key(cost).unwrap_or((0, 0))
}

/// The product of all terms, summed over the axes that are not in the output.
fn contracted(mut terms: Vec<Term>, output: &[Label]) -> Result<Option<Term>> {
    while terms.len() > 1 {
        let (a, b) = cheapest(&terms, output);
        let (second, first) = (terms.remove(b), terms.remove(a));
        let wanted = |l: Label| output.contains(&l) || terms.iter().any(|t| t.position(l).is_some());
        let product = first.times(second, wanted)?;
        terms.insert(a, product);
    }
    terms.pop().map(|term| term.summed(|l| output.contains(&l))).transpose()
}

impl Tensor {
    /// The product of tensors summed over named axes (Einstein's convention).
    ///
    /// `"ij,jk->ik"` multiplies matrices, `"bij,bjk->bik"` does so for each `b`, `"ij->j"` sums rows, `"ii->i"` is a
    /// diagonal. `...` stands for any axes, which broadcast. Without `->`, the output has the letters that stand once, in
    /// alphabetical order. Several tensors are multiplied two at a time, always those next whose product is the cheapest.
    ///
    /// ```
    /// use couplet::Tensor;
    /// let (a, b) = (Tensor::from([[1.0f32, 2.0]]), Tensor::from([[3.0f32], [4.0]]));
    /// assert_eq!(Tensor::einsum("ij,jk->ik", &[&a, &b])?.to_vec::<f32>()?, [11.0]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// The equation is malformed, does not fit the number or ranks of the tensors, or a letter has two sizes; or the
    /// dtypes differ or cannot be multiplied.
    pub fn einsum(equation: &str, tensors: &[&Tensor]) -> Result<Tensor> {
        let Equation { inputs, output } = Equation::parse(equation, tensors)?;
        let term =
            |(x, labels): (&&Tensor, Vec<Label>)| Term { x: (*x).clone(), labels }.without_repeats(equation);
        let terms: Vec<Term> = tensors.iter().zip(inputs).map(term).collect::<Result<_>>()?;
        check_sizes(equation, &terms)?;
        let product = contracted(terms, &output)?;
        product.ok_or_else(|| refusal(equation, "at least one tensor"))?.ordered(&output)
    }

    /// The product summed over pairs of axes: `axes[n]` of `self` with `other_axes[n]` of `other`; the axes that are left
    /// follow each other, first those of `self`.
    ///
    /// # Errors
    /// An axis is out of range or named twice, the lists differ in length, or two axes of a pair in size; or the dtypes
    /// differ or cannot be multiplied.
    pub fn tensordot(&self, other: &Tensor, axes: &[isize], other_axes: &[isize]) -> Result<Tensor> {
        let split = |x: &Tensor, axes: &[isize]| -> Result<(Vec<usize>, Vec<usize>)> {
            let mut paired = Vec::new();
            for &axis in axes {
                let axis = resolve_axis("tensordot", axis, x.rank())?;
                if paired.contains(&axis) {
                    return Err(Error::argument("tensordot", "axes", format!("{axes:?}"), "each axis once"));
                }
                paired.push(axis);
            }
            Ok(((0..x.rank()).filter(|a| !paired.contains(a)).collect(), paired))
        };
        let ((left, paired), (right, other_paired)) = (split(self, axes)?, split(other, other_axes)?);
        let dims = |x: &Tensor, axes: &[usize]| axes.iter().map(|&a| x.shape()[a]).collect::<Vec<_>>();
        let inner = dims(self, &paired);
        if inner != dims(other, &other_paired) {
            let expected = format!("sizes {inner:?} along axes {other_axes:?}");
            return Err(Error::shape("tensordot", "the other tensor", other.shape(), expected));
        }
        let matrix = |x: &Tensor, rows: &[usize], columns: &[usize]| {
            let order: Vec<isize> = rows.iter().chain(columns).map(|&a| a as isize).collect();
            let size = |axes: &[usize]| dims(x, axes).iter().product::<usize>();
            x.transpose(&order)?.reshape([size(rows), size(columns)])
        };
        let product = matrix(self, &left, &paired)?.matmul(&matrix(other, &other_paired, &right)?)?;
        product.reshape([dims(self, &left), dims(other, &right)].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::autodiff::check_gradients;

    fn numbers(shape: &[usize]) -> Tensor {
        let size: usize = shape.iter().product();
        Tensor::arange(1.0, size as f64 + 1.0, 1.0, DType::F64).unwrap().reshape(shape).unwrap()
    }

    fn einsum(equation: &str, tensors: &[&Tensor]) -> (Vec<usize>, Vec<f64>) {
        let y = Tensor::einsum(equation, tensors).unwrap();
        (y.shape().to_vec(), y.to_vec::<f64>().unwrap())
    }

    #[test]
    fn one_tensor_is_summed_transposed_and_cut_to_its_diagonal() {
        let x = numbers(&[2, 2]); // 1 2 / 3 4
        assert_eq!(einsum("ij->ji", &[&x]), (vec![2, 2], vec![1.0, 3.0, 2.0, 4.0]));
        assert_eq!(einsum("ij->j", &[&x]), (vec![2], vec![4.0, 6.0]));
        assert_eq!(einsum("ii", &[&x]), (vec![], vec![5.0]));
        assert_eq!(einsum("ii->i", &[&x]), (vec![2], vec![1.0, 4.0]));
        assert_eq!(einsum("...j -> j...", &[&x]), (vec![2, 2], vec![1.0, 3.0, 2.0, 4.0]));
    }

    #[test]
    fn products_follow_their_definition() {
        let (a, b) = (numbers(&[2, 3]), numbers(&[3, 2]));
        assert_eq!(einsum("ij,jk", &[&a, &b]), (vec![2, 2], vec![22.0, 28.0, 49.0, 64.0]));
        assert_eq!(einsum("ij,ji->", &[&a, &b]), (vec![], vec![22.0 + 64.0]));
        assert_eq!(einsum("ij,ij->ij", &[&a, &a]).1, [1.0, 4.0, 9.0, 16.0, 25.0, 36.0]);
        let (u, v) = (numbers(&[2]), numbers(&[3]));
        assert_eq!(einsum("i,j->ji", &[&u, &v]), (vec![3, 2], vec![1.0, 2.0, 2.0, 4.0, 3.0, 6.0]));
        assert_eq!(einsum("i,ij,j->", &[&u, &a, &v]), (vec![], vec![14.0 + 2.0 * 32.0]));
    }

    #[test]
    fn the_cheapest_product_comes_first() -> Result<()> {
        let (a, b, c) = (numbers(&[2, 3]), numbers(&[3, 100]), numbers(&[100, 1]));
        let term = |x: &Tensor, letters: &str| Term {
            x: x.clone(),
            labels: letters.chars().map(Label::Letter).collect(),
        };
        let output = [Label::Letter('i'), Label::Letter('l')];
        // From the left 2 3 100 + 2 100 1 multiplications, from the right 3 100 1 + 2 3 1.
        assert_eq!(cheapest(&[term(&a, "ij"), term(&b, "jk"), term(&c, "kl")], &output), (1, 2));
        let want = a.matmul(&b)?.matmul(&c)?.to_vec::<f64>()?;
        assert_eq!(einsum("ij,jk,kl->il", &[&a, &b, &c]), (vec![2, 1], want));
        Ok(())
    }

    #[test]
    fn an_ellipsis_broadcasts() {
        let (a, b) = (numbers(&[2, 1, 2]), numbers(&[3, 2]));
        let (shape, y) = einsum("...i,...i->...", &[&a, &b]);
        assert_eq!((shape, y), (vec![2, 3], vec![5.0, 11.0, 17.0, 11.0, 25.0, 39.0]));
    }

    #[test]
    fn gradients_flow_through_every_kind_of_axis() -> Result<()> {
        let (a, b) = ((numbers(&[2, 3, 4]) / 10.0)?, (numbers(&[2, 4, 5]) / 10.0)?);
        check_gradients(|x| Tensor::einsum("bij,bjk->kb", &[&x[0], &x[1]]), &[&a, &b], 1e-6)?;
        check_gradients(|x| x[0].tensordot(&x[1], &[0, 2], &[0, -2]), &[&a, &b], 1e-6)
    }

    #[test]
    fn malformed_equations_and_unequal_sizes_are_refused() {
        let (a, b) = (numbers(&[2, 3]), numbers(&[2, 3]));
        for equation in
            ["ij", "ij,jk,kl", "ij,j1->i", "ij,ij->k", "ij,ij->ii", "ijk,ij->i", "i...j...,ij->ij"]
        {
            assert!(Tensor::einsum(equation, &[&a, &b]).is_err(), "{equation}");
        }
        let message = Tensor::einsum("ij,jk->ik", &[&a, &b]).unwrap_err().to_string();
        assert!(message.contains("tensor 1") && message.contains("[2, 3]"), "{message}");
        assert!(Tensor::einsum("", &[]).is_err() && Tensor::einsum("...i->i", &[&a]).is_err());
    }

    #[test]
    fn tensordot_pairs_axes_in_the_order_given() -> Result<()> {
        let (a, b) = (numbers(&[2, 3]), numbers(&[3, 2]));
        assert_eq!(a.tensordot(&b, &[1], &[0])?.to_vec::<f64>()?, [22.0, 28.0, 49.0, 64.0]);
        assert_eq!(a.tensordot(&b, &[0, 1], &[-1, 0])?.item::<f64>()?, 22.0 + 64.0);
        assert_eq!(a.tensordot(&b, &[], &[])?.shape(), &[2, 3, 3, 2]);
        assert!(a.tensordot(&b, &[0], &[0]).is_err() && a.tensordot(&b, &[1, 1], &[0, 0]).is_err());
        assert!(a.tensordot(&b, &[1], &[]).is_err() && a.tensordot(&b, &[2], &[0]).is_err());
        Ok(())
    }
}
