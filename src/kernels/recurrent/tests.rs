use super::super::gemm::Matrix;
use super::super::parallel::with_threads;
use super::*;

fn numbers(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37 + seed * 101) as f64 * 0.7).sin()).collect()
}

fn narrow<T: Real>(x: &[f64]) -> Vec<T> {
    x.iter().map(|&x| T::from_f64(x)).collect()
}

fn assert_close<T: Real>(got: &[T], want: &[f64], what: &str) {
    let tolerance = if size_of::<T>() == 8 { 1e-13 } else { 2e-5 };
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (got.as_f64() - want).abs();
        assert!(error <= tolerance * (1.0 + want.abs()), "{what} {i}: {got:?}, expected {want}");
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `a b`, row by row.
fn product(a: &[f64], b: &[f64], depth: usize, cols: usize) -> Vec<f64> {
    let row = |a: &[f64]| -> Vec<f64> {
        (0..cols).map(|j| a.iter().enumerate().map(|(k, a)| a * b[k * cols + j]).sum()).collect()
    };
    a.chunks(depth).flat_map(row).collect()
}

fn transposed(a: &[f64], rows: usize, cols: usize) -> Vec<f64> {
    (0..cols).flat_map(|j| (0..rows).map(move |i| a[i * cols + j])).collect()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// Gates, cells and outputs of one step, unit by unit.
fn cell(hidden: usize, sums: &[f64], before: &[f64]) -> [Vec<f64>; 3] {
    let (mut gates, mut cells, mut ys) = (sums.to_vec(), Vec::new(), Vec::new());
    for (row, before) in gates.chunks_mut(4 * hidden).zip(before.chunks(hidden)) {
        for (u, before) in before.iter().enumerate() {
            for q in [0, 1, 3] {
                row[q * hidden + u] = sigmoid(row[q * hidden + u]);
            }
            row[2 * hidden + u] = row[2 * hidden + u].tanh();
            let [i, f, g, o] = [0, 1, 2, 3].map(|q| row[q * hidden + u]);
            let cell = f * before + i * g;
            cells.push(cell);
            ys.push(o * cell.tanh());
        }
    }
    [gates, cells, ys]
}

/// Gradients of the arguments of the gates and of the cell before, unit by unit.
fn cell_slopes(hidden: usize, of: [&[f64]; 3], dy: &[f64], dcell: &[f64]) -> [Vec<f64>; 2] {
    let [gates, before, cells] = of;
    let (mut dsums, mut dbefore) = (vec![0.0; gates.len()], vec![0.0; before.len()]);
    for n in 0..before.len() {
        let at = |q: usize| (4 * (n / hidden) + q) * hidden + n % hidden;
        let [i, f, g, o] = [0, 1, 2, 3].map(|q| gates[at(q)]);
        let t = cells[n].tanh();
        let d = dcell[n] + dy[n] * o * (1.0 - t * t);
        dsums[at(0)] = d * g * i * (1.0 - i);
        dsums[at(1)] = d * before[n] * f * (1.0 - f);
        dsums[at(2)] = d * i * (1.0 - g * g);
        dsums[at(3)] = dy[n] * t * o * (1.0 - o);
        dbefore[n] = d * f;
    }
    [dsums, dbefore]
}

fn check_cell<T: Real>(rows: usize, hidden: usize) {
    let size = rows * hidden;
    let (sums, before) = (numbers(4 * size, 1), numbers(size, 2));
    let [want_gates, want_cell, want_y] = cell(hidden, &sums, &before);
    let mut gates = narrow::<T>(&sums);
    let (mut c, mut y) = (vec![T::nan(); size], vec![T::nan(); size]);
    lstm_cell(hidden, &mut gates, &narrow::<T>(&before), &mut c, &mut y);
    assert_close(&gates, &want_gates, "gate");
    assert_close(&c, &want_cell, "cell");
    assert_close(&y, &want_y, "output");

    let (dy, dcell) = (numbers(size, 3), numbers(size, 4));
    let zeros = vec![0.0; size];
    for (with_y, with_cell) in [(true, true), (true, false), (false, true)] {
        let (dy_or, dcell_or) = (if with_y { &dy } else { &zeros }, if with_cell { &dcell } else { &zeros });
        let [want, want_before] = cell_slopes(hidden, [&want_gates, &before, &want_cell], dy_or, dcell_or);
        let (mut dsums, mut dbefore) = (vec![T::nan(); 4 * size], vec![T::nan(); size]);
        let (narrow_dy, narrow_dcell) = (narrow::<T>(&dy), narrow::<T>(&dcell));
        let forward = CellGradients {
            gates: &gates,
            before: &narrow::<T>(&before),
            cell: &c,
            dy: with_y.then_some(&narrow_dy),
            dcell: with_cell.then_some(&narrow_dcell),
        };
        lstm_cell_gradients(hidden, forward, &mut dsums, &mut dbefore);
        assert_close(&dsums, &want, "gradient of a gate");
        assert_close(&dbefore, &want_before, "gradient of the cell before");
    }
}

#[test]
fn the_gates_of_an_lstm_follow_their_formulas() {
    // The last has more elements than one thread takes.
    for (rows, hidden) in [(0, 3), (1, 1), (3, 16), (2, 37), (300, 40)] {
        check_cell::<f64>(rows, hidden);
        check_cell::<f32>(rows, hidden);
    }
}

fn check_sequence<T: Real>(steps: usize, batch: usize, inputs: usize, hidden: usize) {
    let step = batch * hidden;
    // Small weights, so that the gates do not saturate.
    let scaled = |n: usize, seed: usize, by: usize| -> Vec<f64> {
        numbers(n, seed).iter().map(|x| x / (by as f64).sqrt()).collect()
    };
    let (x, b) = (numbers(steps * batch * inputs, 1), numbers(4 * hidden, 2));
    let (w_i, w_h) = (scaled(inputs * 4 * hidden, 3, inputs), scaled(hidden * 4 * hidden, 4, hidden));
    let (h, c) = (numbers(step, 5), numbers(step, 6));

    let (mut want_gates, mut want_cells, mut want_ys) = (Vec::new(), Vec::new(), Vec::new());
    for t in 0..steps {
        let last = if t == 0 { &h[..] } else { &want_ys[(t - 1) * step..] };
        let before = if t == 0 { c.clone() } else { want_cells[(t - 1) * step..].to_vec() };
        let x = &x[t * batch * inputs..(t + 1) * batch * inputs];
        let both = sum(&product(x, &w_i, inputs, 4 * hidden), &product(last, &w_h, hidden, 4 * hidden));
        let sums = sum(&both, &b.repeat(batch));
        let [gates, cells, ys] = cell(hidden, &sums, &before);
        want_gates.extend(gates);
        want_cells.extend(cells);
        want_ys.extend(ys);
    }
    let size = Sequence { steps, batch, hidden };
    let (w_i, narrow_w) = (narrow::<T>(&w_i), narrow::<T>(&w_h));
    let w = Matrix::row_major(&narrow_w, hidden, 4 * hidden);
    let run = || {
        let mut parts = [4 * steps * step, steps * step, steps * step].map(|n| vec![T::nan(); n]);
        let [gates, cells, ys] = &mut parts;
        let (x, b) = (narrow::<T>(&x), narrow::<T>(&b));
        let x = Matrix::row_major(&x, steps * batch, inputs);
        let weights = (Matrix::row_major(&w_i, inputs, 4 * hidden), w, &b[..]);
        let state = (narrow::<T>(&h), narrow::<T>(&c));
        lstm_sequence(size, x, weights, (&state.0, &state.1), gates, cells, ys);
        parts
    };
    let [gates, cells, ys] = run();
    assert!(with_threads(1, run) == [gates.clone(), cells.clone(), ys.clone()], "threads matter");
    assert_close(&gates, &want_gates, "gate");
    assert_close(&cells, &want_cells, "cell");
    assert_close(&ys, &want_ys, "output");

    let (dys, dcells) = (numbers(steps * step, 7), numbers(steps * step, 8));
    let mut want = vec![0.0; 4 * steps * step];
    let (mut dh, mut dc) = (vec![0.0; step], vec![0.0; step]);
    for t in (0..steps).rev() {
        let before = if t == 0 { &c[..] } else { &want_cells[(t - 1) * step..t * step] };
        let of =
            [&want_gates[4 * t * step..4 * (t + 1) * step], before, &want_cells[t * step..(t + 1) * step]];
        let (dy, dcell) = (sum(&dys[t * step..], &dh), sum(&dcells[t * step..], &dc));
        let [dsums, dbefore] = cell_slopes(hidden, of, &dy, &dcell);
        dh = product(&dsums, &transposed(&w_h, hidden, 4 * hidden), 4 * hidden, hidden);
        dc = dbefore;
        want[4 * t * step..4 * (t + 1) * step].copy_from_slice(&dsums);
    }
    let mut got = [4 * steps * step, step, step].map(|n| vec![T::nan(); n]);
    let [dgates, got_dh, got_dc] = &mut got;
    let forward = SequenceGradients {
        size,
        w,
        c: &narrow::<T>(&c),
        gates: &gates,
        cells: &cells,
        dys: Some(&narrow::<T>(&dys)),
        dcells: Some(&narrow::<T>(&dcells)),
    };
    lstm_sequence_gradients(forward, dgates, got_dh, got_dc);
    assert_close(dgates, &want, "gradient of a gate");
    assert_close(got_dh, &dh, "gradient of the state");
    assert_close(got_dc, &dc, "gradient of the cell");
}

#[test]
fn a_sequence_is_its_steps_one_after_the_other() {
    // Among them more rows than a chunk has, more units than a panel has rows, and products worth two threads.
    for (steps, batch, inputs, hidden) in
        [(1, 1, 1, 1), (3, 2, 5, 3), (2, 250, 2, 17), (2, 33, 3, 270), (5, 4, 1, 70)]
    {
        check_sequence::<f64>(steps, batch, inputs, hidden);
        check_sequence::<f32>(steps, batch, inputs, hidden);
    }
}

fn check_gru<T: Real>(rows: usize, hidden: usize) {
    let size = rows * hidden;
    let (sums, more, last) = (numbers(3 * size, 1), numbers(2 * size, 2), numbers(size, 3));
    let (h, dy, dreset) = (numbers(size, 4), numbers(size, 5), numbers(size, 6));
    let at = |n: usize, q: usize| (3 * (n / hidden) + q) * hidden + n % hidden;
    let also = |n: usize, q: usize| (2 * (n / hidden) + q) * hidden + n % hidden;

    let mut gates = narrow::<T>(&sums);
    let (mut reset, mut y) = (vec![T::nan(); size], vec![T::nan(); size]);
    let narrow_h = narrow::<T>(&h);
    gru_gates(hidden, &mut gates, &narrow::<T>(&more), &narrow_h, &mut reset);
    gru_candidate(hidden, &mut gates, &narrow::<T>(&last), &narrow_h, &mut y);
    let mut dgates = vec![T::nan(); 3 * size];
    let (narrow_dy, mut through) = (narrow::<T>(&dy), narrow::<T>(&dreset));
    let mut dh = vec![T::nan(); size];
    gru_candidate_gradients(hidden, &gates, &narrow_h, &narrow_dy, &mut dgates);
    gru_reset_gradients(hidden, &gates, (&narrow_h, &narrow_dy), &mut through, &mut dgates, &mut dh);

    let mut want = [3 * size, size, size, 3 * size, size].map(|n| vec![0.0; n]);
    for n in 0..size {
        let [z, r] = [0, 1].map(|q| sigmoid(sums[at(n, q)] + more[also(n, q)]));
        let a = (sums[at(n, 2)] + last[n]).tanh();
        let [of_gates, of_reset, of_y, of_dgates, of_dh] = &mut want;
        (0..3).for_each(|q| of_gates[at(n, q)] = [z, r, a][q]);
        of_reset[n] = r * h[n];
        of_y[n] = (1.0 - z) * h[n] + z * a;
        of_dgates[at(n, 0)] = dy[n] * (a - h[n]) * z * (1.0 - z);
        of_dgates[at(n, 1)] = dreset[n] * h[n] * r * (1.0 - r);
        of_dgates[at(n, 2)] = dy[n] * z * (1.0 - a * a);
        of_dh[n] = dy[n] * (1.0 - z) + dreset[n] * r;
    }
    assert_close(&gates, &want[0], "gate");
    assert_close(&reset, &want[1], "reset state");
    assert_close(&y, &want[2], "output");
    assert_close(&dgates, &want[3], "gradient of a gate");
    assert_close(&dh, &want[4], "gradient of the state");
    assert_close(&through, &want[1], "reset state of the gradients");
}

#[test]
fn the_gates_of_a_gru_follow_their_formulas() {
    for (rows, hidden) in [(0, 3), (1, 1), (3, 16), (2, 37), (300, 40)] {
        check_gru::<f64>(rows, hidden);
        check_gru::<f32>(rows, hidden);
    }
}
