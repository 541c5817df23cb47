"""Takes the semaphores out of the notes of a 64-bit little-endian program: then tracers count
all that come to its probes, and the program does not know that it is traced.

    unarm.py PROGRAM OFFSET SIZE    (of .note.stapsdt, in the file)
"""
import struct
import sys

path, at, size = sys.argv[1], int(sys.argv[2], 16), int(sys.argv[3], 16)
with open(path, "r+b") as f:
    f.seek(at)
    notes = bytearray(f.read(size))
    here = 0
    while here < size:
        owner, desc, kind = struct.unpack_from("<III", notes, here)
        body = here + 12 + (owner + 3 & ~3)
        assert kind == 3 and notes[here + 12 : here + 19] == b"stapsdt"
        struct.pack_into("<Q", notes, body + 16, 0)
        here = body + (desc + 3 & ~3)
    f.seek(at)
    f.write(notes)
