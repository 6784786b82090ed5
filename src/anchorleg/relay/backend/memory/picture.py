"""A picture of a memory plan: time to the right, addresses upwards, one rectangle for each buffer."""
from __future__ import annotations

import html
import re

from .buffers import BufferInfo, PoolAllocation
from .pools import MemoryLayout, PoolUse

WIDTH, HEIGHT, MARGIN, GAP = 1200, 420, 80, 70
_RIGHT, _LETTER, _LINE = 10, 6.2, 13  # the right border, a letter's width and a line's height, in pixels
_COLORS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb")
_DARK = ("#4477aa", "#228833", "#aa3377")  # on which text is white


def draw(layout: MemoryLayout, title: str = "memory plan") -> str:
    """The plan as an SVG document; hovering over a rectangle tells the buffer's name, size, place and life."""
    height = MARGIN + len(layout.pools) * (HEIGHT + GAP)
    steps = max((b.last for b in layout.buffers), default=0) + 1
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>', f'<text x="10" y="22" font-size="16">{html.escape(title)}</text>',
             f'<text x="10" y="42">{html.escape(layout.report().splitlines()[-1])}</text>']
    for row, pool in enumerate(layout.pools):
        top = MARGIN + row * (HEIGHT + GAP)
        parts += _frame(pool, top, steps)
        parts += [_rectangle(i, b, p, top, HEIGHT / max(1, pool.used), steps)
                  for i, (b, p) in enumerate(zip(layout.buffers, layout.places)) if p.pool == pool.name]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _frame(pool: PoolUse, top: int, steps: int) -> list[str]:
    """A pool's heading, its border, and the scales of bytes and steps."""
    limit = f" of {pool.limit}" if pool.limit is not None else ""
    wide = WIDTH - MARGIN - _RIGHT
    parts = [f'<text x="10" y="{top - 8}">{html.escape(pool.name)}: {pool.used}{limit} bytes, {steps} steps</text>',
             f'<rect x="{MARGIN}" y="{top}" width="{wide}" height="{HEIGHT}" fill="#f7f7f7" stroke="#888"/>']
    for value in ticks(pool.used, 8):
        y = top + HEIGHT - value * HEIGHT / max(1, pool.used)
        parts += [f'<line x1="{MARGIN - 4}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#ddd"/>',
                  f'<text x="{MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end" font-size="11" fill="#555">{_bytes(value)}</text>']
    for value in ticks(steps, 20, whole=True):
        x = MARGIN + value * wide / steps
        parts.append(f'<text x="{x + wide / steps / 2:.1f}" y="{top + HEIGHT + 16}" text-anchor="middle" font-size="11" fill="#555">{value}</text>')
    return [*parts, f'<text x="{MARGIN + wide / 2}" y="{top + HEIGHT + 34}" text-anchor="middle" fill="#555">step</text>']


def ticks(end: int, most: int, whole: bool = False) -> list[int]:
    """At most ``most`` round numbers from 0 to ``end`` (below it, where ``whole``): multiples of 1, 2 or 5 times a power of ten."""
    step, factors = 1, (2, 2.5, 2)
    for turn in range(64):
        if end <= step * (most - 1):
            break
        step = int(step * factors[turn % 3])
    return list(range(0, end if whole else end + 1, step))


def _bytes(value: int) -> str:
    """A number of bytes, in thousands or millions where that is exact enough."""
    for unit, name in ((1_000_000, " MB"), (1000, " kB")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return str(value)


def _rectangle(number: int, buffer: BufferInfo, place: PoolAllocation, top: int, scale: float, steps: int) -> str:
    unit = (WIDTH - MARGIN - _RIGHT) / steps
    x, width = MARGIN + buffer.first * unit, (buffer.last - buffer.first + 1) * unit
    y, height = top + HEIGHT - (place.offset + buffer.size) * scale, buffer.size * scale
    color = _COLORS[number % len(_COLORS)]
    told = f"{buffer.name}: {buffer.size} bytes at {place.offset}, steps {buffer.first} to {buffer.last}" + (f", {buffer.origin}" if buffer.origin else "")
    return (f'<g><title>{html.escape(told)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}" '
            f'fill-opacity="0.8" stroke="#222" stroke-width="0.5"/>{_label(buffer, x, y, width, height, "#fff" if color in _DARK else "#222")}</g>')


def _label(buffer: BufferInfo, x: float, y: float, width: float, height: float, color: str) -> str:
    """The buffer's name and size, as far as there is room inside its rectangle."""
    letters = int((width - 8) / _LETTER)
    lines = [_short(buffer.name, letters), f"{buffer.size} bytes"]
    lines = [text for text in lines if 0 < len(text) <= letters][: int((height - 4) / _LINE)]
    return "".join(f'<text x="{x + 4:.1f}" y="{y + _LINE * (i + 1):.1f}" font-size="11" fill="{color}">{html.escape(text)}</text>' for i, text in enumerate(lines))


def _short(name: str, letters: int) -> str:
    """What a buffer's name says beyond what all names share, cut to ``letters``; empty where too little would be left."""
    text = re.sub(r"^tvmgen_.*?_fused_", "", name).removesuffix("_out").replace("nn_", "")
    return text if len(text) <= letters else text[: letters - 1] + "…" if letters >= 8 else ""
