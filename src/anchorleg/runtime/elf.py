"""The undefined names of an ELF object file, for error messages."""

from __future__ import annotations

import struct

_SYMBOL_TABLE = 2


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
