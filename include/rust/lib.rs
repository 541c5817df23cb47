// Copyright (c) 2026 The sdtconvert authors
// SPDX-License-Identifier: BSD-2-Clause

//! The macros of [sdt.rs](sdt), as a crate without dependencies.
#![no_std]

#[doc(hidden)]
pub mod sdt;
