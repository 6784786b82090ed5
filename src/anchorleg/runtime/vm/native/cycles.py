"""Cells that hold each other: the only objects that may be unreachable and counted still."""


def paint(m, root, mark):
    """Sets the marks of all that can be reached from an object to ``mark``; 0 when there is no memory for the walk."""
    room = 1024
    pending = malloc(8 * room)
    if pending == 0:
        return 0
    n = 0
    if to_paint(root, mark):
        st(pending, root)
        n = 1
    while n:
        n -= 1
        o = ld(pending + 8 * n)
        parts = parts_of(o)
        if n + parts > room:
            pending = larger(pending, n, room, 2 * (n + parts))
            room = 2 * (n + parts)
            if pending == 0:
                return 0
        for i in range(parts):
            part = part_of(o, i)
            if to_paint(part, mark):
                st(pending + 8 * n, part)
                n += 1
    free(pending)
    return 1


def to_paint(o, mark):
    """Marks an object; whether it was not marked so before."""
    if o & 1 or o == 0 or ld(o) < 0:
        return 0
    head = ld(o + O_HEAD)
    if (head & MARK) == mark:
        return 0
    st(o + O_HEAD, head ^ MARK)
    return 1


@inline
def parts_of(o):
    """How many values an object refers to."""
    kind = kind_of(o)
    if kind == STORAGE:
        return 0
    if kind == TENSOR:
        return 1
    return ld(o + A_COUNT)


@inline
def part_of(o, i):
    if kind_of(o) == TENSOR:
        return ld(o + T_OWNER)
    return field(o, i)


def larger(old, n, room, wanted):
    """The words in a larger block; 0 when there is no memory."""
    new = malloc(8 * wanted)
    if new:
        memcpy(new, old, 8 * n)
    free(old)
    return new


def collect_cycles(m, roots, n):
    """Frees the cells that cannot be reached from ``n`` objects, when no frame is left; whether there was memory to find them."""
    done = 1
    for i in range(n):
        if paint(m, ld(roots + 8 * i), MARK) == 0:
            done = 0
    if done:
        empty_unmarked(m)
    for i in range(n):
        paint(m, ld(roots + 8 * i), 0)
    return done


def empty_unmarked(m):
    """Empties the cells without a mark; meanwhile they are kept, so that the list holds still."""
    cell = ld(m + M_CELLS)
    while cell:
        if (ld(cell + O_HEAD) & MARK) == 0:
            keep(cell)
        cell = ld(cell + C_NEXT)
    cell = ld(m + M_CELLS)
    while cell:
        if (ld(cell + O_HEAD) & MARK) == 0:
            set_register(m, cell + C_VALUE, 0)
        cell = ld(cell + C_NEXT)
    cell = ld(m + M_CELLS)
    while cell:
        following = ld(cell + C_NEXT)
        if (ld(cell + O_HEAD) & MARK) == 0:
            release(m, cell)
        cell = following
    return 0
