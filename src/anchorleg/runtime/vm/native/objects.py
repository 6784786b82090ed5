"""Counted objects: tuples, values of data types, closures, and what all objects have in common."""


@inline
def kind_of(o):
    return ld(o + O_HEAD) & 255


def new_object(m, kind, words):
    c = size_class(8 * words)
    p = take_block(m, c)
    if p:
        st(p + O_COUNT, 1)
        st(p + O_HEAD, kind + (c << 8))
    return p


@inline
def new_fields(m, kind, tag, n):
    """An object of a tag and ``n`` fields, which are not set yet."""
    p = new_object(m, kind, 4 + n)
    if p:
        st(p + A_TAG, tag)
        st(p + A_COUNT, n)
    return p


def new_adt(m, tag, n, fields):
    """A tuple or a value of a data type; the fields' references are handed over."""
    p = new_fields(m, ADT, tag, n)
    if p:
        memcpy(p + A_FIELDS, fields, 8 * n)
    return p


@inline
def field(o, i):
    return ld(o + A_FIELDS + 8 * i)


def keep(o):
    """A value, with one more reference."""
    if o & 1 or o == 0:
        return o
    count = ld(o)
    if count > 0:
        st(o, count + 1)
    return o


def dropped(o, pending):
    """Gives up one reference; an object without any more is put before ``pending``."""
    if o & 1 or o == 0:
        return pending
    count = ld(o)
    if count > 1:
        st(o, count - 1)
    elif count == 1:
        st(o, pending)
        return o
    return pending


def dropped_parts(o, pending):
    """Gives up what an object refers to."""
    kind = kind_of(o)
    if kind == TENSOR:
        return dropped(ld(o + T_OWNER), pending)
    if kind != STORAGE:
        for i in range(ld(o + A_COUNT)):
            pending = dropped(field(o, i), pending)
    return pending


def release(m, o):
    """Gives up one reference to a value, and frees what nobody refers to any more."""
    pending = dropped(o, 0)
    while pending:
        o = pending
        pending = dropped_parts(o, ld(o))
        head = ld(o + O_HEAD)
        if (head & 255) == CELL:
            unlink(m, o)
        if head >> 32:
            give_block(m, ld(o + O_DATA), (head >> 32) - 1)
        give_block(m, o, (head >> 8) & 255)
    return 0


def new_cell(m, value):
    """A cell that holds a value, whose reference is handed over; 0, and the value is gone, when there is no memory."""
    p = new_object(m, CELL, 6)
    if p == 0:
        release(m, value)
        return 0
    st(p + A_COUNT, 1)
    st(p + C_VALUE, value)
    first = ld(m + M_CELLS)
    st(p + C_PREVIOUS, 0)
    st(p + C_NEXT, first)
    if first:
        st(first + C_PREVIOUS, p)
    st(m + M_CELLS, p)
    return p


def unlink(m, cell):
    """Takes a cell out of the list of all."""
    previous = ld(cell + C_PREVIOUS)
    following = ld(cell + C_NEXT)
    if previous:
        st(previous + C_NEXT, following)
    else:
        st(m + M_CELLS, following)
    if following:
        st(following + C_PREVIOUS, previous)
    return 0


def set_register(m, r, value):
    """Stores a value whose reference is handed over."""
    old = ld(r)
    st(r, value)
    if old:
        release(m, old)
    return 0


def take(r, operand):
    """The value of an operand, with a reference for the caller."""
    place = r + 8 * (operand >> 1)
    value = ld(place)
    if operand & 1:
        st(place, 0)
        return value
    return keep(value)


@inline
def take_all(r, operands, n, to):
    """Takes ``n`` operands to the words from ``to`` on."""
    for i in range(n):
        st(to + 8 * i, take(r, ld(operands + 8 * i)))
    return 0


def is_last(o):
    """Whether nobody else can see the tensor's data: one reference, to it and to what owns the data."""
    while o:
        if ld(o) != 1:
            return 0
        if kind_of(o) != TENSOR:
            return 1
        o = ld(o + T_OWNER)
    return 1
