//! The settings that all convolution layers share.

/// Setters of `stride`, `rate`, `with_bias`, `w_init`, `b_init` and `data_format`; constant parameters of the layer come first.
macro_rules! conv_setters {
    ($layer:ty $(, $parameter:ident)?) => {
        impl$(<const $parameter: usize>)? $layer {
            /// Steps between outputs (of a transposed convolution: between the places that inputs spread to), each 1 or more.
            /// Default: 1.
            #[must_use]
            pub fn stride(mut self, stride: impl Into<$crate::nn::Sizes>) -> Self {
                self.stride = stride.into();
                self
            }

            /// Distance between the taps of the kernel, each 1 or more; above 1 only with stride 1. Default: 1.
            #[must_use]
            pub fn rate(mut self, rate: impl Into<$crate::nn::Sizes>) -> Self {
                self.rate = rate.into();
                self
            }

            /// Whether to add `b`. Default: yes.
            #[must_use]
            pub fn with_bias(mut self, with_bias: bool) -> Self {
                self.with_bias = with_bias;
                self
            }

            /// Initialiser of the kernels. Default: `TruncatedNormal` with standard deviation `1 / sqrt(fan-in)`.
            #[must_use]
            pub fn w_init(mut self, init: impl $crate::init::Initializer) -> Self {
                self.w_init = Some(std::sync::Arc::new(init));
                self
            }

            /// Initialiser of `b`. Default: `Zeros`. It is an error with `with_bias(false)`.
            #[must_use]
            pub fn b_init(mut self, init: impl $crate::init::Initializer) -> Self {
                self.b_init = Some(std::sync::Arc::new(init));
                self
            }

            /// Layout of inputs and outputs, such as `NHWC` or `NCHW`; channels last is the faster one.
            #[must_use]
            pub fn data_format(mut self, data_format: &str) -> Self {
                self.data_format = data_format.into();
                self
            }
        }
    };
}
pub(super) use conv_setters;
