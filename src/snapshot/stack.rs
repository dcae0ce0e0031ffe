//! Room on the stack for parsers that recurse: nesting is limited, but a level costs them kilobytes.

use std::io;
use std::panic::resume_unwind;
use std::thread;

const ROOM: usize = 64 << 20;

/// Runs `work` on a thread with a large stack and returns its result.
///
/// # Errors
///
/// The thread could not be started.
pub(crate) fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("snapshot".to_owned()).stack_size(ROOM).spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
