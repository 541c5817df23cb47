# A unit of DWARF 4 that does not say where it is, with a function whose name is
# in the file of .gnu_debugaltlink.
	.text
	.globl	f
f:
	.file	1 "alt.c"
	.loc	1 7
	nop
	.loc	1 8
	ret
.Lend:
	.section .debug_line,"",@progbits
.Lline:
	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11		# DW_TAG_compile_unit
	.byte	1
	.uleb128 0x10, 0x17, 0, 0	# DW_AT_stmt_list, DW_FORM_sec_offset
	.uleb128 2, 0x2e		# DW_TAG_subprogram
	.byte	0
	.uleb128 0x03, 0x1f21		# DW_AT_name, DW_FORM_GNU_strp_alt
	.uleb128 0x11, 0x01		# DW_AT_low_pc, DW_FORM_addr
	.uleb128 0x12, 0x07, 0, 0	# DW_AT_high_pc, DW_FORM_data8
	.uleb128 0
	.section .debug_info,"",@progbits
	.long	.Lbehind - .Lunit
.Lunit:
	.value	4
	.long	.debug_abbrev
	.byte	8
	.uleb128 1
	.long	.Lline
	.uleb128 2
	.long	0x1234
	.quad	f
	.quad	.Lend - f
	.uleb128 0
.Lbehind:
