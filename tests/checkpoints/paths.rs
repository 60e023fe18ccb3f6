//! What a path may lead to, and what is said where it leads nowhere.

use couplet::Error;
use couplet::checkpoint::{Checkpoint, Format, latest_checkpoint};

use crate::support::{Folder, values, var};

#[test]
fn every_wrong_path_is_told_what_would_be_right() {
    let folder = Folder::new();
    let v = var(&[1.0]);
    let checkpoint = Checkpoint::new().track("v", &v);
    let native = checkpoint.save(folder.path("run/ckpt")).unwrap();
    let bundle =
        Checkpoint::new().track("v", &v).format(Format::TensorFlow).write(folder.path("tf")).unwrap();
    std::fs::create_dir_all(folder.path("model/variables")).unwrap();
    std::fs::write(folder.path("model/saved_model.pb"), "").unwrap();
    std::fs::create_dir(folder.path("bare")).unwrap();
    std::fs::write(folder.path("note.txt"), "words").unwrap();
    let cases = [
        ("", "the path is empty"),
        ("run/ckpt", "these begin alike: ckpt-1"),
        ("run/other", "give the path that save returned, number included"),
        ("absent/ckpt-1", "there is no checkpoint of this name"),
        ("run", "latest_checkpoint"),
        ("bare", "give the prefix of a checkpoint in it"),
        ("model", "model/variables/variables"),
        ("tf.index", "give its prefix, "),
        ("tf.data-00000-of-00001", "give its prefix, "),
        ("note.txt", "no format of checkpoints has files of this name"),
    ];
    for (name, message) in cases {
        let path = if name.is_empty() { name.into() } else { folder.path(name) };
        for e in [checkpoint.restore(&path).unwrap_err(), checkpoint.read(&path).unwrap_err()] {
            assert!(
                matches!(&e, Error::File { path: named, .. } if *named == path.display().to_string()),
                "{e}"
            );
            assert!(e.to_string().contains(message), "{name:?}: {e}");
        }
    }
    // The prefix, and the one file of the library's own format.
    checkpoint.restore(&native).unwrap().assert_consumed().unwrap();
    checkpoint.restore(native.with_file_name("ckpt-1.couplet")).unwrap().assert_consumed().unwrap();
    checkpoint.restore(bundle).unwrap().expect_partial();
    let latest = latest_checkpoint(folder.path("run")).unwrap().unwrap();
    checkpoint.restore(latest).unwrap().assert_consumed().unwrap();
}

#[test]
fn a_restore_that_fails_is_forgotten() {
    let folder = Folder::new();
    let v = var(&[1.0]);
    let checkpoint = Checkpoint::new().track("v", &v);
    checkpoint.restore(folder.path("absent")).unwrap_err();
    assert_eq!(checkpoint.save(folder.path("ckpt")).unwrap(), folder.path("ckpt-1"));
    v.assign(&couplet::Tensor::from(vec![0.0f32])).unwrap();
    checkpoint.restore(folder.path("ckpt-1")).unwrap().assert_consumed().unwrap();
    assert_eq!(values(&v), [1.0]);
}
