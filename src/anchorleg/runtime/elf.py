"""Of ELF files: the undefined names of an object, for error messages; how long a file ought to be, before it is opened."""

from __future__ import annotations

import struct

_SYMBOL_TABLE = 2
_NO_BYTES = 8  # the type of a section that takes no room in the file


def undefined_symbols(code: "bytes | memoryview") -> list[str]:
    """Names that a 64-bit little-endian ELF object uses and does not define; [] for other or damaged files."""
    data = bytes(code)
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    try:
        return sorted(set(_read(data)))
    except (struct.error, IndexError, ValueError):
        return []


def _read(data: bytes) -> list[str]:
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    # of a section header: type, offset, size, link
    sections = [struct.unpack_from("<4xI16xQQI", data, table + index * size) for index in range(count)]
    names = []
    for kind, offset, length, link in sections:
        if kind == _SYMBOL_TABLE:
            strings = sections[link][1]
            for at in range(offset + 24, offset + length, 24):
                name, _, _, section = struct.unpack_from("<IBBH", data, at)
                if section == 0 and name:
                    start = strings + name
                    names.append(data[start:data.index(b"\0", start)].decode(errors="replace"))
    return names


def extent(data: "bytes | memoryview") -> int | None:
    """How many bytes a 64-bit little-endian ELF file says it has; None for other files and for one cut off before it says so.

    The system maps what is missing and the process dies when it is touched, so this is asked first.
    """
    if bytes(data[:6]) != b"\x7fELF\x02\x01":
        return None
    try:
        programs, table = struct.unpack_from("<QQ", data, 32)
        program_size, program_count, size, count = struct.unpack_from("<HHHH", data, 54)
        ends = [table + size * count, programs + program_size * program_count]
        ends += [sum(struct.unpack_from("<8xQ16xQ", data, programs + n * program_size)) for n in range(program_count)]
        if table + size * count <= len(data):
            sections = [struct.unpack_from("<4xI16xQQ", data, table + n * size) for n in range(count)]
            ends += [offset + length for kind, offset, length in sections if kind != _NO_BYTES]
        return max(ends)
    except struct.error:
        return None
