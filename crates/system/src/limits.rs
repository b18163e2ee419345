//! What this process may have (getrlimit(2)); `None` where there is no limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one, and says what it is.
pub fn raise_open_files() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}

/// Processes and threads of this user.
pub fn tasks() -> Option<u64> {
    getrlimit(Resource::Nproc).current
}

/// Bytes of memory that are mapped.
pub fn mapped_bytes() -> Option<u64> {
    getrlimit(Resource::As).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_raised_to_the_hard_one() {
        let raised = raise_open_files();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!((raised, current), (maximum, maximum));
    }
}
