//! Saving and restoring objects by name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::format::{self, Format};
use super::objects::{Binding, Live, Root};
use super::restore;
use super::snapshot::{SAVE_COUNTER, Snapshot};
use super::state_file::CheckpointState;
use super::status::RestoreStatus;
use super::temporary::with_suffix;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::Zeros;
use crate::kernels::parallel::with_threads;
use crate::module::{Once, Visit};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Objects that are saved and restored together, each under a name.
///
/// An object is anything that may be a field of a module: a module, an optimiser, a [`Variable`], a
/// [`Generator`](crate::random::Generator), the [`Batches`](crate::data::Batches) of a dataset, a list or a map of them. Values
/// are matched by the path that leads to them, `net/_layers/0/w`, never by names of variables or by order. Parts that are not
/// made yet take their value when they are: no initialiser runs, and nothing is drawn.
///
/// ```
/// use couplet::{checkpoint::Checkpoint, optim::Adam, prelude::*};
/// # let folder = std::env::temp_dir().join(format!("couplet-checkpoint-{}", std::process::id()));
/// let x = Tensor::ones([4, 3], DType::F32)?;
/// let (net, optimizer) = (MLP::new([8, 1]), Adam::new(0.01));
/// let y = net.forward(&x)?;
/// let path = Checkpoint::new().track("net", &net).track("optimizer", &optimizer).save(folder.join("ckpt"))?;
///
/// let (net, optimizer) = (MLP::new([8, 1]), Adam::new(0.01)); // in the next run of the program
/// let checkpoint = Checkpoint::new().track("net", &net).track("optimizer", &optimizer);
/// let status = checkpoint.restore(&path)?;
/// assert_eq!(net.forward(&x)?.to_vec::<f32>()?, y.to_vec::<f32>()?);
/// status.assert_consumed()?;
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), couplet::Error>(())
/// ```
pub struct Checkpoint<'a> {
    root: Root<'a>,
    format: Format,
    save_counter: Once<Variable>,
    /// Held while files are written.
    background: Mutex<Option<JoinHandle<Result<()>>>>,
}

impl<'a> Checkpoint<'a> {
    /// Nothing yet.
    pub fn new() -> Self {
        Checkpoint {
            root: Root::default(),
            format: Format::default(),
            save_counter: Once::new(),
            background: Mutex::new(None),
        }
    }

    /// The parts of one object at the root: a file of it holds `w` where [`track`](Checkpoint::track) under `net` makes it
    /// `net/w`.
    pub fn of(object: &'a dyn Visit) -> Self {
        let mut checkpoint = Checkpoint::new();
        checkpoint.root.base = Some(object);
        checkpoint
    }

    /// Adds an object under a name.
    #[must_use]
    pub fn track(mut self, name: impl Into<String>, object: &'a dyn Visit) -> Self {
        self.root.tracked.push((name.into(), object));
        self
    }

    /// The format that is written. Default: the library's own. Every format is read.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// The number of saves, an `i64` scalar, saved with the objects. It is made by the first save or restore.
    ///
    /// # Errors
    /// What was restored for it is no `i64` scalar.
    pub fn save_counter(&self) -> Result<&Variable> {
        self.save_counter.get_or_init(|| Variable::non_trainable(SAVE_COUNTER, &[], DType::I64, Zeros))
    }

    /// Counts the save, writes the values of all objects to `prefix-N`, where N is the count, and names the checkpoint in the
    /// file `checkpoint` beside it. Returns `prefix-N`. Folders that are missing are made.
    ///
    /// When it returns, the checkpoint is on the disk; when it fails, or the process ends meanwhile, there is none of that name,
    /// or the older one, and the count is what it was.
    ///
    /// # Errors
    /// Two objects have the same name, a module cannot make what needs no input, plain state refuses to be written, a file
    /// cannot be written, or an earlier save in the background failed.
    pub fn save(&self, prefix: impl AsRef<Path>) -> Result<PathBuf> {
        self.save_counted(prefix.as_ref(), When::Now)
    }

    /// As [`save`](Checkpoint::save), in the background: the values are those of this moment, however training goes on. An
    /// error of writing is that of the next call that saves or restores, or of [`sync`](Checkpoint::sync).
    ///
    /// # Errors
    /// Those of the preparation, or an earlier save in the background failed.
    pub fn save_async(&self, prefix: impl AsRef<Path>) -> Result<PathBuf> {
        self.save_counted(prefix.as_ref(), When::InBackground)
    }

    fn save_counted(&self, prefix: &Path, when: When) -> Result<PathBuf> {
        let name = |count| with_suffix(prefix, &format!("-{count}"));
        self.count_and_write(when, 0, name, |path| CheckpointState::only(path).write_beside(path))
    }

    /// Waits for a save in the background.
    ///
    /// # Errors
    /// It failed.
    pub fn sync(&self) -> Result<()> {
        self.finished().map(drop)
    }

    /// Writes the values of all objects to `prefix` itself: nothing is counted, and no other file changes.
    ///
    /// # Errors
    /// As in [`save`](Checkpoint::save).
    pub fn write(&self, prefix: impl AsRef<Path>) -> Result<PathBuf> {
        let _background = self.finished()?;
        let path = prefix.as_ref().to_owned();
        self.format.write(&path, &self.snapshot()?)?;
        Ok(path)
    }

    /// Gives the objects the values that [`save`](Checkpoint::save) wrote, count included. Values for parts that are not made
    /// yet wait for them. `path` is what save returned, or the name of a file of any format.
    ///
    /// A later restore comes before an earlier one, value by value; the earlier still fills what the later lacks.
    ///
    /// # Errors
    /// There is no such checkpoint, it is damaged or holds no objects, or values have other shapes, dtypes or kinds than the
    /// program's. Nothing was changed then.
    pub fn restore(&self, path: impl AsRef<Path>) -> Result<RestoreStatus<'_>> {
        let status = self.restore_from(path.as_ref(), true)?;
        self.save_counter()?;
        Ok(status)
    }

    /// As [`restore`](Checkpoint::restore), of what [`write`](Checkpoint::write) wrote: no count is expected.
    ///
    /// # Errors
    /// As there.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<RestoreStatus<'_>> {
        self.restore_from(path.as_ref(), self.save_counter.get().is_some())
    }

    fn restore_from(&self, path: &Path, with_counter: bool) -> Result<RestoreStatus<'_>> {
        let _background = self.finished()?;
        self.check_names()?;
        let file = format::open(path)?;
        let graph = match file.graph()? {
            Some(graph) => graph,
            None => {
                let problem = "the file holds no objects, only names of tensors".to_owned();
                return Err(Error::File { path: path.display().to_string(), problem });
            }
        };
        restore::check(path, &graph)?;
        let root = self.root(with_counter);
        let live = Live::explore(&root);
        let binding = Binding::new(&graph, &live);
        restore::restore(&*file, &graph, &live, &binding)?;
        drop(live);
        Ok(RestoreStatus::new(root, path.display().to_string(), graph, &binding))
    }

    /// The objects, sorted by name, and the counter.
    fn root(&self, with_counter: bool) -> Root<'_> {
        let mut root = self.root.clone();
        root.tracked.sort_by(|(a, _), (b, _)| a.cmp(b));
        if with_counter {
            root.tracked.push((SAVE_COUNTER.to_owned(), &self.save_counter));
        }
        root
    }

    fn snapshot(&self) -> Result<Snapshot> {
        self.check_names()?;
        Snapshot::take(&self.root(self.save_counter.get().is_some()))
    }

    fn check_names(&self) -> Result<()> {
        let mut names: Vec<&str> = self.root.tracked.iter().map(|(name, _)| name.as_str()).collect();
        names.push(SAVE_COUNTER);
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => {
                let expected = format!("names that differ from each other and from {SAVE_COUNTER}");
                Err(Error::argument("track", "name", format!("{:?} twice", twice[0]), expected))
            }
            None => Ok(()),
        }
    }

    /// Counts one save more, beyond `last` in any case, and writes the values to what `name` makes of the count; then comes
    /// `after`. If anything fails before the background takes over, the count is what it was.
    pub(super) fn count_and_write(
        &self,
        when: When,
        last: i64,
        name: impl FnOnce(i64) -> PathBuf,
        after: impl FnOnce(&Path) -> Result<()> + Send + 'static,
    ) -> Result<PathBuf> {
        let mut background = self.finished()?;
        let counter = self.save_counter()?;
        let before = counter.value();
        let count = before.item::<i64>()?.max(last) + 1;
        let (path, format) = (name(count), self.format);
        let to = path.clone();
        counter.assign(&Tensor::from(count))?;
        let started = self.snapshot().and_then(|snapshot| {
            let job = move || format.write(&to, &snapshot).and_then(|()| after(&to));
            match when {
                When::Now => job().map(|()| None),
                // The other threads belong to the training.
                When::InBackground => in_background(move || with_threads(1, job)).map(Some),
            }
        });
        match started {
            Ok(thread) => {
                *background = thread;
                Ok(path)
            }
            Err(e) => {
                counter.assign(&before)?;
                Err(e)
            }
        }
    }

    /// Waits until nothing is written in the background, and keeps it so.
    ///
    /// # Errors
    /// That of what was written.
    pub(super) fn finished(&self) -> Result<MutexGuard<'_, Option<JoinHandle<Result<()>>>>> {
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        match background.take().map(JoinHandle::join) {
            Some(Ok(Err(e))) => Err(e),
            Some(Err(_)) => {
                let problem = "the save in the background panicked";
                Err(Error::usage("save_async", problem, "save again"))
            }
            _ => Ok(background),
        }
    }
}

/// When files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Now,
    InBackground,
}

fn in_background(job: impl FnOnce() -> Result<()> + Send + 'static) -> Result<JoinHandle<Result<()>>> {
    let thread = thread::Builder::new().name("couplet-save".to_owned()).spawn(job);
    thread.map_err(|e| Error::usage("save_async", format!("no thread can be started: {e}"), "use save"))
}

impl Default for Checkpoint<'_> {
    fn default() -> Self {
        Checkpoint::new()
    }
}

impl Drop for Checkpoint<'_> {
    /// Waits for a save in the background; its error is reported through `log`.
    fn drop(&mut self) {
        if let Err(e) = self.finished() {
            log::error!("the last save in the background failed: {e}");
        }
    }
}

impl fmt::Debug for Checkpoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.root.tracked.iter().map(|(name, _)| name).collect();
        f.debug_struct("Checkpoint")
            .field("tracked", &names)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}
