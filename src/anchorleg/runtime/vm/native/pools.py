"""Memory: blocks of size classes, and lists of free ones."""


def size_class(n):
    """The class of blocks of at least ``n`` bytes: four classes for each doubling from 64."""
    if n <= 64:
        return 0
    e = log2(n - 1)
    return (e - 6) * 4 + (((n - 1) - (1 << e)) >> (e - 2)) + 1


def class_size(c):
    if c == 0:
        return 64
    e = (c - 1) // 4 + 6
    return (1 << e) + ((c - 1) % 4 + 1) * (1 << (e - 2))


@inline
def add_to(place, amount):
    st(place, ld(place) + amount)
    return 0


@inline
def list_of(m, c):
    """The head of the list of free blocks of class ``c``."""
    return ld(m + M_FREE) + 8 * c


def new_block(m, c):
    """A block that no list had: cut from a slab, or from the system.  0 when there is no memory."""
    n = class_size(c)
    if n > SMALL or ld(m + M_NAIVE):
        add_to(m + M_HELD, n)
        return aligned(n)
    if ld(m + M_SLAB) + n > ld(m + M_SLAB_END) and new_slab(m) == 0:
        return 0
    p = ld(m + M_SLAB)
    st(m + M_SLAB, p + n)
    return p


def new_slab(m):
    """A slab to cut blocks from; 0 when there is no memory."""
    p = aligned(SLAB)
    if p == 0:
        return 0
    add_to(m + M_HELD, SLAB)
    st(p, ld(m + M_SLABS))
    st(m + M_SLABS, p)
    st(m + M_SLAB, p + 128)
    st(m + M_SLAB_END, p + SLAB)
    return p


def class_at_hand(m, c):
    """The class of a block to take for class ``c``: a slightly larger one where only such a block is free."""
    if c < LARGE_CLASS or ld(list_of(m, c)):
        return c
    for i in range(c + 1, c + 4):
        if ld(list_of(m, i)):
            return i
    return c


def take_block(m, c):
    """A block of class ``c``; 0 when there is no memory."""
    p = ld(list_of(m, c))
    if p == 0:
        return new_block(m, c)
    st(list_of(m, c), ld(p))
    if c >= COUNTED_CLASS:
        add_to(m + M_IDLE, -class_size(c))
    return p


def give_block(m, p, c):
    """Takes a block back."""
    if ld(m + M_NAIVE):
        add_to(m + M_HELD, -class_size(c))
        free(p)
        return 0
    st(p, ld(list_of(m, c)))
    st(list_of(m, c), p)
    if c >= COUNTED_CLASS:
        add_to(m + M_IDLE, class_size(c))
    return 0


def trim(m, keep):
    """Gives large free blocks back to the system until at most ``keep`` bytes lie idle."""
    c = 255
    while c >= COUNTED_CLASS and ld(m + M_IDLE) > keep:
        while ld(list_of(m, c)) and ld(m + M_IDLE) > keep:
            p = take_block(m, c)
            add_to(m + M_HELD, -class_size(c))
            free(p)
        c -= 1
    return 0
