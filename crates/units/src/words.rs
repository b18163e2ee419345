//! Words: enums whose values stand as words in tables and files, with what they mean and how pages say them.
//!
//! [`words!`](crate::words) declares such an enum once, where it acts. `words.json`, which other languages and the documentation read, is
//! made of these declarations.

/// A word of a fixed vocabulary.
pub trait Word: Copy + 'static {
    /// The vocabulary, in the order of the words' numbers.
    const WORDS: &'static [&'static str];
    /// The same with what each word means.
    const ENTRIES: &'static [Entry];
    /// The word's place in it.
    fn code(self) -> u8;
}

/// A word and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The word itself.
    pub word: &'static str,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// How pages say it, each way under its name.
    pub phrases: &'static [(&'static str, &'static str)],
}

/// Declares an enum of words: a small number in a record, a word in a column. New words come last, so that the
/// numbers in the records of an earlier version keep their meaning.
#[macro_export]
macro_rules! words {
    (
        $(#[doc = $about:literal])*
        $visibility:vis enum $name:ident {
            $(
                $(#[doc = $meaning:literal])*
                $variant:ident = $word:literal $({ $($way:ident: $phrase:literal),+ $(,)? })?,
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
        $visibility enum $name { $($(#[doc = $meaning])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// Every value, in the order of their numbers.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word that stands in the column.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl $crate::Word for $name {
            const WORDS: &'static [&'static str] = &[$($word,)*];
            const ENTRIES: &'static [$crate::Entry] = &[$($crate::Entry {
                word: $word,
                meaning: concat!($($meaning),*),
                phrases: &[$($((stringify!($way), $phrase),)+)?],
            },)*];
            fn code(self) -> u8 {
                self as u8
            }
        }
    };
}
