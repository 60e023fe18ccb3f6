//! A folder of checkpoints, of which the newest are kept.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::checkpoint::{Checkpoint, When};
use super::format;
use super::state_file::CheckpointState;
use super::status::RestoreStatus;
use crate::error::{Error, Result};
use crate::variable::Variable;

/// The latest checkpoint of a folder, as its file `checkpoint` names it; `None` if the folder has none, or the files of the
/// latest are gone.
///
/// ```
/// use couplet::checkpoint::{Checkpoint, latest_checkpoint};
/// # let folder = std::env::temp_dir().join(format!("couplet-latest-{}", std::process::id()));
/// assert_eq!(latest_checkpoint(&folder)?, None);
/// Checkpoint::new().save(folder.join("ckpt"))?;
/// assert_eq!(latest_checkpoint(&folder)?, Some(folder.join("ckpt-1")));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// The file cannot be read or understood.
pub fn latest_checkpoint(folder: impl AsRef<Path>) -> Result<Option<PathBuf>> {
    let folder = folder.as_ref();
    let latest = CheckpointState::read(folder)?.map(|state| state.latest_in(folder));
    Ok(latest.filter(|path| {
        let exists = format::exists(path);
        if !exists {
            log::error!("{}: the files of the latest checkpoint are gone", path.display());
        }
        exists
    }))
}

/// Saves checkpoints in a folder, keeps the newest, and resumes from the newest one that is whole.
///
/// A loop that goes on where it was when its process ended:
///
/// ```
/// use couplet::{checkpoint::{Checkpoint, CheckpointManager}, prelude::*};
/// # let folder = std::env::temp_dir().join(format!("couplet-manager-{}", std::process::id()));
/// let step = Variable::from_tensor("step", Tensor::from(0i64));
/// let checkpoint = Checkpoint::new().track("step", &step);
/// let manager = CheckpointManager::new(checkpoint, &folder)?.max_to_keep(3);
/// match manager.restore_or_initialize()? {
///     Some(resumed) => println!("{resumed}"),
///     None => println!("training from the start"),
/// }
/// while step.value().item::<i64>()? < 50 {
///     step.assign_add(&Tensor::from(1i64))?;
///     if step.value().item::<i64>()? % 10 == 0 {
///         manager.save()?;
///     }
/// }
/// assert_eq!(manager.checkpoints(), ["ckpt-3", "ckpt-4", "ckpt-5"].map(|name| folder.join(name)));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// One manager works on a folder at a time. Checkpoints are deleted when a newer one is on the disk, and only files of exactly
/// their names. The folder may be moved: its file `checkpoint` names them relative to itself.
pub struct CheckpointManager<'a> {
    checkpoint: Checkpoint<'a>,
    directory: PathBuf,
    name: String,
    in_background: bool,
    /// The step, and how many of them lie between two saves.
    interval: Option<(Variable, i64)>,
    /// The step of the last save.
    last_step: Mutex<Option<i64>>,
    folder: Arc<Mutex<Folder>>,
}

/// What is kept in the folder.
#[derive(Debug)]
struct Folder {
    directory: PathBuf,
    /// Paths as in the state file, with their times, the oldest first.
    managed: Vec<(String, f64)>,
    latest: Option<String>,
    last_preserved: f64,
    max_to_keep: Option<usize>,
    /// Seconds.
    keep_every: Option<f64>,
    clock: fn() -> f64,
}

/// What [`CheckpointManager::restore_or_initialize`] did.
#[derive(Debug)]
pub struct Resumed<'m> {
    /// The checkpoint that was restored.
    pub path: PathBuf,
    /// Newer ones that could not be, and why.
    pub skipped: Vec<(PathBuf, Error)>,
    /// What was found in it.
    pub status: RestoreStatus<'m>,
}

impl fmt::Display for Resumed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resumed from {}", self.path.display())?;
        self.skipped.iter().try_for_each(|(path, e)| write!(f, "; {} was passed over: {e}", path.display()))
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

impl<'a> CheckpointManager<'a> {
    /// A manager of the checkpoints in a folder, which need not exist. What an earlier manager kept there is taken over.
    ///
    /// # Errors
    /// The file `checkpoint` of the folder cannot be read or understood.
    pub fn new(checkpoint: Checkpoint<'a>, directory: impl Into<PathBuf>) -> Result<Self> {
        Self::with_clock(checkpoint, directory.into(), now)
    }

    pub(super) fn with_clock(
        checkpoint: Checkpoint<'a>,
        directory: PathBuf,
        clock: fn() -> f64,
    ) -> Result<Self> {
        let folder = Arc::new(Mutex::new(Folder::open(&directory, clock)?));
        Ok(CheckpointManager {
            checkpoint,
            directory,
            name: "ckpt".to_owned(),
            in_background: false,
            interval: None,
            last_step: Mutex::new(None),
            folder,
        })
    }

    /// How many checkpoints are kept; 1 or more. Default: 5.
    #[must_use]
    pub fn max_to_keep(self, max_to_keep: usize) -> Self {
        self.folder().max_to_keep = Some(max_to_keep);
        self
    }

    /// Keeps all checkpoints.
    #[must_use]
    pub fn keep_all(self) -> Self {
        self.folder().max_to_keep = None;
        self
    }

    /// Of the checkpoints that would be deleted, one is kept for good each time that so much time has passed.
    #[must_use]
    pub fn keep_every(self, time: Duration) -> Self {
        self.folder().keep_every = Some(time.as_secs_f64());
        self
    }

    /// The name of the checkpoints, before `-N`. It may lie in a folder below: `run/ckpt`. Default: `ckpt`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// [`save`](CheckpointManager::save) does nothing until `step`, an integer, is `interval` beyond that of the last save.
    #[must_use]
    pub fn step_interval(mut self, step: &Variable, interval: u32) -> Self {
        self.interval = Some((step.clone(), interval.into()));
        self
    }

    /// Files are written in the background, as by [`Checkpoint::save_async`]. A checkpoint is listed when it is on the disk.
    #[must_use]
    pub fn in_background(mut self, in_background: bool) -> Self {
        self.in_background = in_background;
        self
    }

    /// The objects.
    pub fn checkpoint(&self) -> &Checkpoint<'a> {
        &self.checkpoint
    }

    /// The folder, as it was given.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The newest checkpoint.
    pub fn latest_checkpoint(&self) -> Option<PathBuf> {
        self.folder().latest.as_ref().map(|latest| self.directory.join(latest))
    }

    /// The checkpoints that may be deleted one day, the oldest first.
    pub fn checkpoints(&self) -> Vec<PathBuf> {
        self.folder().managed.iter().map(|(path, _)| self.directory.join(path)).collect()
    }

    /// Saves under the next number, unless the step interval says that it is too early: then `None`.
    ///
    /// # Errors
    /// Those of [`Checkpoint::save`], `max_to_keep` is 0, the step is no integer, or an older checkpoint cannot be deleted. The
    /// list of checkpoints is what it was then, unless only the last failed.
    pub fn save(&self) -> Result<Option<PathBuf>> {
        match self.step()? {
            Some((step, Some(last), interval)) if step == last || step < last.saturating_add(interval) => {
                Ok(None)
            }
            _ => self.save_as(None).map(Some),
        }
    }

    /// Saves under the next number, or this one, whatever the step interval says.
    ///
    /// # Errors
    /// As in [`save`](CheckpointManager::save).
    pub fn save_now(&self, number: Option<u64>) -> Result<PathBuf> {
        self.save_as(number)
    }

    fn save_as(&self, number: Option<u64>) -> Result<PathBuf> {
        let last = {
            let folder = self.folder();
            if folder.max_to_keep == Some(0) {
                let expected = "1 or more, or keep_all()";
                return Err(Error::argument("CheckpointManager", "max_to_keep", 0, expected));
            }
            folder.highest(&self.name)
        };
        let step = self.step()?;
        let name = |count: i64| match number {
            Some(number) => format!("{}-{number}", self.name),
            None => format!("{}-{count}", self.name),
        };
        let when = if self.in_background { When::InBackground } else { When::Now };
        let folder = self.folder.clone();
        let path = self.checkpoint.count_and_write(
            when,
            // A number that is taken belongs to what is kept, also if it was not restored.
            if number.is_none() { last } else { 0 },
            |count| self.directory.join(name(count)),
            move |path| {
                let mut folder = folder.lock().unwrap_or_else(PoisonError::into_inner);
                folder.add(path)?;
                folder.sweep()
            },
        )?;
        *self.last_step.lock().unwrap_or_else(PoisonError::into_inner) = step.map(|(step, ..)| step);
        Ok(path)
    }

    /// The step, that of the last save, and the interval.
    fn step(&self) -> Result<Option<(i64, Option<i64>, i64)>> {
        let Some((step, interval)) = &self.interval else { return Ok(None) };
        let value = step.value();
        if value.dtype().is_float() {
            return Err(Error::dtype("CheckpointManager", "the step", value.dtype(), "an integer"));
        }
        let now = value.cast(crate::DType::I64)?.item::<i64>()?;
        let last = *self.last_step.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some((now, last, *interval)))
    }

    /// Restores the newest checkpoint that is whole, or does nothing if there is none: the objects start as they are then.
    ///
    /// Newer ones that are damaged or gone are passed over; the result says which and why, as does `log`.
    ///
    /// # Errors
    /// There are checkpoints, but none is whole; or the newest whole one does not fit the objects.
    pub fn restore_or_initialize(&self) -> Result<Option<Resumed<'_>>> {
        self.checkpoint.sync()?;
        let mut skipped: Vec<(PathBuf, Error)> = Vec::new();
        let candidates = self.folder().candidates(&self.name);
        for path in candidates.into_iter().map(|path| self.directory.join(path)) {
            match self.checkpoint.restore(&path) {
                Ok(status) => {
                    *self.last_step.lock().unwrap_or_else(PoisonError::into_inner) =
                        self.step()?.map(|(step, ..)| step);
                    for (path, e) in &skipped {
                        log::warn!("{} cannot be restored, an older checkpoint is: {e}", path.display());
                    }
                    return Ok(Some(Resumed { path, skipped, status }));
                }
                Err(e) if matches!(e.root(), Error::File { .. } | Error::Format { .. }) => {
                    skipped.push((path, e))
                }
                Err(e) => return Err(e),
            }
        }
        if skipped.is_empty() {
            return Ok(None);
        }
        let each: Vec<String> = skipped.iter().map(|(path, e)| format!("{}: {e}", path.display())).collect();
        let problem = format!("none of {} checkpoints can be restored: {}", skipped.len(), each.join("; "));
        Err(Error::usage(
            "restore_or_initialize",
            problem,
            "give another folder, or remove this one to start anew",
        ))
    }

    /// Waits for a save in the background.
    ///
    /// # Errors
    /// It failed.
    pub fn sync(&self) -> Result<()> {
        self.checkpoint.sync()
    }

    fn folder(&self) -> MutexGuard<'_, Folder> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CheckpointManager<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("CheckpointManager");
        f.field("checkpoint", &self.checkpoint).field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Folder {
    fn open(directory: &Path, clock: fn() -> f64) -> Result<Self> {
        let now = clock();
        let mut folder = Folder {
            directory: directory.to_owned(),
            managed: Vec::new(),
            latest: None,
            last_preserved: now - 1.0,
            max_to_keep: Some(5),
            keep_every: None,
            clock,
        };
        let Some(state) = CheckpointState::read(directory)? else { return Ok(folder) };
        folder.latest = Some(state.latest);
        if let Some(last) = state.last_preserved {
            folder.last_preserved = last;
        }
        if folder.last_preserved > now {
            log::warn!(
                "{}: its checkpoints come from the future; none of them will be deleted",
                directory.display()
            );
            folder.last_preserved = now;
        }
        // Those without a time were not saved by a manager, and are not deleted by one.
        let timed = state.all.into_iter().zip(state.timestamps).map(|(path, time)| (path, time.min(now)));
        let last_preserved = folder.last_preserved;
        folder.managed = timed.filter(|&(_, time)| time > last_preserved).collect();
        Ok(folder)
    }

    fn state(&self, mut all: Vec<(String, f64)>) -> CheckpointState {
        let latest = self.latest.clone().unwrap_or_default();
        if all.last().is_none_or(|(path, _)| *path != latest) {
            all.push((latest.clone(), (self.clock)()));
        }
        let (all, timestamps) = all.into_iter().unzip();
        CheckpointState { latest, all, timestamps, last_preserved: Some(self.last_preserved) }
    }

    /// Lists a checkpoint that was written, as the newest.
    fn add(&mut self, path: &Path) -> Result<()> {
        let name = path.strip_prefix(&self.directory).unwrap_or(path).to_string_lossy().into_owned();
        let mut managed = self.managed.clone();
        managed.retain(|(other, _)| *other != name);
        managed.push((name.clone(), (self.clock)()));
        let latest = self.latest.replace(name);
        if let Err(e) = self.state(managed.clone()).write(&self.directory) {
            self.latest = latest;
            return Err(e);
        }
        self.managed = managed;
        Ok(())
    }

    /// Deletes what is too much, the oldest first.
    fn sweep(&mut self) -> Result<()> {
        let Some(most) = self.max_to_keep else { return Ok(()) };
        if self.managed.len() <= most {
            return Ok(());
        }
        while self.managed.len() > most {
            let (path, time) = self.managed[0].clone();
            let is_kept = self.keep_every.is_some_and(|every| time - every >= self.last_preserved);
            if is_kept {
                self.last_preserved = time;
            } else {
                format::remove(&self.directory.join(&path))?;
            }
            self.managed.remove(0);
        }
        self.state(self.managed.clone()).write(&self.directory)
    }

    /// The highest number of the listed checkpoints of a name.
    fn highest(&self, name: &str) -> i64 {
        let number = |path: &String| path.strip_prefix(name)?.strip_prefix('-')?.parse::<i64>().ok();
        let listed = self.managed.iter().map(|(path, _)| path).chain(&self.latest);
        listed.filter_map(number).max().unwrap_or(0)
    }

    /// The checkpoints to try, the best first: the latest, the others that are listed, and then those that only lie there.
    fn candidates(&self, name: &str) -> Vec<String> {
        let mut list: Vec<String> = self.latest.iter().cloned().collect();
        list.extend(self.managed.iter().rev().map(|(path, _)| path.clone()));
        if !list.is_empty() {
            list.extend(format::numbered(&self.directory, name).into_iter().rev());
        }
        let mut seen = std::collections::BTreeSet::new();
        list.retain(|path| seen.insert(path.clone()));
        list
    }
}
