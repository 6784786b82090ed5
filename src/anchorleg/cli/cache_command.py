"""``anchorleg cache``: the folder of compiled kernels."""
from __future__ import annotations

import click

from ..support import knobs
from ..support.cache import Cache
from .progress import byte_size


@click.group("cache")
def command() -> None:
    """Look at, or empty, the cache of compiled kernels."""


def _cache() -> Cache:
    return Cache(knobs.CACHE_DIR.get(), knobs.CACHE_SIZE.get())


@command.command("info")
def info() -> None:
    """Where the cache is and what it holds."""
    found = _cache().info()
    state = "on" if knobs.CACHE.get() else "off (ANCHORLEG_CACHE=0)"
    click.echo(f"{found.path}: {found.entries} kernels, {byte_size(found.bytes)} of at most {byte_size(found.bound)}; the cache is {state}")


@command.command("clear")
def clear() -> None:
    """Remove everything in the cache."""
    click.echo(f"{_cache().clear()} files removed")
