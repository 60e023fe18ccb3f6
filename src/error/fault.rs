//! What can be wrong with the bytes of a file.

use std::fmt;

macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident => $name:literal,)*) => {
        /// What is wrong with a file whose bytes are not what its format asks for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        impl Fault {
            /// All faults.
            pub const ALL: &[Fault] = &[$(Fault::$fault,)*];

            /// Its name in lower case, e.g. `tensor_checksum`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Fault::$fault => $name,)*
                }
            }
        }
    };
}

faults! {
    /// The file does not begin, or end, with the bytes that mark its format.
    BadMagic => "bad_magic",
    /// The file ends too early.
    Truncated => "truncated",
    /// A later version of the library wrote it.
    UnsupportedVersion => "unsupported_version",
    /// The header is missing.
    MissingHeader => "missing_header",
    /// The header cannot be read.
    MalformedHeader => "malformed_header",
    /// The header is not the one that was written.
    HeaderChecksum => "header_checksum",
    /// The footer cannot be read.
    MalformedFooter => "malformed_footer",
    /// A block of a table cannot be read.
    MalformedBlock => "malformed_block",
    /// A block of a table is not the one that was written.
    BlockChecksum => "block_checksum",
    /// A block is compressed in a way that is not known.
    UnsupportedCompression => "unsupported_compression",
    /// The description of a tensor cannot be read, or describes none.
    MalformedEntry => "malformed_entry",
    /// Something lies outside the file.
    OutOfRange => "out_of_range",
    /// A tensor has more or fewer bytes than its shape and dtype ask for.
    SizeMismatch => "size_mismatch",
    /// The elements of a tensor are not those that were written.
    TensorChecksum => "tensor_checksum",
    /// The elements of a tensor are no values of its dtype.
    MalformedTensor => "malformed_tensor",
    /// A dtype is not known, or no tensor of it can be made.
    UnsupportedDType => "unsupported_dtype",
    /// One of the files of a checkpoint is missing.
    MissingShard => "missing_shard",
    /// A part of a tensor that is stored in slices is missing.
    MissingSlice => "missing_slice",
    /// A tensor that the object graph or an index names is not there.
    MissingTensor => "missing_tensor",
    /// The object graph cannot be read, or is none.
    MalformedGraph => "malformed_graph",
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
