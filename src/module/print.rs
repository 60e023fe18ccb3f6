//! The printed form of modules: `MyLinear(output_size=32)`.

use std::fmt;

use super::visit::Visit;
use crate::scope::Scope;

/// Longest line before a module's arguments are printed one a line.
const WIDTH: usize = 80;

/// The printed form of a value, kept in parts so that a long list can be wrapped.
#[derive(Debug, Clone)]
pub struct Description(Form);

#[derive(Debug, Clone)]
enum Form {
    Text(String),
    /// Opening bracket, parts, closing bracket.
    List(&'static str, Vec<Description>, &'static str),
    /// A key of a map and its value.
    Entry(String, Box<Description>),
}

impl Description {
    /// A value printed as it is.
    pub fn text(value: impl fmt::Display) -> Self {
        Description(Form::Text(value.to_string()))
    }

    /// A string in single quotes.
    pub fn quoted(text: &str) -> Self {
        let mut quoted = String::from("'");
        for c in text.chars() {
            match c {
                '\'' => quoted.push_str("\\'"),
                '"' => quoted.push('"'),
                c => quoted.extend(c.escape_debug()),
            }
        }
        quoted.push('\'');
        Description(Form::Text(quoted))
    }

    /// `[a, b]`. Items that are not printed become `_`; if all of them do, so is the list not printed.
    pub fn list(items: impl IntoIterator<Item = Option<Description>>) -> Option<Self> {
        Self::bracketed("[", items, "]")
    }

    /// `(a, b)`, as [`list`](Description::list).
    pub fn tuple(items: impl IntoIterator<Item = Option<Description>>) -> Option<Self> {
        Self::bracketed("(", items, ")")
    }

    /// `{a: x, b: y}`, as [`list`](Description::list).
    pub fn map(entries: impl IntoIterator<Item = (String, Option<Description>)>) -> Option<Self> {
        let entry = |(key, value): (String, Option<Description>)| {
            value.map(|value| Description(Form::Entry(key, Box::new(value))))
        };
        Self::bracketed("{", entries.into_iter().map(entry), "}")
    }

    fn bracketed(
        open: &'static str,
        items: impl IntoIterator<Item = Option<Description>>,
        close: &'static str,
    ) -> Option<Self> {
        let items: Vec<_> = items.into_iter().collect();
        if !items.is_empty() && items.iter().all(Option::is_none) {
            return None;
        }
        let items = items.into_iter().map(|item| item.unwrap_or_else(|| Description::text("_"))).collect();
        Some(Description(Form::List(open, items, close)))
    }

    /// Wrapped to lines of `width`, counted from the column where it starts.
    fn wrapped(&self, width: usize) -> String {
        let line = self.to_string();
        match &self.0 {
            Form::List(open, items, close) if columns(&line) > width && !items.is_empty() => {
                let indent = columns(open);
                let items: Vec<String> = items
                    .iter()
                    .map(|item| hang(&item.wrapped(width.saturating_sub(indent)), indent))
                    .collect();
                format!("{open}{}{close}", items.join(&format!(",\n{}", " ".repeat(indent))))
            }
            Form::Entry(key, value) if columns(&line) > width => {
                let indent = columns(key) + 2;
                format!("{key}: {}", hang(&value.wrapped(width.saturating_sub(indent)), indent))
            }
            _ => line,
        }
    }
}

impl fmt::Display for Description {
    /// On one line, unless a module inside takes several.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Text(text) => f.write_str(text),
            Form::Entry(key, value) => write!(f, "{key}: {value}"),
            Form::List(open, items, close) => {
                f.write_str(open)?;
                for (i, item) in items.iter().enumerate() {
                    let separator = if i > 0 { ", " } else { "" };
                    write!(f, "{separator}{item}")?;
                }
                f.write_str(close)
            }
        }
    }
}

/// Indents all lines but the first.
fn hang(text: &str, indent: usize) -> String {
    text.replace('\n', &format!("\n{}", " ".repeat(indent)))
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Builds the printed form of a module or of a struct of plain values.
///
/// ```
/// use couplet::Printer;
/// let mut print = Printer::new("Linear");
/// print.argument("output_size", &32usize);
/// assert_eq!(print.to_string(), "Linear(output_size=32)");
/// ```
#[derive(Debug)]
pub struct Printer {
    kind: &'static str,
    arguments: Vec<(&'static str, Description)>,
}

impl Printer {
    /// The printed form of a value of type `kind`, without arguments yet.
    pub fn new(kind: &'static str) -> Self {
        Printer { kind, arguments: Vec::new() }
    }

    /// Adds `name=value`, if values of this type are printed. An argument without a name is the value alone.
    pub fn argument(&mut self, name: &'static str, value: &dyn Visit) {
        if let Some(description) = value.describe() {
            self.arguments.push((name, description));
        }
    }

    /// Adds `name='stem'`, if the user gave the module a name.
    pub fn name(&mut self, scope: &Scope) {
        if let Some(name) = scope.chosen_name() {
            self.arguments.push(("name", Description::quoted(&name)));
        }
    }

    /// Whether there is no argument to print.
    pub fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }

    /// The printed form as an argument of another module.
    pub fn describe(&self) -> Description {
        Description::text(self)
    }
}

impl fmt::Display for Printer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = |name: &str| if name.is_empty() { String::new() } else { format!("{name}=") };
        let arguments: Vec<String> =
            self.arguments.iter().map(|(name, value)| format!("{}{value}", prefix(name))).collect();
        let line = format!("{}({})", self.kind, arguments.join(", "));
        if columns(&line) <= WIDTH && !line.contains('\n') {
            return f.write_str(&line);
        }
        writeln!(f, "{}(", self.kind)?;
        for (name, value) in &self.arguments {
            let prefix = prefix(name);
            let value = hang(&value.wrapped(WIDTH), 4 + columns(&prefix));
            writeln!(f, "    {prefix}{value},")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_in_the_reference() {
        assert_eq!(Description::quoted("VALID").to_string(), "'VALID'");
        assert_eq!(Description::quoted("it's \"\n\"").to_string(), r#"'it\'s "\n"'"#);
    }

    #[test]
    fn a_line_of_eighty_columns_stays_whole() {
        let mut print = Printer::new("Module");
        print.argument("text", &"x".repeat(80 - "Module(text='')".len()));
        assert_eq!(print.to_string().len(), 80);
        let mut print = Printer::new("Module");
        print.argument("text", &"x".repeat(81 - "Module(text='')".len()));
        assert_eq!(print.to_string(), format!("Module(\n    text='{}',\n)", "x".repeat(66)));
    }

    #[test]
    fn a_long_list_takes_a_line_for_each_item() {
        struct Linear(usize);
        impl Visit for Linear {
            fn node(&self) -> crate::module::Node<'_> {
                crate::module::Node::Nothing
            }
            fn copy(&self, _: &mut crate::module::Copies) -> Self {
                Linear(self.0)
            }
            fn describe(&self) -> Option<Description> {
                let mut print = Printer::new("Linear");
                print.argument("output_size", &self.0);
                Some(print.describe())
            }
        }
        let scope = Scope::new("lst");
        scope.rename("hai");
        let mut print = Printer::new("Lst");
        print.argument("submodules", &[Linear(1), Linear(2), Linear(3), Linear(4)]);
        print.name(&scope);
        let expected = "\
Lst(
    submodules=[Linear(output_size=1),
                Linear(output_size=2),
                Linear(output_size=3),
                Linear(output_size=4)],
    name='hai',
)";
        assert_eq!(print.to_string(), expected);
    }

    #[test]
    fn values_of_maps_hang_below_their_keys() {
        let mut map = std::collections::BTreeMap::new();
        map.insert("key".to_owned(), vec![1_000_000_000_000_000u64; 5]);
        let mut print = Printer::new("M");
        print.argument("m", &map);
        let expected = "\
M(
    m={'key': [1000000000000000,
               1000000000000000,
               1000000000000000,
               1000000000000000,
               1000000000000000]},
)";
        assert_eq!(print.to_string(), expected);
    }
}
