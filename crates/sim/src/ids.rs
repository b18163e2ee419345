//! Who is who inside a simulation: identifiers, and tables that are indexed by them.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A number that stands for one thing of a kind, counted from 0.
pub(crate) trait Id: Copy {
    fn from_index(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! id {
    ($(#[$doc:meta] $name:ident)*) => {
        $(
            #[$doc]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
            pub(crate) struct $name(pub(crate) u32);

            impl Id for $name {
                fn from_index(index: usize) -> Self {
                    $name(u32::try_from(index).expect("a plan has less than 2^32 of anything"))
                }

                fn index(self) -> usize {
                    self.0 as usize
                }
            }
        )*
    };
}

id! {
    /// A client, as the roster and the recording number it.
    ClientId
    /// A group of the plan.
    GroupId
    /// A host of the plan.
    HostId
    /// A server of the plan.
    ServerId
    /// Two sockets that exchange datagrams.
    ConversationId
}

/// A connection. Slots are used again once nothing can arrive for their connections; the generation tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpConnectionId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl TcpConnectionId {
    /// A number that no other connection has.
    pub(crate) fn number(self) -> u128 {
        u128::from(self.slot) << 32 | u128::from(self.generation)
    }
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    pub(crate) const BOTH: [Side; 2] = [Side::Client, Side::Server];

    pub(crate) const fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// Everything of a kind, by identifier.
#[derive(Clone, Debug)]
pub(crate) struct IdTable<I, T> {
    rows: Vec<T>,
    key: PhantomData<I>,
}

impl<I: Id, T> IdTable<I, T> {
    /// An empty table with room for so many rows.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        IdTable { rows: Vec::with_capacity(rows), key: PhantomData }
    }

    /// Adds a row, and says what it is known by.
    pub(crate) fn push(&mut self, row: T) -> I {
        self.rows.push(row);
        I::from_index(self.rows.len() - 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The identifiers, in order. They do not borrow the table.
    pub(crate) fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.rows.len()).map(I::from_index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.rows.iter().enumerate().map(|(index, row)| (I::from_index(index), row))
    }
}

impl<I: Id, T> FromIterator<T> for IdTable<I, T> {
    fn from_iter<R: IntoIterator<Item = T>>(rows: R) -> Self {
        IdTable { rows: rows.into_iter().collect(), key: PhantomData }
    }
}

impl<I: Id, T> Index<I> for IdTable<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.rows[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdTable<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_numbers_its_rows_in_the_order_in_which_they_come() {
        let mut table: IdTable<HostId, char> = IdTable::with_capacity(2);
        let ids = ['a', 'b'].map(|row| table.push(row));
        assert_eq!((ids, table.len()), ([HostId(0), HostId(1)], 2));
        table[ids[1]] = 'c';
        assert_eq!(table.ids().map(|id| table[id]).collect::<String>(), "ac");
    }
}
