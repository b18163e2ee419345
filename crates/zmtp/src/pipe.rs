//! The high-water mark: how many messages wait for a connection before more are dropped.
//!
//! libzmq lets a reader of its queue tell the writer how far it is only every so often, namely when it has taken half of the
//! mark (`compute_lwm`), so that a full queue has room again not by one message but by half of them. The same is done here: what is
//! lost of a burst depends on it.

/// A queue of messages, of which only the numbers are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipe {
    /// 0: no limit.
    mark: u32,
    put: u64,
    taken: u64,
    /// How far the writer knows that the reader is.
    reported: u64,
}

impl Pipe {
    /// An empty queue with a high-water mark; 0 for none.
    pub fn new(mark: u32) -> Pipe {
        Pipe { mark, put: 0, taken: 0, reported: 0 }
    }

    /// Whether another message has room.
    pub fn has_room(&self) -> bool {
        // By what the writer was told, as `pipe_t::check_write` does, and not by what was taken meanwhile.
        self.mark == 0 || self.put - self.reported < u64::from(self.mark)
    }

    /// A message was put into it.
    pub fn put(&mut self) {
        self.put += 1;
    }

    /// So many messages were taken out of it.
    pub fn take(&mut self, count: u64) {
        // `compute_lwm` is half of the mark, rounded up; the writer hears of whole steps only.
        let (step, before) = (u64::from(self.mark).div_ceil(2).max(1), self.taken);
        self.taken = (self.taken + count).min(self.put);
        // libzmq tells at `msgs_read % lwm == 0`; several that are taken at once may go past that.
        if self.taken / step > before / step {
            self.reported = self.taken / step * step;
        }
    }

    /// Messages in it.
    pub fn len(&self) -> u64 {
        self.put - self.taken
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_has_room_again_when_half_of_it_was_taken() {
        let mut pipe = Pipe::new(4);
        (0..4).for_each(|_| {
            assert!(pipe.has_room());
            pipe.put();
        });
        assert!(!pipe.has_room());
        pipe.take(1);
        assert!(!pipe.has_room() && pipe.len() == 3);
        pipe.take(1);
        let room = (0..9).take_while(|_| pipe.has_room().then(|| pipe.put()).is_some()).count();
        assert_eq!(room, 2);
    }

    #[test]
    fn a_mark_of_one_lets_one_wait_and_none_lets_all() {
        let mut one = Pipe::new(1);
        one.put();
        assert!(!one.has_room());
        one.take(1);
        assert!(one.has_room() && one.is_empty());
        let mut none = Pipe::new(0);
        (0..10_000).for_each(|_| none.put());
        assert!(none.has_room());
        none.take(20_000);
        assert!(none.is_empty());
    }
}
