//! Arguments that are not plain values: initialisers, activations, layers.

use couplet::{Forward, Result, Tensor, init};
use serde::Deserialize;
use serde_json::{Map, Value};
