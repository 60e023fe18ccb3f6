//! Tables of variables.

use crate::variable::Variable;

const HEADER: [&str; 4] = ["Variable", "Spec", "Trainable", "Device"];

/// A table of variables: name, dtype and shape, whether they are trained.
///
/// ```text
/// | Variable   | Spec     | Trainable   | Device   |
/// |------------+----------+-------------+----------|
/// | linear/w   | f32[4,3] | True        | CPU      |
/// | linear/b   | f32[3]   | True        | CPU      |
/// ```
///
/// Sorted by scope, then from the highest rank to the lowest, then by name. A frozen variable counts as not trained.
pub fn format_variables(variables: &[Variable]) -> String {
    let mut sorted: Vec<&Variable> = variables.iter().collect();
    sorted.sort_by_key(|variable| {
        let scope = variable.name().rsplit_once('/').map_or("", |(scope, _)| scope);
        (scope.to_owned(), std::cmp::Reverse(variable.shape().len()), variable.name().to_owned())
    });
    let rows: Vec<[String; 4]> = sorted.into_iter().map(row).collect();
    table(&HEADER, &rows)
}

/// Writes the lines of [`format_variables`] to the `log` crate, one record each.
pub fn log_variables(variables: &[Variable]) {
    for line in format_variables(variables).lines() {
        log::info!("{line}");
    }
}

fn row(variable: &Variable) -> [String; 4] {
    let dims: Vec<String> = variable.shape().iter().map(usize::to_string).collect();
    let spec = format!("{}[{}]", variable.dtype(), dims.join(","));
    let trained = if variable.trainable() && !variable.is_frozen() { "True" } else { "False" };
    [variable.name().to_owned(), spec, trained.to_owned(), "CPU".to_owned()]
}

/// A table with a rule below its header, columns aligned to the left. A column is at least two wider than its header.
pub(crate) fn table<const N: usize>(header: &[&str; N], rows: &[[String; N]]) -> String {
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count() + 2]).max().unwrap_or(0)
    });
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> =
            (0..N).map(|column| format!("{:<1$}", cell(column), widths[column])).collect();
        format!("| {} |", cells.join(" | "))
    };
    let mut lines = vec![line(&|column| header[column].to_owned())];
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    lines.push(format!("|{}|", rules.join("+")));
    lines.extend(rows.iter().map(|row| line(&|column| row[column].clone())));
    lines.join("\n")
}
