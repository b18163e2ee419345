//! Packet types: numbers with names.

/// Declares an enumeration of packet types.
macro_rules! numbered {
    ($(#[$about:meta])* $type:ident: $($name:ident = $number:literal, $text:literal;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum $type {
            $($name = $number,)*
        }

        impl $type {
            /// Every type.
            pub const ALL: &[$type] = &[$($type::$name,)*];

            /// The type of this number; `None` where it is reserved.
            pub const fn from_number(number: u8) -> Option<$type> {
                Some(match number {
                    $($number => $type::$name,)*
                    _ => return None,
                })
            }

            /// The name as the specification writes it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$name => $text,)*
                }
            }
        }
    };
}

pub(crate) use numbered;
