//! Where the channels of a tensor stand.

use crate::error::{Error, Result};

/// Whether channels come right after the batch or last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelAxis {
    /// Axis 1.
    First,
    /// The last axis.
    Last,
}

/// The channel axis that a data format names: `channels_first`, `channels_last`, `NCHW`, `NHWC`, `NC`, `BTD`, ..
///
/// The letters: `N` then `C` then anything without a `C` is first; `N`, anything without a `C`, then `C` is last;
/// `BT` or `TB`, anything without a `D`, then `D` is last.
///
/// # Errors
/// The text is none of these.
pub fn channel_axis(op: &'static str, data_format: &str) -> Result<ChannelAxis> {
    let refused = || {
        let expected = "channels_first, channels_last, or letters such as NCHW, NHWC, NWC, NDHWC or BTD";
        Err(Error::argument(op, "data_format", format!("{data_format:?}"), expected))
    };
    match data_format {
        "channels_first" => return Ok(ChannelAxis::First),
        "channels_last" => return Ok(ChannelAxis::Last),
        _ => {}
    }
    if !data_format.bytes().all(|b| b.is_ascii_uppercase()) {
        return refused();
    }
    if let Some(rest) = data_format.strip_prefix("NC")
        && !rest.contains('C')
    {
        return Ok(ChannelAxis::First);
    }
    if let Some(rest) = data_format.strip_prefix('N').and_then(|rest| rest.strip_suffix('C'))
        && !rest.is_empty()
        && !rest.contains('C')
    {
        return Ok(ChannelAxis::Last);
    }
    let sequence = data_format.strip_prefix("BT").or_else(|| data_format.strip_prefix("TB"));
    if let Some(rest) = sequence.and_then(|rest| rest.strip_suffix('D'))
        && !rest.contains('D')
    {
        return Ok(ChannelAxis::Last);
    }
    refused()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_formats_are_told_apart() {
        for format in ["channels_first", "NC", "NCW", "NCHW", "NCDHW"] {
            assert_eq!(channel_axis("t", format).unwrap(), ChannelAxis::First, "{format}");
        }
        for format in ["channels_last", "NWC", "NHWC", "NDHWC", "NTC", "BTD", "TBD", "BTHWD", "TBHWD"] {
            assert_eq!(channel_axis("t", format).unwrap(), ChannelAxis::Last, "{format}");
        }
        for format in
            ["foo", "NHW", "HWC", "NCHC", "BTDTD", "channel_last", "chanels_first", "nhwc", "N", "C", ""]
        {
            assert!(channel_axis("t", format).unwrap_err().to_string().contains(format), "{format}");
        }
    }
}
