/*
 * Copyright (c) 2026 The sdtconvert authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

/**
 * Probes in D, in one file without dependencies, for gdc and ldc.
 *
 *	probe!("shop", "sent")(number, price);
 *	if (enabled!("shop", "placed"))
 *		probe!("shop", "placed")(number, text.toStringz);
 *
 * A probe is a NOP with a note, as of the C headers that `sdtconvert provider -h` makes. Tracers of Linux find it in
 * any program, and nothing has to be installed to build it or converted. `sdtconvert` lists, checks and traces it.
 * Arguments, twelve at most, are integers, booleans, characters, enumerations and pointers. `enabled` is false unless
 * the probe is traced. Both are nothing on systems and machines where the note has no form, and with dmd.
 */
module sdt;

version (OSX) {}
else version (iOS) {}
else version (Windows) {}
else version (GNU) version = Compiler;
else version (LDC) version = Compiler;

version (Compiler)
{
    version (D_LP64)
    {
        version (X86_64)
        {
            private enum nop = ".byte 0x90,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0";
            private enum string[] read = ["movzwq ", "(%%rip), %0"];
        }
        else version (AArch64)
        {
            private enum nop = "nop";
            private enum string[] read = ["adrp %0, ", "; ldrsh %0, [%0, :lo12:", "]"];
        }
        else version (RISCV64)
        {
            private enum nop = ".option push; .option norvc; nop; nop; .option pop";
            private enum string[] read = ["lla %0, ", "; lhu %0, 0(%0)"];
        }
    }
}

/// Fires a probe.
pragma(inline, true)
void probe(string provider, string name, Args...)(Args args) nothrow @nogc @trusted
{
    static foreach (Arg; Args)
        static assert(__traits(isIntegral, Arg) || is(Arg : const(void)*) || is(Arg : bool), "an argument of a probe is an integer or a pointer");
    static if (is(typeof(nop)))
    {
        static foreach (i, Arg; Args)
            mixin("const word", number(i), " = cast(ulong) args[", number(i), "];");
        mixin("asm nothrow @nogc { \"", site(provider, name, texts!Args), "\" : : ", operands(Args.length), " : \"memory\"; }");
    }
}

/// Reports whether a probe is traced.
pragma(inline, true)
bool enabled(string provider, string name)() nothrow @nogc @trusted
{
    static if (is(typeof(nop)))
    {
        ulong count;
        mixin("asm nothrow @nogc { \"", semaphore(provider, name), load(provider ~ "_" ~ name ~ "_semaphore"), "\" : \"=r\" (count); }");
        return count != 0;
    }
    else
        return false;
}

static if (is(typeof(nop))):
private:

/// What tracers write of arguments: the size, negative if it is signed, and the operand.
template texts(Args...)
{
    enum texts = () {
        string text;
        static foreach (i, Arg; Args)
            text ~= (i ? " " : "") ~ (!is(Arg : const(void)*) && !__traits(isUnsigned, Arg) && !is(Arg == bool) ? "-" : "") ~ number(Arg.sizeof) ~ "@%" ~ number(i);
        return text;
    }();
}

string number(size_t n)
{
    return n < 10 ? "" ~ cast(char)('0' + n) : number(n / 10) ~ number(n % 10);
}

string operands(size_t n)
{
    string list;
    foreach (i; 0 .. n)
        list ~= (i ? ", " : "") ~ "\"r\" (word" ~ number(i) ~ ")";
    return list;
}

/// Reads a semaphore.
string load(string symbol)
{
    string code = read[0];
    foreach (after; read[1 .. $])
        code ~= symbol ~ after;
    return code;
}

/// A semaphore is a number that tracers count up, one of each name in a program or library.
string semaphore(string provider, string name)
{
    return piece("_.probes.base", "4096", "4", "")
        ~ piece(provider ~ "_" ~ name ~ "_semaphore", "4", "2", `.reloc 989b,BFD_RELOC_NONE,_.probes.base\n`);
}

string piece(string symbol, string alignment, string size, string more)
{
    return `.ifndef ` ~ symbol ~ `\n.pushsection .probes,\"awG\",\"progbits\",` ~ symbol ~ `,comdat\n.balign ` ~ alignment
        ~ `\n.weak ` ~ symbol ~ `\n.hidden ` ~ symbol ~ `\n.type ` ~ symbol ~ `,STT_OBJECT\n.size ` ~ symbol ~ `,` ~ size
        ~ `\n` ~ symbol ~ `:\n989: .zero 4\n` ~ more ~ `.popsection\n.endif\n`;
}

/// The place where a probe fires, with the note that describes it:
/// https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
string site(string provider, string name, string arguments)
{
    const symbol = provider ~ "_" ~ name ~ "_semaphore";
    return semaphore(provider, name) ~ `990: ` ~ nop ~ `\n.reloc 990b,BFD_RELOC_NONE,_.stapsdt.base\n`
        ~ `.reloc 990b,BFD_RELOC_NONE,` ~ symbol ~ `\n.pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n`
        ~ `.4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b,_.stapsdt.base,` ~ symbol
        ~ `\n.asciz \"` ~ provider ~ `\"\n.asciz \"` ~ name ~ `\"\n.asciz \"` ~ arguments ~ `\"\n994: .balign 4\n.popsection\n`
        ~ `.ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n`
        ~ `.hidden _.stapsdt.base\n_.stapsdt.base: .zero 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n`;
}
