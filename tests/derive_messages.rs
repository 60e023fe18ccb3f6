//! What the compiler says about modules that cannot be.
//!
//! Each file in `tests/ui` must fail to compile; the text after each `//~` in it must occur in the compiler's output.
//! Only our own words are compared, so that the tests hold for any version of the compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest compiled library of this crate, beside this test.
fn library(folder: &Path) -> PathBuf {
    let files = std::fs::read_dir(folder).expect("the folder of this test can be read").flatten();
    let libraries = files.filter(|file| {
        let name = file.file_name().into_string().unwrap_or_default();
        name.starts_with("libcouplet-") && name.ends_with(".rlib")
    });
    let newest = libraries.max_by_key(|file| file.metadata().and_then(|data| data.modified()).ok());
    newest.expect("cargo builds the library before its tests").path()
}

fn compile(source: &Path) -> (bool, String) {
    let test = std::env::current_exe().expect("a running test has a path");
    let folder = test.parent().expect("a file lies in a folder");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--error-format=human", "-o"])
        .arg(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ui.rmeta"))
        .arg("-L")
        .arg(format!("dependency={}", folder.display()))
        .arg("--extern")
        .arg(format!("couplet={}", library(folder).display()))
        .arg(source)
        .output()
        .expect("rustc can be started");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn modules_that_cannot_be_do_not_compile_and_say_what_to_write() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("tests/ui can be read").map(|file| file.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    for case in cases {
        let source = std::fs::read_to_string(&case).unwrap();
        let (compiled, said) = compile(&case);
        assert!(!compiled, "{} compiles", case.display());
        for line in source.lines() {
            let Some((_, expected)) = line.split_once("//~ ") else { continue };
            assert!(said.contains(expected), "{}: {expected:?} is not in\n{said}", case.display());
        }
    }
}
