"""What a script may leave out: the regions of blocks, and the block around a whole function."""
from __future__ import annotations

from typing import Mapping, Sequence

from ..tir.block import Block, BlockRealize
from ..tir.block_access import block_access_regions, uses_blocks
from ..tir.buffer import Buffer
from ..tir.stmt import Stmt


def with_regions(block: Block, find_reads: bool, find_writes: bool) -> Block:
    """The block with the regions it does not state found from its body."""
    if not (find_reads or find_writes):
        return block
    reads, writes = block_access_regions(block)
    return block.replace(reads=tuple(reads) if find_reads else block.reads, writes=tuple(writes) if find_writes else block.writes)


def with_root_block(body: Stmt, buffers: Sequence[Buffer], unstated: Mapping[int, tuple[Block, bool, bool]]) -> Stmt:
    """The body inside a block without axes, where it has blocks or buffers of its own; a body that is such a block stays.

    The root states no regions, unless the script does: ``unstated`` has the blocks whose reads and writes were found.
    """
    if isinstance(body, BlockRealize) and not body.block.iter_vars and not buffers:
        _, no_reads, no_writes = unstated.get(id(body.block), (None, False, False))
        root = body.block.replace(reads=() if no_reads else body.block.reads, writes=() if no_writes else body.block.writes)
        return body.replace(block=root)
    if not buffers and not uses_blocks(body):
        return body
    root = Block((), (), (), "root", body, None, buffers)
    return BlockRealize((), True, root)
