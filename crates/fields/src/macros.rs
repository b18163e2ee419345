//! The declaration of tables and words.

/// Declares a type that is read from a table: for each field its description, name, type, and where they differ from the
/// type's the rule that reads it, its bounds and its default.
///
/// ```
/// use mqttlab_fields::{fields, Size, DataRate};
/// use mqttlab_units::BitRate;
///
/// fields! {
///     /// A token bucket without a queue.
///     #[derive(Debug)]
///     pub struct Policer {
///         /// Data rate that may pass for ever.
///         rate: BitRate as DataRate,
///         /// Bytes that may pass at once after a silence.
///         burst: u64 as Size [1..=1_000_000_000] = 1500,
///     }
/// }
/// ```
///
/// A field is needed where it has no default, and its type is no `Option`. A file may have another name for it, as in
/// `rate_bit_s / "rate"`. Behind `with rules` the type has an
/// implementation of [`Rules`](crate::Rules) elsewhere.
#[macro_export]
macro_rules! fields {
    (
        $(#[$($meta:tt)*])* pub struct $name:ident $(with $rules:ident)? {
            $( $(#[$($about:tt)*])* $field:ident $(/ $written:literal)? : $type:ty $(as $rule:ty)? $([ $($bound:tt)* ])? $(= $default:expr)? ),* $(,)?
        }
    ) => {
        $(#[$($meta)*])*
        pub struct $name {
            $( $(#[$($about)*])* pub $field: $type, )*
        }

        $crate::no_rules!($name $(, $rules)?);

        impl $crate::Field for $name {
            type Rule = $crate::AsPart<$name>;
        }

        impl $crate::Part for $name {
            fn declaration() -> &'static $crate::PartDeclaration {
                static DECLARATION: std::sync::OnceLock<$crate::PartDeclaration> = std::sync::OnceLock::new();
                DECLARATION.get_or_init(|| {
                    let mut fields = Vec::new();
                    $( <$crate::rule_of!($type $(, $rule)?) as $crate::Rule>::declare(
                        $crate::FieldDeclaration {
                            name: $crate::written_name!($field $(, $written)?),
                            description: $crate::joined(&[$( $crate::doc_line!($($about)*) ),*]),
                            shape: $crate::Shape::Truth,
                            bounds: $crate::bounds_of!($($($bound)*)?),
                            is_needed: $crate::is_needed!($($default)?),
                            default: $crate::default_text!($($default)?),
                        },
                        &mut fields,
                    ); )*
                    $crate::PartDeclaration {
                        name: stringify!($name),
                        description: $crate::joined(&[$( $crate::doc_line!($($meta)*) ),*]),
                        fields,
                    }
                })
            }

            fn take(table: &$crate::Table, reader: &mut $crate::Reader) -> Option<Self> {
                $( let $field = <$crate::rule_of!($type $(, $rule)?) as $crate::Rule>::take(
                    $crate::Entry {
                        table,
                        name: $crate::written_name!($field $(, $written)?),
                        bounds: $crate::bounds_of!($($($bound)*)?),
                    },
                    || $crate::default_of!($($default)?),
                    reader,
                ); )*
                Some($name { $( $field: $field?, )* })
            }

            fn broken(&self) -> Option<$crate::Broken> {
                $( if let Some(broken) = <$crate::rule_of!($type $(, $rule)?) as $crate::Rule>::broken(
                    &self.$field,
                    $crate::bounds_of!($($($bound)*)?),
                ) {
                    let named = [$( $crate::stored_name!($($about)*) ),*];
                    let name = named.into_iter().flatten().next().unwrap_or(stringify!($field));
                    return Some(broken.below($crate::plain_name(name)));
                } )*
                None
            }
        }
    };
}

/// Declares words of which a field has one, each with what it means. Behind `|` stands what others call it: it is not
/// read, but a message asks for the right word.
///
/// ```
/// mqttlab_fields::words! {
///     /// Where loss happens.
///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
///     pub enum LossPlace {
///         /// Before the queue.
///         Entry = "entry",
///         /// On the air.
///         Exit = "exit",
///     }
/// }
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$($meta:tt)*])* pub enum $name:ident {
            $( $(#[$($about:tt)*])* $variant:ident = $word:literal $(| $also:literal)* ),* $(,)?
        }
    ) => {
        $(#[$($meta)*])*
        pub enum $name {
            $( $(#[$($about)*])* $variant, )*
        }

        impl $crate::Words for $name {
            fn all() -> &'static [(&'static str, &'static str)] {
                static ALL: std::sync::OnceLock<Vec<(&'static str, &'static str)>> = std::sync::OnceLock::new();
                ALL.get_or_init(|| vec![$( (
                    $word,
                    &*String::leak($crate::joined(&[$( $crate::doc_line!($($about)*) ),*])),
                ) ),*])
            }

            fn also() -> &'static [(&'static str, &'static str)] {
                &[$( $( ($also, $word), )* )*]
            }

            fn of(word: &str) -> Option<Self> {
                match word {
                    $( $word => Some($name::$variant), )*
                    _ => None,
                }
            }

            fn word(&self) -> &'static str {
                match self {
                    $( $name::$variant => $word, )*
                }
            }
        }

        impl $crate::Field for $name {
            type Rule = $crate::Word<$name>;
        }
    };
}

/// The rule of a field: its own, or its type's.
#[doc(hidden)]
#[macro_export]
macro_rules! rule_of {
    ($type:ty) => {
        <$type as $crate::Field>::Rule
    };
    ($type:ty, $rule:ty) => {
        $rule
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! no_rules {
    ($name:ident) => {
        impl $crate::Rules for $name {}
    };
    ($name:ident, rules) => {};
}

#[doc(hidden)]
#[macro_export]
macro_rules! doc_line {
    (doc = $line:expr) => {
        Some($line)
    };
    ($($other:tt)*) => {
        None
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! written_name {
    ($field:ident) => {
        $crate::plain_name(stringify!($field))
    };
    ($field:ident, $written:literal) => {
        $written
    };
}

/// The name that a field has in a plan, where that is another one.
#[doc(hidden)]
#[macro_export]
macro_rules! stored_name {
    (serde(rename = $name:literal $($rest:tt)*)) => {
        Some($name)
    };
    ($($other:tt)*) => {
        None::<&'static str>
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! bounds_of {
    () => { $crate::Bounds::default() };
    ($($bound:tt)*) => { $crate::Bounds::of($($bound)*) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! default_of {
    () => {
        None
    };
    ($default:expr) => {
        Some($default)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! is_needed {
    () => {
        true
    };
    ($default:expr) => {
        false
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! default_text {
    () => {
        None
    };
    ($default:expr) => {
        Some(String::from(stringify!($default)))
    };
}

/// A field's name as it is written: `r#for` of Rust is `for`.
#[doc(hidden)]
pub fn plain_name(name: &'static str) -> &'static str {
    name.strip_prefix("r#").unwrap_or(name)
}

/// The lines of a description in one.
#[doc(hidden)]
pub fn joined(lines: &[Option<&str>]) -> String {
    lines.iter().flatten().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
