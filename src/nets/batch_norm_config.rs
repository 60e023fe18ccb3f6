//! Settings of the batch normalisations inside a network.

use crate::module::{Copies, Description, Node, Visit};
use crate::nn::BatchNorm;

/// How the batch normalisations inside a network are set up; see [`BatchNorm`].
///
/// ```
/// use couplet::nets::{BatchNormConfig, ResNet};
/// let net = ResNet::new([1, 1, 1, 1], 10).bn_config(BatchNormConfig { decay_rate: 0.99, ..Default::default() });
/// let printed = "ResNet(blocks_per_group_list=[1, 1, 1, 1], num_classes=10, bn_config={decay_rate: 0.99})";
/// assert_eq!(format!("{net:?}").split_whitespace().collect::<String>().replace(",)", ")"), printed.replace(' ', ""));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchNormConfig {
    /// Share of the past that the moving averages keep at each step, in `[0, 1)`. Default: 0.9, as networks that are trained
    /// for few thousand steps need it.
    pub decay_rate: f64,
    /// Added to the variance. Default: 1e-5.
    pub eps: f64,
    /// Whether there is a trained scale. Default: yes.
    pub create_scale: bool,
    /// Whether there is a trained offset. Default: yes.
    pub create_offset: bool,
}

impl Default for BatchNormConfig {
    fn default() -> Self {
        BatchNormConfig { decay_rate: 0.9, eps: 1e-5, create_scale: true, create_offset: true }
    }
}

impl BatchNormConfig {
    /// A layer with these settings.
    pub(crate) fn layer(&self) -> BatchNorm {
        BatchNorm::new(self.create_scale, self.create_offset).decay_rate(self.decay_rate).eps(self.eps)
    }
}

impl Visit for BatchNormConfig {
    fn node(&self) -> Node<'_> {
        Node::Nothing
    }

    fn copy(&self, _: &mut Copies) -> Self {
        *self
    }

    /// What differs from the default.
    fn describe(&self) -> Option<Description> {
        let usual = Self::default();
        let number = |value: f64, usual: f64| (value != usual).then(|| value.describe());
        let flag = |value: bool, usual: bool| (value != usual).then(|| value.describe());
        let entries = [
            ("decay_rate", number(self.decay_rate, usual.decay_rate)),
            ("eps", number(self.eps, usual.eps)),
            ("create_scale", flag(self.create_scale, usual.create_scale)),
            ("create_offset", flag(self.create_offset, usual.create_offset)),
        ];
        Description::map(entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))))
    }
}
