// Copyright (c) 2026 The sdtconvert authors
// SPDX-License-Identifier: BSD-2-Clause

//! Probes in Zig, in one file without dependencies: copy it, and `const sdt = @import("sdt.zig");`. Zig 0.14 and later, with LLVM (`-fllvm`).
//!
//!     sdt.probe("shop", "sent", .{ number, price });
//!     if (sdt.enabled("shop", "placed"))
//!         sdt.probe("shop", "placed", .{ number, text.ptr });
//!
//! A probe is a NOP with a note, as of the C headers that `sdtconvert provider -h` makes. Tracers of Linux find it in
//! any program, and nothing has to be installed to build it or converted. `sdtconvert` lists, checks and traces it.
//! Arguments, twelve at most, are integers, booleans, enumerations and pointers, also optional ones. `enabled` is
//! false unless the probe is traced. Both are nothing on systems and machines where the note has no form.

const builtin = @import("builtin");

const Form = struct {
    nop: []const u8,
    /// What loads a semaphore, with its name between the pieces.
    read: []const []const u8,
};

const form: ?Form = if (builtin.object_format != .elf or @bitSizeOf(usize) != 64 or builtin.os.tag == .freestanding) null else switch (builtin.cpu.arch) {
    .x86_64 => .{ .nop = ".byte 0x90,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0", .read = &.{ "movzwq ", "(%%rip), %[count]" } },
    .aarch64 => .{ .nop = "nop", .read = &.{ "adrp %[count], ", "\nldrsh %[count], [%[count], :lo12:", "]" } },
    .riscv64 => .{ .nop = ".option push\n.option norvc\nnop\nnop\n.option pop", .read = &.{ "lla %[count], ", "\nlhu %[count], 0(%[count])" } },
    else => null,
};

/// Fires a probe.
pub inline fn probe(comptime provider: []const u8, comptime name: []const u8, args: anytype) void {
    comptime var texts: []const u8 = "";
    var w: [args.len]u64 = undefined;
    inline for (args, 0..) |arg, i| {
        const operand = comptime "@%[" ++ [_]u8{'a' + i} ++ "]";
        texts = comptime texts ++ (if (i == 0) "" else " ") ++ size(@TypeOf(arg)) ++ operand;
        w[i] = word(arg);
    }
    if (form == null) return;
    const text = comptime site(provider, name, texts);
    switch (args.len) {
        0 => asm volatile (text),
        1 => asm volatile (text : : [a] "r" (w[0])),
        2 => asm volatile (text : : [a] "r" (w[0]), [b] "r" (w[1])),
        3 => asm volatile (text : : [a] "r" (w[0]), [b] "r" (w[1]), [c] "r" (w[2])),
        4 => asm volatile (text : : [a] "r" (w[0]), [b] "r" (w[1]), [c] "r" (w[2]), [d] "r" (w[3])),
        5 => asm volatile (text : : [a] "r" (w[0]), [b] "r" (w[1]), [c] "r" (w[2]), [d] "r" (w[3]), [e] "r" (w[4])),
        6 => asm volatile (text : : [a] "r" (w[0]), [b] "r" (w[1]), [c] "r" (w[2]), [d] "r" (w[3]), [e] "r" (w[4]), [f] "r" (w[5])),
        7 => asm volatile (text : : [a] "r" (w[0]), [b] "r" (w[1]), [c] "r" (w[2]), [d] "r" (w[3]), [e] "r" (w[4]), [f] "r" (w[5]), [g] "r" (w[6])),
        8 => asm volatile (text : : [a] "r" (w[0]), [b] "r" (w[1]), [c] "r" (w[2]), [d] "r" (w[3]), [e] "r" (w[4]), [f] "r" (w[5]), [g] "r" (w[6]), [h] "r" (w[7])),
        9 => asm volatile (text : : [a] "r" (w[0]), [b] "r" (w[1]), [c] "r" (w[2]), [d] "r" (w[3]), [e] "r" (w[4]), [f] "r" (w[5]), [g] "r" (w[6]), [h] "r" (w[7]), [i] "r" (w[8])),
        10 => asm volatile (text : : [a] "r" (w[0]), [b] "r" (w[1]), [c] "r" (w[2]), [d] "r" (w[3]), [e] "r" (w[4]), [f] "r" (w[5]), [g] "r" (w[6]), [h] "r" (w[7]), [i] "r" (w[8]), [j] "r" (w[9])),
        11 => asm volatile (text : : [a] "r" (w[0]), [b] "r" (w[1]), [c] "r" (w[2]), [d] "r" (w[3]), [e] "r" (w[4]), [f] "r" (w[5]), [g] "r" (w[6]), [h] "r" (w[7]), [i] "r" (w[8]), [j] "r" (w[9]), [k] "r" (w[10])),
        12 => asm volatile (text : : [a] "r" (w[0]), [b] "r" (w[1]), [c] "r" (w[2]), [d] "r" (w[3]), [e] "r" (w[4]), [f] "r" (w[5]), [g] "r" (w[6]), [h] "r" (w[7]), [i] "r" (w[8]), [j] "r" (w[9]), [k] "r" (w[10]), [l] "r" (w[11])),
        else => @compileError("a probe has twelve arguments at most"),
    }
}

/// Reports whether a probe is traced.
pub inline fn enabled(comptime provider: []const u8, comptime name: []const u8) bool {
    if (form == null) return false;
    const text = comptime load: {
        var code: []const u8 = semaphore(provider, name) ++ form.?.read[0];
        for (form.?.read[1..]) |after| code = code ++ provider ++ "_" ++ name ++ "_semaphore" ++ after;
        break :load code;
    };
    return asm volatile (text : [count] "=r" (-> u64)) != 0;
}

/// What tracers write of an argument: its size, negative if it is signed.
fn size(comptime T: type) []const u8 {
    const sign = switch (@typeInfo(T)) {
        .comptime_int => return "-8",
        .int => |int| if (int.signedness == .signed) "-" else "",
        .@"enum" => |e| return size(e.tag_type),
        else => "",
    };
    return sign ++ switch (@bitSizeOf(T)) {
        0...8 => "1",
        9...16 => "2",
        17...32 => "4",
        33...64 => "8",
        else => @compileError("an argument of a probe is an integer or a pointer, not " ++ @typeName(T)),
    };
}

/// The value of an argument, as a word.
inline fn word(arg: anytype) u64 {
    return switch (@typeInfo(@TypeOf(arg))) {
        .comptime_int => @bitCast(@as(i64, arg)),
        .int => |int| if (int.signedness == .signed) @bitCast(@as(i64, arg)) else arg,
        .bool => @intFromBool(arg),
        .@"enum" => word(@intFromEnum(arg)),
        .pointer, .optional => @intFromPtr(arg),
        else => @compileError("an argument of a probe is an integer or a pointer, not " ++ @typeName(@TypeOf(arg))),
    };
}

/// A semaphore is a number that tracers count up, one of each name in a program or library.
fn semaphore(comptime provider: []const u8, comptime name: []const u8) []const u8 {
    return piece("_.probes.base", "4096", "4", "") ++
        piece(provider ++ "_" ++ name ++ "_semaphore", "4", "2", ".reloc 989b,BFD_RELOC_NONE,_.probes.base\n");
}

fn piece(comptime symbol: []const u8, comptime alignment: []const u8, comptime bytes: []const u8, comptime more: []const u8) []const u8 {
    return ".ifndef " ++ symbol ++ "\n.pushsection .probes,\"awG\",%%progbits," ++ symbol ++ ",comdat\n.balign " ++ alignment ++
        "\n.weak " ++ symbol ++ "\n.hidden " ++ symbol ++ "\n.type " ++ symbol ++ ",%%object\n.size " ++ symbol ++ "," ++ bytes ++
        "\n" ++ symbol ++ ":\n989: .zero 4\n" ++ more ++ ".popsection\n.endif\n";
}

/// The place where a probe fires, with the note that describes it:
/// https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
fn site(comptime provider: []const u8, comptime name: []const u8, comptime arguments: []const u8) []const u8 {
    const symbol = provider ++ "_" ++ name ++ "_semaphore";
    return semaphore(provider, name) ++ "990: " ++ form.?.nop ++ "\n.reloc 990b,BFD_RELOC_NONE,_.stapsdt.base\n" ++
        ".reloc 990b,BFD_RELOC_NONE," ++ symbol ++ "\n.pushsection .note.stapsdt,\"?\",%%note\n.balign 4\n" ++
        ".4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b,_.stapsdt.base," ++ symbol ++
        "\n.asciz \"" ++ provider ++ "\"\n.asciz \"" ++ name ++ "\"\n.asciz \"" ++ arguments ++ "\"\n994: .balign 4\n.popsection\n" ++
        ".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",%%progbits,.stapsdt.base,comdat\n.weak _.stapsdt.base\n" ++
        ".hidden _.stapsdt.base\n_.stapsdt.base: .zero 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n";
}
