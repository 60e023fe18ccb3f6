//! The folder of a manager: what is kept, what the state file says, and what happens when a folder is not what it was.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::testing::Folder as TestFolder;
use super::*;
use crate::DType;
use crate::tensor::Tensor;

const HOUR: f64 = 3600.0;
/// The moment at which time begins in these tests.
const START: f64 = 1_796_060_000.0;

thread_local! {
    static TIME: Cell<f64> = const { Cell::new(START) };
}

fn clock() -> f64 {
    TIME.get()
}

fn wait(seconds: f64) {
    TIME.set(TIME.get() + seconds);
}

fn step() -> Variable {
    Variable::from_tensor("step", Tensor::from(0i64))
}

fn at(step: &Variable) -> i64 {
    step.value().item().unwrap()
}

fn manager<'a>(step: &'a Variable, folder: &Path) -> CheckpointManager<'a> {
    CheckpointManager::with_clock(Checkpoint::new().track("step", step), folder.to_owned(), clock).unwrap()
}

fn names(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

fn save(manager: &CheckpointManager<'_>) -> String {
    wait(1.0);
    names(&[manager.save().unwrap().unwrap()]).remove(0)
}

/// The files of native checkpoints with these names, and the state file, sorted.
fn files(names: &[&str]) -> Vec<String> {
    let mut files: Vec<String> = names.iter().map(|name| format!("{name}.couplet")).collect();
    files.push("checkpoint".into());
    files.sort();
    files
}

fn state(folder: &TestFolder) -> String {
    fs::read_to_string(folder.path("checkpoint")).unwrap()
}

#[test]
fn the_loop_of_the_guide_keeps_three_and_resumes() {
    let folder = TestFolder::new();
    let train = |to: i64| {
        let step = step();
        let manager = manager(&step, &folder.path("")).max_to_keep(3);
        let resumed =
            manager.restore_or_initialize().unwrap().map(|resumed| names(&[resumed.path]).remove(0));
        let from = at(&step);
        while at(&step) < from + 50 {
            step.assign_add(&Tensor::from(1i64)).unwrap();
            if at(&step) % 10 == 0 {
                wait(0.25);
                manager.save().unwrap();
            }
        }
        assert_eq!(at(&step), to);
        (resumed, names(&manager.checkpoints()))
    };
    TIME.set(START);
    assert_eq!(train(50), (None, vec!["ckpt-3".into(), "ckpt-4".into(), "ckpt-5".into()]));
    assert_eq!(folder.names(), files(&["ckpt-3", "ckpt-4", "ckpt-5"]));
    let want = "model_checkpoint_path: \"ckpt-5\"\n\
                all_model_checkpoint_paths: \"ckpt-3\"\n\
                all_model_checkpoint_paths: \"ckpt-4\"\n\
                all_model_checkpoint_paths: \"ckpt-5\"\n\
                all_model_checkpoint_timestamps: 1796060000.75\n\
                all_model_checkpoint_timestamps: 1796060001.0\n\
                all_model_checkpoint_timestamps: 1796060001.25\n\
                last_preserved_timestamp: 1796059999.0\n";
    assert_eq!(state(&folder), want);
    let again = train(100);
    assert_eq!(again, (Some("ckpt-5".into()), vec!["ckpt-8".into(), "ckpt-9".into(), "ckpt-10".into()]));
    assert_eq!(folder.names(), files(&["ckpt-10", "ckpt-8", "ckpt-9"]));
}

/// Keep 2, one for good every two hours, a save every half hour: of the 5th and the later ones that are swept, those are kept
/// that come two hours or more after the one kept before; the first at t0 + 2 h, the next at t0 + 4 h.
#[test]
fn one_checkpoint_is_kept_for_good_every_so_many_hours() {
    TIME.set(START);
    let (folder, step) = (TestFolder::new(), step());
    let manager = manager(&step, &folder.path("")).max_to_keep(2).keep_every(Duration::from_secs(7200));
    let mut kept = Vec::new();
    for _ in 1..=12 {
        wait(HOUR / 2.0);
        manager.save().unwrap();
        kept.push(folder.names().len() - 1);
    }
    // 4 is kept when 6 arrives, 8 when 10 does.
    assert_eq!(kept, [1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4]);
    assert_eq!(folder.names(), files(&["ckpt-11", "ckpt-12", "ckpt-4", "ckpt-8"]));
    assert_eq!(names(&manager.checkpoints()), ["ckpt-11", "ckpt-12"]);
    assert!(state(&folder).ends_with(&format!("last_preserved_timestamp: {:?}\n", START + 4.0 * HOUR)));
}

#[test]
fn what_was_kept_for_good_is_no_business_of_the_next_manager() {
    TIME.set(START);
    let (folder, step) = (TestFolder::new(), step());
    let first = manager(&step, &folder.path("")).max_to_keep(1).keep_every(Duration::from_secs(3600));
    for _ in 0..3 {
        wait(HOUR);
        first.save().unwrap();
    }
    let next = manager(&step, &folder.path("")).max_to_keep(1);
    save(&next);
    save(&next);
    assert_eq!(folder.names(), files(&["ckpt-1", "ckpt-2", "ckpt-5"]));
}

#[test]
fn an_interval_lets_only_some_steps_save() {
    let (folder, step) = (TestFolder::new(), step());
    let manager = manager(&step, &folder.path("")).step_interval(&step, 5);
    let mut saved = Vec::new();
    for number in 0..12i64 {
        step.assign(&Tensor::from(number)).unwrap();
        if manager.save().unwrap().is_some() {
            saved.push(number);
        }
        assert_eq!(manager.save().unwrap(), None, "the same step once more");
    }
    assert_eq!(saved, [0, 5, 10]);
    assert_eq!(manager.checkpoint().save_counter().unwrap().value().item::<i64>().unwrap(), 3);
    assert!(manager.save_now(None).unwrap().ends_with("ckpt-4"), "asked for, it is saved at once");

    let again = self::manager(&step, &folder.path("")).step_interval(&step, 5);
    again.restore_or_initialize().unwrap().unwrap().status.assert_consumed().unwrap();
    step.assign(&Tensor::from(14i64)).unwrap();
    assert_eq!(again.save().unwrap(), None, "three steps after the one that was restored");
}

#[test]
fn a_step_that_is_no_integer_is_refused() {
    let (folder, step) = (TestFolder::new(), step());
    let half = Variable::from_tensor("step", Tensor::from(0.5f32));
    let e = manager(&step, &folder.path("")).step_interval(&half, 5).save().unwrap_err();
    assert!(e.to_string().contains("the step has dtype f32, expected an integer"), "{e}");
    let e = manager(&step, &folder.path("")).max_to_keep(0).save().unwrap_err();
    assert!(e.to_string().contains("1 or more, or keep_all()"), "{e}");
    assert!(folder.names().is_empty());
}

#[test]
fn a_number_that_is_written_again_moves_to_the_end() {
    let (folder, step) = (TestFolder::new(), step());
    let manager = manager(&step, &folder.path("")).max_to_keep(3);
    for number in [100, 50, 7, 100, 8] {
        manager.save_now(Some(number)).unwrap();
    }
    assert_eq!(names(&manager.checkpoints()), ["ckpt-7", "ckpt-100", "ckpt-8"]);
    assert_eq!(folder.names(), files(&["ckpt-100", "ckpt-7", "ckpt-8"]));
    assert_eq!(at(manager.checkpoint().save_counter().unwrap()), 5, "each of them counts");
}

#[test]
fn fewer_are_kept_from_the_next_save_on() {
    let (folder, step) = (TestFolder::new(), step());
    let first = manager(&step, &folder.path("")).max_to_keep(4);
    (0..4).for_each(|_| drop(save(&first)));
    let second = manager(&step, &folder.path("")).max_to_keep(1);
    assert_eq!(names(&second.checkpoints()), ["ckpt-1", "ckpt-2", "ckpt-3", "ckpt-4"]);
    assert_eq!(save(&second), "ckpt-5", "numbers that are taken are not taken again, restored or not");
    assert_eq!(folder.names(), files(&["ckpt-5"]));
    let all = manager(&step, &folder.path("")).keep_all();
    (0..7).for_each(|_| drop(save(&all)));
    assert_eq!(all.checkpoints().len(), 8);
}

#[test]
fn what_no_manager_saved_is_never_deleted() {
    let (folder, step) = (TestFolder::new(), step());
    let checkpoint = Checkpoint::new().track("step", &step);
    (0..3).for_each(|_| drop(checkpoint.save(folder.path("ckpt")).unwrap()));
    let manager = manager(&step, &folder.path("")).max_to_keep(1);
    assert!(manager.checkpoints().is_empty());
    assert_eq!(manager.latest_checkpoint(), Some(folder.path("ckpt-3")));
    assert_eq!((save(&manager), save(&manager)), ("ckpt-4".into(), "ckpt-5".into()));
    assert_eq!(folder.names(), files(&["ckpt-1", "ckpt-2", "ckpt-3", "ckpt-5"]));
}

#[test]
fn times_from_the_future_delete_nothing() {
    TIME.set(START);
    let (folder, step) = (TestFolder::new(), step());
    let first = manager(&step, &folder.path("")).max_to_keep(3);
    (0..3).for_each(|_| drop(save(&first)));
    TIME.set(START - HOUR); // the clock was set back
    let second = manager(&step, &folder.path("")).max_to_keep(1);
    assert!(second.checkpoints().is_empty());
    assert_eq!(second.latest_checkpoint(), Some(folder.path("ckpt-3")));
    save(&second);
    save(&second);
    assert_eq!(folder.names(), files(&["ckpt-1", "ckpt-2", "ckpt-3", "ckpt-5"]));
}

#[test]
fn a_clock_that_goes_back_while_saving_loses_nothing_that_is_kept() {
    TIME.set(START);
    let (folder, step) = (TestFolder::new(), step());
    let manager = manager(&step, &folder.path("")).max_to_keep(2);
    save(&manager);
    wait(-HOUR);
    save(&manager);
    save(&manager);
    assert_eq!(names(&manager.checkpoints()), ["ckpt-2", "ckpt-3"]);
    assert_eq!(folder.names(), files(&["ckpt-2", "ckpt-3"]));
}

#[test]
fn a_folder_may_be_moved_and_have_any_name() {
    let step = step();
    for odd in ["a b", "it's \"new\"", "[0-9]", "*", "back\\slash", "Größe 大", "?.,", "-1"] {
        let folder = TestFolder::new();
        let place = folder.path(odd);
        let first = manager(&step, &place).max_to_keep(2).name(odd);
        (0..3).for_each(|_| drop(save(&first)));
        assert_eq!(first.latest_checkpoint(), Some(place.join(format!("{odd}-3"))));
        assert_eq!(latest_checkpoint(&place).unwrap(), first.latest_checkpoint());
        let moved = folder.path("moved");
        fs::rename(&place, &moved).unwrap();
        assert_eq!(latest_checkpoint(&moved).unwrap(), Some(moved.join(format!("{odd}-3"))));
        let second = manager(&step, &moved).max_to_keep(2).name(odd);
        let resumed = second.restore_or_initialize().unwrap().unwrap();
        assert_eq!(resumed.path, moved.join(format!("{odd}-3")));
        resumed.status.assert_consumed().unwrap();
        save(&second);
        let left: Vec<String> =
            fs::read_dir(&moved).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(left.len(), 3, "two checkpoints and the state file: {left:?}");
    }
}

#[test]
fn a_name_may_lead_to_a_folder_below() {
    let (folder, step) = (TestFolder::new(), step());
    let first = manager(&step, &folder.path("")).max_to_keep(1).name("run/ckpt");
    save(&first);
    save(&first);
    assert!(state(&folder).starts_with("model_checkpoint_path: \"run/ckpt-2\"\n"), "{}", state(&folder));
    assert!(folder.path("run/ckpt-2.couplet").is_file() && !folder.path("run/ckpt-1.couplet").exists());
    let second = manager(&step, &folder.path("")).max_to_keep(1).name("run/ckpt");
    second.restore_or_initialize().unwrap().unwrap().status.expect_partial();
    assert_eq!(save(&second), "ckpt-3");
}

#[test]
fn a_folder_of_another_spelling_is_the_same_folder() {
    let (folder, step) = (TestFolder::new(), step());
    save(&manager(&step, &folder.path("")));
    let spelled = folder.path("x/..");
    fs::create_dir(folder.path("x")).unwrap();
    let again = manager(&step, &spelled);
    assert_eq!(again.latest_checkpoint(), Some(spelled.join("ckpt-1")));
    assert!(again.restore_or_initialize().unwrap().is_some());
}

#[test]
fn absolute_paths_of_a_folder_that_was_moved_lead_nowhere() {
    let folder = TestFolder::new();
    folder.file(
        "checkpoint",
        "model_checkpoint_path: \"/nowhere/ckpt-7\"\nall_model_checkpoint_paths: \"/nowhere/ckpt-7\"\n",
    );
    assert_eq!(latest_checkpoint(folder.path("")).unwrap(), None);
    assert_eq!(latest_checkpoint(folder.path("absent")).unwrap(), None);
}

#[test]
fn a_state_file_that_cannot_be_read_is_an_error_and_stays_as_it_is() {
    let (folder, step) = (TestFolder::new(), step());
    folder.file("checkpoint", "model_checkpoint_path: 3");
    let checkpoint = Checkpoint::new().track("step", &step);
    let e = CheckpointManager::new(checkpoint, folder.path("")).unwrap_err().to_string();
    assert!(e.contains("checkpoint: line 1: expected a string in quotes"), "{e}");
    assert!(latest_checkpoint(folder.path("")).is_err());
    assert_eq!(state(&folder), "model_checkpoint_path: 3");
    folder.file("checkpoint", [0xff, 0xfe]);
    let e = latest_checkpoint(folder.path("")).unwrap_err().to_string();
    assert!(e.contains("checkpoint: "), "{e}");
}

/// Five steps, each saved, all kept.
fn five(folder: &TestFolder) {
    let step = step();
    let manager = manager(&step, &folder.path("")).keep_all();
    for number in 1..=5i64 {
        step.assign(&Tensor::from(number)).unwrap();
        save(&manager);
    }
}

#[test]
fn what_was_deleted_by_hand_is_passed_over() {
    let folder = TestFolder::new();
    five(&folder);
    for name in ["ckpt-5.couplet", "ckpt-4.couplet", "ckpt-1.couplet"] {
        fs::remove_file(folder.path(name)).unwrap();
    }
    assert_eq!(latest_checkpoint(folder.path("")).unwrap(), None);
    let step = step();
    let manager = manager(&step, &folder.path("")).max_to_keep(2);
    let resumed = manager.restore_or_initialize().unwrap().unwrap();
    assert_eq!((resumed.path.clone(), at(&step)), (folder.path("ckpt-3"), 3));
    assert_eq!(
        names(&resumed.skipped.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>()),
        ["ckpt-5", "ckpt-4"]
    );
    let text = resumed.to_string();
    assert!(text.starts_with("resumed from ") && text.contains("ckpt-5 was passed over: "), "{text}");
    assert!(text.contains("there is no checkpoint of this name"), "{text}");
    drop(resumed);
    // Sweeping what is gone already is no error, and the number that was lost is not used again.
    assert_eq!(save(&manager), "ckpt-6");
    assert_eq!(folder.names(), files(&["ckpt-6"]));
}

#[test]
fn a_latest_that_is_damaged_gives_way_to_the_newest_that_is_whole() {
    let folder = TestFolder::new();
    five(&folder);
    let bytes = fs::read(folder.path("ckpt-5.couplet")).unwrap();
    folder.file("ckpt-5.couplet", &bytes[..bytes.len() - 3]);
    let mut flipped = fs::read(folder.path("ckpt-4.couplet")).unwrap();
    *flipped.last_mut().unwrap() ^= 1;
    folder.file("ckpt-4.couplet", flipped);
    let step = step();
    let manager = manager(&step, &folder.path(""));
    let resumed = manager.restore_or_initialize().unwrap().unwrap();
    assert_eq!((resumed.path.clone(), at(&step)), (folder.path("ckpt-3"), 3));
    resumed.status.assert_consumed().unwrap();
    let text = resumed.to_string();
    assert!(text.contains("ckpt-5.couplet") && text.contains("ckpt-4.couplet"), "{text}");
    assert_eq!(resumed.skipped.len(), 2);
}

#[test]
fn a_folder_in_which_nothing_is_whole_is_an_error_that_lists_all() {
    let folder = TestFolder::new();
    five(&folder);
    (1..=5).for_each(|i| drop(folder.file(&format!("ckpt-{i}.couplet"), "rubbish, and not little of it")));
    let step = step();
    let e = manager(&step, &folder.path("")).restore_or_initialize().unwrap_err().to_string();
    assert!(e.contains("none of 5 checkpoints can be restored"), "{e}");
    assert!((1..=5).all(|i| e.contains(&format!("ckpt-{i}.couplet"))), "{e}");
    assert_eq!(at(&step), 0);
}

#[test]
fn a_newest_that_does_not_fit_is_an_error_and_no_older_one_is_taken() {
    let folder = TestFolder::new();
    five(&folder);
    let step = Variable::from_tensor("step", Tensor::zeros([2], DType::F32).unwrap());
    let e = manager(&step, &folder.path("")).restore_or_initialize().unwrap_err().to_string();
    assert!(e.contains("step: the file holds i64[]") && e.contains("f32[2]"), "{e}");
}

#[test]
fn only_files_of_exactly_its_names_are_deleted() {
    let (folder, step) = (TestFolder::new(), step());
    let bystanders = [
        "ckpt-1.couplet.bak",
        "ckpt-1",
        "ckpt-10.couplet",
        "ckpt-1.data-0-of-1",
        "ckpt-1.data-0000x-of-00001",
        "ckpt-1.index.txt",
        "my-ckpt-1.couplet",
        "ckpt-1.data-00000-of-00001.bak",
        "ckpt-1.meta",
        "ckpt-11.data-00000-of-00001",
        "ckpt-1.couplet.77-0.tmp",
    ];
    let mut want: Vec<String> = bystanders.iter().map(|name| (*name).to_owned()).collect();
    bystanders.iter().for_each(|name| drop(folder.file(name, "mine")));
    let manager = manager(&step, &folder.path("")).max_to_keep(1);
    save(&manager);
    ["ckpt-1.index", "ckpt-1.data-00000-of-00002", "ckpt-1.data-00001-of-00002"]
        .iter()
        .for_each(|name| drop(folder.file(name, "of an earlier format")));
    save(&manager);
    want.extend(files(&["ckpt-2"]));
    want.sort();
    assert_eq!(folder.names(), want);
}

#[test]
fn a_checkpoint_that_cannot_be_deleted_is_an_error_and_stays_listed() {
    let (folder, step) = (TestFolder::new(), step());
    let manager = manager(&step, &folder.path("")).max_to_keep(1);
    save(&manager);
    fs::remove_file(folder.path("ckpt-1.couplet")).unwrap();
    fs::create_dir(folder.path("ckpt-1.couplet")).unwrap(); // no file, so it cannot be removed as one
    let e = manager.save().unwrap_err().to_string();
    assert!(e.contains("ckpt-1.couplet"), "{e}");
    assert_eq!(names(&manager.checkpoints()), ["ckpt-1", "ckpt-2"]);
    assert_eq!(latest_checkpoint(folder.path("")).unwrap(), Some(folder.path("ckpt-2")));
    assert_eq!(at(manager.checkpoint().save_counter().unwrap()), 2, "the second is on the disk, and counts");
    fs::remove_dir(folder.path("ckpt-1.couplet")).unwrap();
    assert_eq!(save(&manager), "ckpt-3");
    assert_eq!(folder.names(), files(&["ckpt-3"]));
}

#[test]
fn a_save_that_fails_changes_neither_list_nor_count_nor_folder() {
    let (folder, step) = (TestFolder::new(), step());
    let manager = manager(&step, &folder.path("")).max_to_keep(2);
    save(&manager);
    save(&manager);
    let before = (state(&folder), folder.names());
    let is_unchanged = |folder_names: Vec<String>| {
        assert_eq!(at(manager.checkpoint().save_counter().unwrap()), 2);
        assert_eq!(names(&manager.checkpoints()), ["ckpt-1", "ckpt-2"]);
        assert_eq!(manager.latest_checkpoint(), Some(folder.path("ckpt-2")));
        assert_eq!(folder.names(), folder_names);
    };
    // The file cannot take its name.
    fs::create_dir(folder.path("ckpt-3.couplet")).unwrap();
    assert!(manager.save().is_err());
    fs::remove_dir(folder.path("ckpt-3.couplet")).unwrap();
    is_unchanged(before.1.clone());
    assert_eq!(state(&folder), before.0);
    // The state file cannot.
    fs::rename(folder.path("checkpoint"), folder.path("aside")).unwrap();
    fs::create_dir(folder.path("checkpoint")).unwrap();
    assert!(manager.save().is_err());
    fs::remove_dir(folder.path("checkpoint")).unwrap();
    fs::rename(folder.path("aside"), folder.path("checkpoint")).unwrap();
    is_unchanged(before.1);
    assert_eq!(save(&manager), "ckpt-3");
}

#[test]
fn in_the_background_a_checkpoint_is_listed_when_it_is_on_the_disk() {
    let (folder, step) = (TestFolder::new(), step());
    let manager = CheckpointManager::new(Checkpoint::new().track("step", &step), folder.path("")).unwrap();
    let manager = manager.max_to_keep(2).in_background(true);
    for number in 1..=4i64 {
        step.assign(&Tensor::from(number)).unwrap();
        let path = manager.save().unwrap().unwrap();
        step.assign(&Tensor::from(-1i64)).unwrap(); // not what is saved
        manager.sync().unwrap();
        assert_eq!(manager.latest_checkpoint(), Some(path));
    }
    assert_eq!(folder.names(), files(&["ckpt-3", "ckpt-4"]));
    manager.restore_or_initialize().unwrap().unwrap().status.assert_consumed().unwrap();
    assert_eq!(at(&step), 4);
    // An error of the background is that of the next call.
    fs::create_dir(folder.path("ckpt-5.couplet")).unwrap();
    manager.save().unwrap();
    let e = manager.sync().unwrap_err().to_string();
    assert!(e.contains("ckpt-5.couplet"), "{e}");
    assert_eq!(names(&manager.checkpoints()), ["ckpt-3", "ckpt-4"]);
    manager.sync().unwrap();
}

#[test]
fn two_managers_of_one_folder_leave_a_state_file_that_can_be_read() {
    let folder = TestFolder::new();
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            let folder = &folder;
            scope.spawn(move || {
                let step = step();
                let manager = manager(&step, &folder.path("")).name(name).max_to_keep(2);
                (0..20).for_each(|_| drop(save(&manager)));
            });
        }
        for _ in 0..200 {
            latest_checkpoint(folder.path("")).unwrap();
        }
    });
    let state = CheckpointState::read(&folder.path("")).unwrap().unwrap();
    assert!(["a-20", "b-20"].contains(&state.latest.as_str()), "{state:?}");
    assert!(!folder.names().iter().any(|name| name.ends_with(".tmp")), "{:?}", folder.names());
}
