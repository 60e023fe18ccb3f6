//! The one place where work is spread over threads.
//!
//! A kernel cuts its work into chunks by size, never by the number of threads, and hands them to [`for_each`]. The
//! calling thread takes part; idle workers of the crate's own pool join it. A worker runs chunks of kernels and nothing
//! else, and a caller that waits for its workers runs nothing at all, so no foreign code ever executes inside the
//! caller's tape, scope or generator. A thread that already belongs to a parallel loop (a worker of any rayon pool, or
//! a chunk of [`for_each`]) does its work alone.

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long a thread looks for work, or for the end of its helpers, before it sleeps. Waking a sleeper costs tens of
/// microseconds; the kernels of one training step follow each other faster than that.
const PATIENCE: Duration = Duration::from_micros(100);

thread_local! {
    /// What `with_threads` allows this thread.
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Whether this thread is inside a chunk of a parallel loop.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`, letting the calling thread's kernels use at most `n` threads, itself included; 1 switches threads off.
///
/// The limit holds for this thread only and ends with `f`, also when `f` panics. It never raises the number of threads
/// above that of the process, which is `COUPLET_NUM_THREADS`, else `RAYON_NUM_THREADS`, else the number of cores the
/// process may use. Results do not depend on it.
pub fn with_threads<R>(n: usize, f: impl FnOnce() -> R) -> R {
    let _restore = Restore::new(&LIMIT, n.max(1));
    f()
}

/// The number of threads, the calling one included, that a kernel called from here may use.
pub fn threads() -> usize {
    let limit = LIMIT.get();
    if limit == 1 || INSIDE.get() || rayon_core::current_thread_index().is_some() {
        return 1;
    }
    limit.min(default_threads())
}

/// Calls `f(0)` to `f(chunks - 1)`, each once, on up to [`threads`] threads in no particular order.
///
/// A panic in a chunk is raised again here once all threads have left `f`; chunks not yet begun are dropped.
pub(crate) fn for_each(chunks: usize, f: impl Fn(usize) + Sync) {
    let helpers = if chunks <= 1 { 0 } else { threads().min(chunks) - 1 };
    let pool = if helpers == 0 { None } else { Pool::get() };
    match pool {
        None => (0..chunks).for_each(f),
        Some(pool) => pool.run(helpers, chunks, &f),
    }
}

/// Cuts `y` into pieces of `chunk` elements (the last may be shorter) and calls `f` with the number of each piece and
/// the piece.
pub(crate) fn for_each_chunk_mut<T: Send>(y: &mut [T], chunk: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    let (len, chunk) = (y.len(), chunk.max(1));
    let y = SendPtr(y.as_mut_ptr());
    for_each(len.div_ceil(chunk), |i| {
        let start = i * chunk;
        // SAFETY: `start < len`, and pieces of different `i` do not overlap. `for_each` passes each `i` once and
        // returns only after all calls have ended, while `y` is still borrowed.
        let piece = unsafe { std::slice::from_raw_parts_mut(y.get().add(start), chunk.min(len - start)) };
        f(i, piece);
    });
}

/// A pointer that chunks on several threads share; whoever reads through it argues why that is sound.
pub(crate) struct SendPtr<T>(pub(crate) *mut T);

impl<T> SendPtr<T> {
    /// The pointer; a method, so that closures capture the wrapper and not its field.
    pub(crate) fn get(&self) -> *mut T {
        self.0
    }

    /// The `len` elements from `start` on.
    ///
    /// # Safety
    /// They belong to what the pointer was made from, which outlives `'a`, and nobody else uses them during `'a`.
    pub(crate) unsafe fn part<'a>(&self, start: usize, len: usize) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

// SAFETY: sending the address alone does nothing; dereferencing it is unsafe and argued for at each use.
unsafe impl<T: Send> Send for SendPtr<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SendPtr<T> {}

fn default_threads() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let asked = |name| std::env::var(name).ok()?.trim().parse().ok().filter(|&n: &usize| n > 0);
        asked("COUPLET_NUM_THREADS")
            .or_else(|| asked("RAYON_NUM_THREADS"))
            .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
    })
}

/// Sets a thread-local cell for as long as it lives.
struct Restore<T: Copy + 'static> {
    cell: &'static thread::LocalKey<Cell<T>>,
    old: T,
}

impl<T: Copy + 'static> Restore<T> {
    fn new(cell: &'static thread::LocalKey<Cell<T>>, value: T) -> Self {
        Self { cell, old: cell.replace(value) }
    }
}

impl<T: Copy + 'static> Drop for Restore<T> {
    fn drop(&mut self) {
        self.cell.set(self.old);
    }
}

/// Parts that the chunks of a job are dealt in, at most.
const PARTS: usize = 16;

/// One parallel loop. It lives on the stack of its caller.
///
/// Each thread begins with a part of its own, so that loop after loop it finds the same elements in its caches, and helps
/// with the others' when that is done.
struct Job<'a> {
    f: &'a (dyn Fn(usize) + Sync),
    chunks: usize,
    /// Parts that are dealt: one for each thread.
    parts: usize,
    /// Threads that have begun.
    begun: AtomicUsize,
    /// The next chunk of each part, counted from its first.
    next: [AtomicUsize; PARTS],
    /// Workers that took a ticket and have not left yet. Raised under the lock of the queue only.
    helpers: AtomicUsize,
    failed: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    caller: Thread,
}

impl Job<'_> {
    /// Runs chunks until none is left.
    fn work(&self) {
        let own = self.begun.fetch_add(1, Ordering::Relaxed);
        let first = |part: usize| part * self.chunks / self.parts;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for part in (0..self.parts).map(|n| (own + n) % self.parts) {
                while !self.failed.load(Ordering::Relaxed) {
                    let i = first(part) + self.next[part].fetch_add(1, Ordering::Relaxed);
                    if i >= first(part + 1) {
                        break;
                    }
                    (self.f)(i);
                }
            }
        }));
        if let Err(payload) = outcome {
            self.failed.store(true, Ordering::Relaxed);
            lock(&self.panic).get_or_insert(payload);
        }
    }
}

/// An invitation to help with a job.
///
/// The job outlives it: [`Pool::run`] takes back the tickets nobody took, then waits for the workers that took one.
struct Ticket(*const Job<'static>);

// SAFETY: the job is only used through `&Job`, and all it holds may be shared between threads.
unsafe impl Send for Ticket {}

struct Queue {
    tickets: VecDeque<Ticket>,
    /// Workers that are awake and looking at `queued`.
    looking: usize,
    sleeping: usize,
}

struct Pool {
    queue: Mutex<Queue>,
    /// The length of the queue, for workers to look at without its lock.
    queued: AtomicUsize,
    wake: Condvar,
}

impl Pool {
    /// The pool, started at the first call; `None` if not one thread could be started.
    fn get() -> Option<&'static Self> {
        static POOL: OnceLock<Option<&'static Pool>> = OnceLock::new();
        *POOL.get_or_init(|| {
            let pool: &'static Self = Box::leak(Box::new(Self {
                queue: Mutex::new(Queue { tickets: VecDeque::new(), looking: 0, sleeping: 0 }),
                queued: AtomicUsize::new(0),
                wake: Condvar::new(),
            }));
            let start = |i: &usize| {
                thread::Builder::new().name(format!("couplet-{i}")).spawn(|| pool.serve()).is_ok()
            };
            let started = (1..default_threads()).take_while(start).count();
            (started > 0).then_some(pool)
        })
    }

    fn run(&self, helpers: usize, chunks: usize, f: &(dyn Fn(usize) + Sync)) {
        let job = Job {
            f,
            chunks,
            parts: (helpers + 1).min(PARTS),
            begun: AtomicUsize::new(0),
            next: [const { AtomicUsize::new(0) }; PARTS],
            helpers: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            panic: Mutex::new(None),
            caller: thread::current(),
        };
        self.invite(&job, helpers);
        {
            // Nothing between `invite` and `dismiss` can unwind: `work` catches the panics of chunks.
            let _inside = Restore::new(&INSIDE, true);
            job.work();
        }
        self.dismiss(&job);
        let panic = lock(&job.panic).take();
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }

    /// Puts tickets for `job` into the queue and wakes workers if those already awake do not suffice.
    fn invite(&self, job: &Job, helpers: usize) {
        let job: *const Job = job;
        let mut queue = lock(&self.queue);
        queue.tickets.extend((0..helpers).map(|_| Ticket(job.cast())));
        self.queued.store(queue.tickets.len(), Ordering::Relaxed);
        let wanted = queue.tickets.len().saturating_sub(queue.looking).min(queue.sleeping).min(helpers);
        drop(queue);
        (0..wanted).for_each(|_| self.wake.notify_one());
    }

    /// Takes back the tickets of `job` and waits until every worker has left it.
    fn dismiss(&self, job: &Job) {
        let address: *const Job = job;
        let mut queue = lock(&self.queue);
        queue.tickets.retain(|ticket| !std::ptr::addr_eq(ticket.0, address));
        self.queued.store(queue.tickets.len(), Ordering::Relaxed);
        drop(queue);
        let left = || job.helpers.load(Ordering::Acquire) == 0;
        if !look_until(left) {
            while !left() {
                thread::park();
            }
        }
    }

    /// The life of a worker.
    fn serve(&self) {
        INSIDE.set(true);
        let mut queue = lock(&self.queue);
        loop {
            if let Some(ticket) = queue.tickets.pop_front() {
                self.queued.store(queue.tickets.len(), Ordering::Relaxed);
                // SAFETY: the ticket was in the queue, whose lock we hold, so `dismiss` has not taken it back and
                // the job is alive. It stays so until `helpers`, raised here under the same lock, is lowered again.
                let job = unsafe { &*ticket.0 };
                job.helpers.fetch_add(1, Ordering::Relaxed);
                drop(queue);
                job.work();
                // The job may be gone as soon as `helpers` is lowered; the handle of its caller must not be.
                let caller = job.caller.clone();
                if job.helpers.fetch_sub(1, Ordering::Release) == 1 {
                    caller.unpark();
                }
                queue = lock(&self.queue);
                continue;
            }
            queue.looking += 1;
            drop(queue);
            // A ticket that was seen but taken back before it could be drawn is a sign that more are to come.
            let seen = look_until(|| self.queued.load(Ordering::Relaxed) > 0);
            queue = lock(&self.queue);
            queue.looking -= 1;
            if !seen && queue.tickets.is_empty() {
                queue.sleeping += 1;
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.sleeping -= 1;
            }
        }
    }
}

/// Looks until `done` or for as long as `PATIENCE` allows; whether it is done.
fn look_until(done: impl Fn() -> bool) -> bool {
    let mut began = None;
    loop {
        for _ in 0..32 {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        if began.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return done();
        }
    }
}

/// Locks; no code that can panic runs under these locks, so poison carries no news.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
