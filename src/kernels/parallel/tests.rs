use super::*;
use std::collections::HashSet;

fn counts(chunks: usize) -> Vec<usize> {
    let counts: Vec<_> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
    for_each(chunks, |i| {
        counts[i].fetch_add(1, Ordering::Relaxed);
    });
    counts.into_iter().map(AtomicUsize::into_inner).collect()
}

#[test]
fn every_chunk_runs_exactly_once() {
    for chunks in [0, 1, 2, 3, 7, 64, 1000] {
        assert_eq!(counts(chunks), vec![1; chunks]);
        assert_eq!(with_threads(1, || counts(chunks)), vec![1; chunks]);
    }
}

#[test]
fn pieces_are_disjoint_and_cover_the_slice() {
    for (len, chunk) in [(0, 3), (1, 3), (7, 3), (9, 3), (5, 100), (4, 0)] {
        let mut y = vec![0; len];
        for_each_chunk_mut(&mut y, chunk, |i, piece| piece.iter_mut().for_each(|y| *y += i + 1));
        let expected: Vec<_> = (0..len).map(|j| j / chunk.max(1) + 1).collect();
        assert_eq!(y, expected);
    }
}

#[test]
fn one_thread_means_the_calling_thread() {
    let me = thread::current().id();
    with_threads(1, || for_each(100, |_| assert_eq!(thread::current().id(), me)));
}

#[test]
fn the_limit_ends_with_its_closure_even_by_panic() {
    let before = threads();
    assert_eq!(with_threads(1, || with_threads(usize::MAX, threads)), before);
    let _ = catch_unwind(|| with_threads(1, || panic!("expected by the test")));
    assert_eq!(threads(), before);
}

#[test]
fn a_panic_in_a_chunk_reaches_the_caller_and_leaves_the_pool_usable() {
    for bad in [0, 5, 63] {
        let payload = catch_unwind(|| for_each(64, |i| assert!(i != bad, "chunk {bad}"))).unwrap_err();
        assert_eq!(payload.downcast_ref::<String>().unwrap(), &format!("chunk {bad}"));
        assert_eq!(counts(64), vec![1; 64]);
        assert!(!INSIDE.get());
    }
}

#[test]
fn a_loop_inside_a_chunk_stays_on_its_thread() {
    for_each(16, |_| {
        let me = thread::current().id();
        if default_threads() > 1 {
            assert_eq!(threads(), 1);
        }
        for_each(16, |_| assert_eq!(thread::current().id(), me));
    });
}

#[test]
fn a_rayon_worker_works_alone() {
    let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    pool.broadcast(|_| {
        let me = thread::current().id();
        assert_eq!(threads(), 1);
        for_each(16, |_| assert_eq!(thread::current().id(), me));
    });
}

#[test]
fn many_callers_share_the_pool() {
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for round in 0..300 {
                    let chunks = 1 + round % 9;
                    assert_eq!(counts(chunks), vec![1; chunks]);
                }
            });
        }
    });
}

#[test]
fn chunks_run_on_the_caller_and_on_named_workers_only() {
    let names = Mutex::new(HashSet::new());
    let me = thread::current().id();
    for _ in 0..50 {
        for_each(8, |_| {
            if thread::current().id() != me {
                names.lock().unwrap().insert(thread::current().name().unwrap().to_owned());
            }
            thread::sleep(Duration::from_micros(20));
        });
    }
    assert!(names.into_inner().unwrap().iter().all(|name| name.starts_with("couplet-")));
}
