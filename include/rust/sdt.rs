// Copyright (c) 2026 The sdtconvert authors
// SPDX-License-Identifier: BSD-2-Clause

//! Probes in Rust, in one file without dependencies: copy it, or use the crate beside it. Rust 1.59, `no_std`.
//!
//! ```ignore
//! sdt_probe!(shop, sent, i32 = number, u64 = price);
//! if sdt_enabled!(shop, placed) {
//!     sdt_probe!(shop, placed, i32 = number, ptr = text.as_ptr());
//! }
//! ```
//!
//! A probe is a NOP with a note, as of the C headers that `sdtconvert provider -h` makes. Tracers of Linux find it in
//! any program, and nothing has to be installed to build it or converted. `sdtconvert` lists, checks and traces it.
//! Arguments, twelve at most, are `i8` to `i64`, `u8` to `u64`, `isize`, `usize`, `bool` and `ptr`, which is any
//! pointer or reference. `sdt_enabled!` is false unless the probe is traced. Both are nothing on systems and machines
//! where the note has no form: there, arguments are checked and not evaluated.

/// Fires a probe: `sdt_probe!(provider, name, type = value, ...)`.
#[macro_export]
macro_rules! sdt_probe {
    ($provider:ident, $name:ident $(,)?) => {
        $crate::__sdt_site!($provider, $name, "", ())
    };
    ($provider:ident, $name:ident, $type:ident = $value:expr $(, $types:ident = $values:expr)* $(,)?) => {
        $crate::__sdt_site!(
            $provider, $name,
            concat!($crate::__sdt_size!($type), "@{}" $(, " ", $crate::__sdt_size!($types), "@{}")*),
            () $type = $value, $($types = $values,)*
        )
    };
}

/// Reports whether a probe is traced.
#[macro_export]
macro_rules! sdt_enabled {
    ($provider:ident, $name:ident) => {
        $crate::__sdt_test!($provider, $name)
    };
}

/// What tracers write of an argument: its size, negative if it is signed.
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_size {
    (i8) => { "-1" };
    (u8) => { "1" };
    (bool) => { "1" };
    (i16) => { "-2" };
    (u16) => { "2" };
    (i32) => { "-4" };
    (u32) => { "4" };
    (i64) => { "-8" };
    (u64) => { "8" };
    (isize) => { "-8" };
    (usize) => { "8" };
    (ptr) => { "8" };
}

/// The value of an argument, as a word.
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_word {
    (ptr, $value:expr) => {{
        fn word<T: ?Sized>(value: *const T) -> u64 {
            value as *const u8 as usize as u64
        }
        word($value)
    }};
    ($type:ident, $value:expr) => {{
        let value: $type = $value;
        value as u64
    }};
}

/// A semaphore is a number that tracers count up, one of each name in a program or library.
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_semaphore {
    ($provider:ident, $name:ident) => {
        concat!(
            ".ifndef _.probes.base\n",
            ".pushsection .probes,\"awG\",%progbits,_.probes.base,comdat\n.balign 4096\n",
            ".weak _.probes.base\n.hidden _.probes.base\n.type _.probes.base,%object\n.size _.probes.base,4\n",
            "_.probes.base: .zero 4\n.popsection\n.endif\n",
            ".ifndef ", stringify!($provider), "_", stringify!($name), "_semaphore\n",
            ".pushsection .probes,\"awG\",%progbits,", stringify!($provider), "_", stringify!($name), "_semaphore,comdat\n.balign 4\n",
            ".weak ", stringify!($provider), "_", stringify!($name), "_semaphore\n",
            ".hidden ", stringify!($provider), "_", stringify!($name), "_semaphore\n",
            ".type ", stringify!($provider), "_", stringify!($name), "_semaphore,%object\n",
            ".size ", stringify!($provider), "_", stringify!($name), "_semaphore,2\n",
            stringify!($provider), "_", stringify!($name), "_semaphore:\n989: .zero 4\n",
            ".reloc 989b,BFD_RELOC_NONE,_.probes.base\n",
            ".popsection\n.endif\n",
        )
    };
}

/// The place where a probe fires, with the note that describes it
/// (<https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>). Each argument is evaluated into a variable
/// first, outside of `unsafe`: the variables of the steps differ, though they have one name.
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_note {
    ($nop:expr, $options:tt, $provider:ident, $name:ident, $text:expr, ($($word:ident)*) $type:ident = $value:expr, $($rest:tt)*) => {{
        let word = $crate::__sdt_word!($type, $value);
        $crate::__sdt_note!($nop, $options, $provider, $name, $text, ($($word)* word) $($rest)*)
    }};
    ($nop:expr, ($($option:ident)*), $provider:ident, $name:ident, $text:expr, ($($word:ident)*)) => {
        #[allow(named_asm_labels)]
        unsafe {
            ::core::arch::asm!(
                $crate::__sdt_semaphore!($provider, $name),
                concat!("990: ", $nop),
                ".reloc 990b,BFD_RELOC_NONE,_.stapsdt.base",
                concat!(".reloc 990b,BFD_RELOC_NONE,", stringify!($provider), "_", stringify!($name), "_semaphore"),
                ".pushsection .note.stapsdt,\"?\",%note",
                ".balign 4",
                ".4byte 992f-991f,994f-993f,3",
                "991: .asciz \"stapsdt\"",
                "992: .balign 4",
                "993: .8byte 990b,_.stapsdt.base",
                concat!(".8byte ", stringify!($provider), "_", stringify!($name), "_semaphore"),
                concat!(".asciz \"", stringify!($provider), "\""),
                concat!(".asciz \"", stringify!($name), "\""),
                concat!(".asciz \"", $text, "\""),
                "994: .balign 4",
                ".popsection",
                ".ifndef _.stapsdt.base",
                ".pushsection .stapsdt.base,\"aG\",%progbits,.stapsdt.base,comdat",
                ".weak _.stapsdt.base",
                ".hidden _.stapsdt.base",
                "_.stapsdt.base: .zero 1",
                ".size _.stapsdt.base,1",
                ".popsection",
                ".endif",
                $(in(reg) $word,)*
                options(nostack, preserves_flags, readonly $(, $option)*)
            );
        }
    };
}

/// Reads the semaphore of a probe.
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_read {
    (($($option:ident)*), $provider:ident, $name:ident, $($before:literal, $after:literal);*) => {{
        let count: u64;
        #[allow(named_asm_labels)]
        unsafe {
            ::core::arch::asm!(
                $crate::__sdt_semaphore!($provider, $name),
                $(concat!($before, stringify!($provider), "_", stringify!($name), "_semaphore", $after),)*
                out(reg) count,
                options(nostack, preserves_flags, readonly $(, $option)*)
            );
        }
        count != 0
    }};
}

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_site {
    ($($rest:tt)*) => { $crate::__sdt_note!(".byte 0x90,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0", (att_syntax), $($rest)*) };
}

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_test {
    ($provider:ident, $name:ident) => { $crate::__sdt_read!((att_syntax), $provider, $name, "movzwl ", "(%rip), {0:e}") };
}

#[cfg(all(target_arch = "aarch64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_site {
    ($($rest:tt)*) => { $crate::__sdt_note!("nop", (), $($rest)*) };
}

#[cfg(all(target_arch = "aarch64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_test {
    ($provider:ident, $name:ident) => { $crate::__sdt_read!((), $provider, $name, "adrp {0}, ", ""; "ldrh {0:w}, [{0}, :lo12:", "]") };
}

#[cfg(all(target_arch = "riscv64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_site {
    ($($rest:tt)*) => { $crate::__sdt_note!(".option push\n.option norvc\nnop\nnop\n.option pop", (), $($rest)*) };
}

#[cfg(all(target_arch = "riscv64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_test {
    ($provider:ident, $name:ident) => { $crate::__sdt_read!((), $provider, $name, "lla {0}, ", "\nlhu {0}, 0({0})") };
}

#[cfg(not(any(all(target_arch = "x86_64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))),
    all(target_arch = "aarch64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))),
    all(target_arch = "riscv64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_site {
    ($provider:ident, $name:ident, $text:expr, () $($type:ident = $value:expr,)*) => {
        if false {
            $(let _ = $crate::__sdt_word!($type, $value);)*
        }
    };
}

#[cfg(not(any(all(target_arch = "x86_64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))),
    all(target_arch = "aarch64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))),
    all(target_arch = "riscv64", target_pointer_width = "64", not(any(target_vendor = "apple", target_os = "windows", target_os = "uefi", target_os = "none"))))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __sdt_test {
    ($provider:ident, $name:ident) => { false };
}
