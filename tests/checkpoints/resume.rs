//! A run that was stopped and goes on equals the one that was not, bit for bit.

use couplet::checkpoint::{Checkpoint, Format};
use couplet::data::{Batches, Dataset};
use couplet::optim::Adam;
use couplet::prelude::*;

use crate::support::Folder;

/// A model with dropout, its optimiser, shuffled batches and the generator of the dropout.
struct Run {
    net: MLP,
    adam: Adam,
    batches: Batches<(Tensor, Tensor)>,
    generator: Generator,
}

impl Run {
    fn new(seed: u64, prefetch: usize) -> Self {
        let draws = Generator::seed(5);
        let x = draws.normal([23, 3], 0.0, 1.0, DType::F32).unwrap();
        let y = draws.normal([23, 1], 0.0, 1.0, DType::F32).unwrap();
        let batches = Dataset::new((x, y)).unwrap().shuffle(seed).batches(4).repeat(2).prefetch(prefetch);
        Run {
            net: MLP::new([8, 1]).dropout_rate(0.3),
            adam: Adam::new(0.01),
            batches,
            generator: Generator::seed(seed),
        }
    }

    fn checkpoint(&self) -> Checkpoint<'_> {
        let checkpoint = Checkpoint::new().track("net", &self.net).track("optimizer", &self.adam);
        checkpoint.track("iterator", &self.batches).track("dropout", &self.generator)
    }

    /// Some steps, over the end of a pass where there is one.
    fn train(&self, steps: usize) {
        let mut done = 0;
        while done < steps {
            for batch in (&self.batches).into_iter().take(steps - done) {
                let (x, y) = batch.unwrap();
                random::with(&self.generator, || {
                    let tape = GradientTape::new();
                    let loss = (self.net.forward_t(&x, true).unwrap() - &y)
                        .unwrap()
                        .square()
                        .unwrap()
                        .mean()
                        .unwrap();
                    let parameters = self.net.trainable_variables().unwrap();
                    self.adam.apply(&tape.gradient(&loss, &parameters).unwrap(), &parameters).unwrap();
                });
                done += 1;
            }
        }
    }

    /// Everything that makes up the run, as bytes of a file.
    fn bits(&self, folder: &Folder) -> Vec<(String, Vec<u8>)> {
        let path = self.checkpoint().write(folder.path("bits")).unwrap();
        let reader = couplet::checkpoint::CheckpointReader::open(path).unwrap();
        let bytes = |key: &str| match reader.get(key).unwrap() {
            couplet::checkpoint::Stored::Tensor(x) if x.dtype() == DType::F32 => {
                x.to_vec::<f32>().unwrap().into_iter().flat_map(|x| x.to_bits().to_le_bytes()).collect()
            }
            couplet::checkpoint::Stored::Tensor(x) => {
                x.to_vec::<i64>().unwrap().into_iter().flat_map(i64::to_le_bytes).collect()
            }
            couplet::checkpoint::Stored::Strings(strings) => strings.values.concat(),
            other => panic!("{other:?}"),
        };
        reader.paths().iter().map(|(path, key)| (path.clone(), bytes(key))).collect()
    }
}

#[test]
fn seven_steps_and_the_rest_in_another_process_equal_one_run() {
    for format in [Format::Native, Format::TensorFlow] {
        // 7: within an epoch of 6 batches. 12: at the end of a pass. 0: before anything is made.
        for (stop, prefetch) in [(7, 0), (7, 3), (12, 0), (13, 2)] {
            let folder = Folder::new();
            let whole = random::with(&Generator::seed(1), || {
                let run = Run::new(1, 0);
                run.train(stop + 20);
                run
            });
            let path = random::with(&Generator::seed(1), || {
                let run = Run::new(1, prefetch);
                run.train(stop);
                let path = run.checkpoint().format(format).save(folder.path("ckpt")).unwrap();
                // What comes after the save has no part in it.
                run.train(3);
                path
            });
            // Other seeds, so that all that matters comes from the file.
            let resumed = random::with(&Generator::seed(99), || {
                let run = Run::new(2, prefetch);
                let checkpoint = run.checkpoint();
                let status = checkpoint.restore(&path).unwrap();
                run.train(20);
                status.assert_consumed().unwrap();
                drop(status);
                drop(checkpoint);
                run
            });
            let (want, got) = (whole.bits(&folder), resumed.bits(&folder));
            assert!(want.iter().any(|(path, _)| path.starts_with("optimizer/m/")));
            assert_eq!(want.len(), got.len());
            for (want, got) in want.iter().zip(&got) {
                assert_eq!(want, got, "{format:?}, stopped after {stop} steps");
            }
        }
    }
}

#[test]
fn a_copy_of_batches_is_a_stream_of_its_own_at_the_same_place() {
    let batches = Run::new(3, 0).batches;
    (&batches).into_iter().take(2).for_each(|batch| drop(batch.unwrap()));
    let copy = couplet::Visit::copy(&batches, &mut couplet::Copies::default());
    let next = |batches: &Batches<(Tensor, Tensor)>| {
        let (x, _) = batches.into_iter().next().unwrap().unwrap();
        x.to_vec::<f32>().unwrap()
    };
    let (first, second) = (next(&batches), next(&batches));
    assert_ne!(first, second);
    assert_eq!([next(&copy), next(&copy)], [first, second]);
}
