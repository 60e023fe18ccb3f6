//! Reading of cases: what was done, and the numbers that came out.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use couplet::{DType, Element, Tensor};
use half::{bf16, f16};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::Deserialize;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::{Outcome, problem};

/// One `case.json` and its arrays.
#[derive(Deserialize)]
pub struct Case {
    pub id: String,
    pub module: String,
    pub mode: String,
    pub dtype: String,
    #[serde(default)]
    pub ctor: Map<String, Value>,
    #[serde(default)]
    pub call: Map<String, Value>,
    #[serde(default)]
    pub inputs: Vec<String>,
    #[serde(default)]
    pub kw_inputs: Vec<String>,
    #[serde(default)]
    pub constants: Vec<String>,
    #[serde(default)]
    pub variables: Vec<VariableSpec>,
    #[serde(default)]
    pub outputs: Vec<String>,
    #[serde(default)]
    pub grads_none: Vec<String>,
    #[serde(default)]
    pub sparse_grads: Vec<String>,
    #[serde(default)]
    pub special: bool,
    #[serde(default)]
    pub quirk: bool,
    #[serde(default)]
    pub f32_noise: HashMap<String, [f64; 2]>,
    #[serde(default)]
    pub script: Vec<Value>,
    #[serde(default)]
    pub table: Vec<Map<String, Value>>,
    #[serde(default)]
    pub config: Map<String, Value>,
    #[serde(default)]
    pub params: Ordered<Vec<usize>>,
    #[serde(default)]
    pub plan: Ordered<String>,
    #[serde(default)]
    pub schedule: Ordered<Vec<f64>>,
    #[serde(default)]
    pub steps: usize,
    /// The prefix of its checkpoint in the folder of the case.
    pub ckpt: Option<String>,
    #[serde(skip)]
    pub folder: PathBuf,
    #[serde(skip)]
    pub arrays: BTreeMap<String, Tensor>,
}

/// What the reference says of a variable.
#[derive(Deserialize)]
pub struct VariableSpec {
    pub path: String,
    pub name: String,
    pub trainable: bool,
    pub shape: Vec<usize>,
    pub dtype: String,
    pub init: Option<Init>,
}

/// How a variable starts out.
#[derive(Deserialize, Clone)]
#[serde(untagged)]
pub enum Init {
    Constant { constant: f64 },
    Values { values: Vec<f64> },
    Drawn(Distribution),
}

/// A distribution and its parameters.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(tag = "distribution", rename_all = "snake_case")]
pub enum Distribution {
    Normal { mean: f64, stddev: f64 },
    TruncatedNormal { mean: f64, stddev: f64 },
    Uniform { minval: f64, maxval: f64 },
}

/// A JSON object in the order of the file.
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Ordered(Vec::new())
    }
}

impl<T> Ordered<T> {
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: DeserializeOwned> Visitor<'de> for Entries<T> {
            type Value = Ordered<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

impl Case {
    /// Reads the case in a folder.
    pub fn read(folder: &Path) -> Outcome<Case> {
        let mut case: Case = serde_json::from_slice(&std::fs::read(folder.join("case.json"))?)?;
        case.folder = folder.to_owned();
        let arrays = folder.join("arrays.safetensors");
        if arrays.is_file() {
            let bytes = std::fs::read(arrays)?;
            for (name, view) in SafeTensors::deserialize(&bytes)?.tensors() {
                case.arrays.insert(name, tensor(&view)?);
            }
        }
        Ok(case)
    }

    /// The first part of the id: `modules`, `ops`, `optim` ...
    pub fn group(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// The name under which the case is counted.
    pub fn family(&self) -> String {
        match self.group() {
            "modules" | "rnn" | "nets" | "dnc" | "errors" | "initializers" => self.module.clone(),
            group => format!("{group}/{}", self.module),
        }
    }

    pub fn is_f64(&self) -> bool {
        self.dtype == "float64"
    }

    pub fn array(&self, key: &str) -> Outcome<&Tensor> {
        self.arrays.get(key).ok_or_else(|| problem(format!("arrays.safetensors has no {key}")))
    }

    /// The inputs in order, by name.
    pub fn inputs(&self) -> Outcome<Vec<(String, Tensor)>> {
        self.inputs
            .iter()
            .map(|name| Ok((name.clone(), self.array(&format!("in/{name}"))?.clone())))
            .collect()
    }
}

/// Folders below `root` that hold a case, sorted.
pub fn folders(root: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut next = vec![root.to_owned()];
    while let Some(folder) = next.pop() {
        let entries =
            std::fs::read_dir(&folder).map_err(|e| problem(format!("{}: {e}", folder.display())))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                next.push(path);
            }
        }
        if folder.join("case.json").is_file() {
            found.push(folder);
        }
    }
    found.sort();
    Ok(found)
}

/// The dtype with a name as NumPy writes it.
pub fn dtype(name: &str) -> Outcome<DType> {
    Ok(match name {
        "float32" => DType::F32,
        "float64" => DType::F64,
        "float16" => DType::F16,
        "bfloat16" => DType::BF16,
        "int8" => DType::I8,
        "int16" => DType::I16,
        "int32" => DType::I32,
        "int64" => DType::I64,
        "uint8" => DType::U8,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        "bool" => DType::Bool,
        _ => return Err(problem(format!("no dtype is called {name:?}"))),
    })
}

fn tensor(view: &TensorView<'_>) -> Outcome<Tensor> {
    fn from<T: Element, const N: usize>(view: &TensorView<'_>, read: fn([u8; N]) -> T) -> Outcome<Tensor> {
        let (chunks, rest) = view.data().as_chunks::<N>();
        if !rest.is_empty() {
            return Err(problem("an array ends within an element"));
        }
        Ok(Tensor::from_vec(chunks.iter().copied().map(read).collect(), view.shape().to_vec())?)
    }
    match view.dtype() {
        Dtype::F32 => from(view, f32::from_le_bytes),
        Dtype::F64 => from(view, f64::from_le_bytes),
        Dtype::F16 => from(view, f16::from_le_bytes),
        Dtype::BF16 => from(view, bf16::from_le_bytes),
        Dtype::I8 => from(view, i8::from_le_bytes),
        Dtype::I16 => from(view, i16::from_le_bytes),
        Dtype::I32 => from(view, i32::from_le_bytes),
        Dtype::I64 => from(view, i64::from_le_bytes),
        Dtype::U8 => from(view, u8::from_le_bytes),
        Dtype::U16 => from(view, u16::from_le_bytes),
        Dtype::U32 => from(view, u32::from_le_bytes),
        Dtype::U64 => from(view, u64::from_le_bytes),
        Dtype::BOOL => from(view, |[byte]: [u8; 1]| byte != 0),
        other => Err(problem(format!("arrays of dtype {other:?} are not understood"))),
    }
}
