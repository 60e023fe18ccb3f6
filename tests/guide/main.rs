//! What the guide says is true, and it leaves no public name of the reference out.

mod differences;
mod names;
