//! What the allocator does with freed memory.

#![allow(unsafe_code, reason = "settings of the C library's allocator")]

/// Blocks below this size come from the heap.
#[cfg(target_env = "gnu")]
const MAPPED_FROM_BYTES: libc::c_int = 64 << 20;
/// So much free memory at the heap's end is kept.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: libc::c_int = 128 << 20;

/// Keeps freed memory for the next block, instead of giving it back to the kernel.
///
/// The finalising pass frees large columns and asks for others. By default glibc maps each anew, and the kernel fills every
/// page with zeros again. A simulation's clients grow better in mappings, which are enlarged without a copy: so this is not
/// for the whole run. Other C libraries have no such setting.
pub(crate) fn keep_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two numbers, and changes nothing but settings of the allocator, under its own lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
    }
}
