//! Products summed over named axes.

use couplet::{Result, Tensor};
use proptest::prelude::*;

use crate::array::{Array, Layout, array, config, fewer, layout, positions, same};

/// Letters, the sizes they stand for, the letters of each operand, and those of the output.
#[derive(Debug, Clone)]
struct Case {
    sizes: Vec<usize>,
    inputs: Vec<Vec<usize>>,
    output: Vec<usize>,
}

const LETTERS: [char; 5] = ['i', 'j', 'k', 'B', 'z'];

impl Case {
    fn equation(&self) -> String {
        let word = |axes: &Vec<usize>| axes.iter().map(|&l| LETTERS[l]).collect::<String>();
        let inputs: Vec<String> = self.inputs.iter().map(word).collect();
        format!("{}->{}", inputs.join(","), word(&self.output))
    }

    fn shape(&self, axes: &[usize]) -> Vec<usize> {
        axes.iter().map(|&l| self.sizes[l]).collect()
    }
}

/// Up to three operands of up to three axes; a letter may stand twice in one.
fn case() -> impl Strategy<Value = (Case, Vec<Array>, Vec<Layout>)> {
    let sizes = prop::collection::vec(0usize..=3, LETTERS.len());
    let inputs = prop::collection::vec(prop::collection::vec(0..LETTERS.len(), 0..=3), 1..=3);
    (sizes, inputs, any::<[u8; 5]>(), 0usize..=3)
        .prop_map(|(sizes, inputs, keys, count)| {
            let mut output: Vec<usize> =
                (0..LETTERS.len()).filter(|l| inputs.iter().flatten().any(|m| m == l)).collect();
            output.sort_by_key(|&l| keys[l]);
            output.truncate(count);
            Case { sizes, inputs, output }
        })
        .prop_flat_map(|case| {
            let arrays: Vec<_> = case.inputs.iter().map(|axes| array(case.shape(axes))).collect();
            let layouts = prop::collection::vec(layout(), case.inputs.len());
            (Just(case), arrays, layouts)
        })
}

/// The sum over all values of all letters.
fn plain(case: &Case, arrays: &[Array]) -> Array {
    let used: Vec<usize> =
        (0..LETTERS.len()).filter(|l| case.inputs.iter().flatten().any(|m| m == l)).collect();
    let mut y = Array::zeros(&case.shape(&case.output));
    for p in positions(&case.shape(&used)) {
        let value = |l: usize| p[used.iter().position(|&u| u == l).unwrap()];
        let at = |axes: &[usize]| axes.iter().map(|&l| value(l)).collect::<Vec<_>>();
        let product: f64 = case.inputs.iter().zip(arrays).map(|(axes, x)| x.at(&at(axes))).product();
        *y.at_mut(&at(&case.output)) += product;
    }
    y
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_equation_follows_its_definition((case, arrays, layouts) in case()) {
        let tensors: Vec<Tensor> = arrays.iter().zip(&layouts).map(|(x, l)| x.laid(l)).collect();
        let y = Tensor::einsum(&case.equation(), &tensors.iter().collect::<Vec<_>>())?;
        same(&y, &plain(&case, &arrays))?;
        let whole: Vec<Tensor> = tensors.iter().map(|x| x.cast(couplet::DType::I32)).collect::<Result<_>>()?;
        same(&Tensor::einsum(&case.equation(), &whole.iter().collect::<Vec<_>>())?, &plain(&case, &arrays))?;
    }

    #[test]
    fn products_of_stacks_of_matrices((batch, of_a, of_b, [m, k, n], a, b) in (
        prop::collection::vec(0usize..=3, 0..=2), layout(), layout(), prop::array::uniform3(0usize..=4)
    ).prop_flat_map(|(batch, of_a, of_b, dims)| {
        let with = |x: usize, y: usize| batch.iter().copied().chain([x, y]).collect::<Vec<_>>();
        let (a, b) = (array(with(dims[0], dims[1])), array(with(dims[1], dims[2])));
        (Just(batch), Just(of_a), Just(of_b), Just(dims), a, b)
    })) {
        let y = a.laid(&of_a).matmul(b.laid(&of_b))?;
        let shape: Vec<usize> = batch.iter().copied().chain([m, n]).collect();
        let want = Array::from_fn(&shape, |p| {
            let (lead, [row, column]) = p.split_last_chunk::<2>().unwrap();
            (0..k).map(|i| a.at(&[lead, &[*row, i]].concat()) * b.at(&[lead, &[i, *column]].concat())).sum()
        });
        same(&y, &want)?;
    }

    #[test]
    fn an_ellipsis_stands_for_axes_that_broadcast((a, b) in (0usize..=2, 0usize..=2, prop::collection::vec((0usize..=2, any::<bool>(), any::<bool>()), 2), 0usize..=3)
        .prop_flat_map(|(left, right, dims, inner)| {
            let side = |count: usize, one: fn(&(usize, bool, bool)) -> bool| -> Vec<usize> {
                dims.iter().map(|d| if one(d) { 1 } else { d.0 }).skip(2 - count).chain([inner]).collect()
            };
            (array(side(left, |d| d.1)), array(side(right, |d| d.2)))
        }))
    {
        let y = Tensor::einsum("...i,...i->...", &[&a.tensor(), &b.tensor()])?;
        same(&y, &{
            let sum = (a.tensor() * b.tensor())?.sum_axes(-1, false)?;
            Array { shape: sum.shape().to_vec(), data: sum.to_vec::<f64>()? }
        })?;
    }
}

proptest! {
    #![proptest_config(fewer())]

    #[test]
    fn products_of_matrices_beyond_one_block((a, b, of_a, of_b) in prop::array::uniform3(1usize..=80)
        .prop_flat_map(|[m, k, n]| (array(vec![m, k]), array(vec![k, n]), layout(), layout())))
    {
        let [m, k, n] = [a.shape[0], a.shape[1], b.shape[1]];
        let mut want = Array::zeros(&[m, n]);
        for (row, left) in want.data.chunks_mut(n).zip(a.data.chunks(k)) {
            for (x, right) in left.iter().zip(b.data.chunks(n)) {
                row.iter_mut().zip(right).for_each(|(y, v)| *y += x * v);
            }
        }
        let (x, y) = (a.laid(&of_a), b.laid(&of_b));
        same(&x.matmul(&y)?, &want)?;
        let single = x.cast(couplet::DType::F32)?.matmul(y.cast(couplet::DType::F32)?)?;
        same(&single, &want)?;
    }
}
