//! The text file that names the checkpoints of a folder.

use couplet::Error;
use couplet::checkpoint::{Checkpoint, CheckpointManager, latest_checkpoint};

use super::checked::{folder, write};

/// A file `checkpoint` in a folder without checkpoints.
pub fn run(bytes: &[u8]) {
    let folder = folder("state");
    write(&folder.join("checkpoint"), bytes);
    match latest_checkpoint(&folder) {
        Ok(path) => assert_eq!(path, None),
        Err(e) => assert!(matches!(e, Error::File { .. }), "{e:?}"),
    }
    if let Ok(manager) = CheckpointManager::new(Checkpoint::new(), &folder) {
        // It may list what is not there: every name takes two bytes of the text at least.
        assert!(manager.checkpoints().len() <= bytes.len() / 2 + 1);
    }
}
