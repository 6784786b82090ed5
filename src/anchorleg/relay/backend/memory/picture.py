"""A picture of a memory plan: time to the right, addresses upwards, one rectangle for each buffer."""
from __future__ import annotations

import html

from .buffers import BufferInfo, PoolAllocation
from .pools import MemoryLayout

WIDTH, HEIGHT, MARGIN, GAP = 1200, 420, 70, 50
_COLORS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb")


def draw(layout: MemoryLayout, title: str = "memory plan") -> str:
    """The plan as an SVG document; hovering over a rectangle tells the buffer's name, size, place and life."""
    height = MARGIN + len(layout.pools) * (HEIGHT + GAP)
    steps = max((b.last for b in layout.buffers), default=0) + 1
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
             f'<text x="10" y="22" font-size="16">{html.escape(title)}</text>',
             f'<text x="10" y="42">{html.escape(layout.report().splitlines()[-1])}</text>']
    for row, pool in enumerate(layout.pools):
        top = MARGIN + row * (HEIGHT + GAP)
        scale = HEIGHT / max(1, pool.used)
        limit = f" of {pool.limit}" if pool.limit is not None else ""
        parts.append(f'<text x="10" y="{top - 6}">{html.escape(pool.name)}: {pool.used}{limit} bytes, {steps} steps</text>')
        parts.append(f'<rect x="{MARGIN}" y="{top}" width="{WIDTH - MARGIN - 10}" height="{HEIGHT}" fill="#f7f7f7" stroke="#888"/>')
        parts.extend(_rectangle(i, b, p, top, scale, steps) for i, (b, p) in enumerate(zip(layout.buffers, layout.places)) if p.pool == pool.name)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _rectangle(number: int, buffer: BufferInfo, place: PoolAllocation, top: int, scale: float, steps: int) -> str:
    unit = (WIDTH - MARGIN - 10) / steps
    x, width = MARGIN + buffer.first * unit, (buffer.last - buffer.first + 1) * unit
    y, height = top + HEIGHT - (place.offset + buffer.size) * scale, buffer.size * scale
    told = f"{buffer.name}: {buffer.size} bytes at {place.offset}, steps {buffer.first} to {buffer.last}" + (f", {buffer.origin}" if buffer.origin else "")
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{_COLORS[number % len(_COLORS)]}" '
            f'fill-opacity="0.75" stroke="#222" stroke-width="0.5"><title>{html.escape(told)}</title></rect>')
