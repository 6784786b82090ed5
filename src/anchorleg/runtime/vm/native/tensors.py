"""Tensors: new ones, views of others, and their elements."""


@inline
def describe(p, owner, rank, dtype, item, shape):
    """Fills in all words of a tensor but its data."""
    st(p + T_OWNER, owner)
    st(p + T_RANK, rank)
    st(p + T_DTYPE, dtype)
    st(p + T_ITEM, item)
    for i in range(rank):
        st(p + T_DIMS + 8 * i, ld(shape + 8 * i))
    return p


def small_tensor(m, rank):
    """A tensor of at most 64 bytes, which lie behind it in the same block."""
    start = ((T_DIMS + 8 * rank) + 63) & -64
    p = new_object(m, TENSOR, (start + 64) // 8)
    if p:
        st(p + O_DATA, p + start)
    return p


def give_data(m, p, bytes_):
    """Gives an object a block for data of its own; 0, and the object is gone, when there is no memory."""
    data = 0
    if bytes_ >= 0 and bytes_ < MOST_BYTES:
        c = class_at_hand(m, size_class((bytes_ + 63) & -64))
        data = take_block(m, c)
    if data == 0:
        give_block(m, p, (ld(p + O_HEAD) >> 8) & 255)
        return 0
    st(p + O_HEAD, ld(p + O_HEAD) + ((c + 1) << 32))
    st(p + O_DATA, data)
    return p


def new_tensor(m, rank, dtype, item, count, shape):
    """A tensor with data of its own for ``count`` elements; the dimensions are copied from ``shape``."""
    bytes_ = count * item
    p = 0
    if bytes_ >= 0 and bytes_ <= 64:
        p = small_tensor(m, rank)
    else:
        p = new_object(m, TENSOR, 7 + rank)
        if p:
            p = give_data(m, p, bytes_)
    if p == 0:
        return 0
    return describe(p, 0, rank, dtype, item, shape)


def view_of(m, owner, data, rank, dtype, item, shape):
    """A tensor over memory that ``owner`` (counted here) keeps."""
    p = new_object(m, TENSOR, 7 + rank)
    if p == 0:
        return 0
    st(p + O_DATA, data)
    return describe(p, keep(owner), rank, dtype, item, shape)


def foreign(m, data, rank, dtype, item, shape):
    """A tensor over memory of somebody else, with a reference for them too: so it is never changed in place."""
    p = view_of(m, 0, data, rank, dtype, item, shape)
    if p:
        st(p + O_COUNT, 2)
    return p


def let_go(m, tensors, n):
    """Gives up the owner's reference to foreign tensors that nobody else refers to any more; how many there still are."""
    left = 0
    for i in range(n):
        o = ld(tensors + 8 * i)
        if o == 0:
            continue
        if ld(o) == 1:
            release(m, o)
            st(tensors + 8 * i, 0)
        else:
            left += 1
    return left


@inline
def owner_of(o):
    """What keeps a tensor's data."""
    owner = ld(o + T_OWNER)
    if owner:
        return owner
    return o


def scalar_of(o):
    """The integer a value holds."""
    if o & 1:
        return o >> 1
    return element(o, 0)


def element(o, i):
    """An element of an integer tensor (a float is rounded toward zero)."""
    item = ld(o + T_ITEM)
    p = ld(o + O_DATA) + item * i
    code = ld(o + T_DTYPE) & 255
    if code == UINT:
        return unsigned_element(p, item)
    if code == FLOAT:
        return float_element(p, item)
    if code == BFLOAT:
        return bfloat_element(p)
    return signed_element(p, item)


@inline
def float_element(p, item):
    if item == 8:
        return ldf8(p)
    if item == 4:
        return ldf4(p)
    return half_element(ldu2(p))


@inline
def half_element(bits):
    """The integer part of a number of 16 bits: 5 bits of exponent, 10 of fraction."""
    exponent = (bits >> 10) & 31
    if exponent < 15:
        return 0
    whole = ((1024 + (bits & 1023)) << (exponent - 15)) >> 10
    if bits >> 15:
        return -whole
    return whole


@inline
def bfloat_element(p):
    wide = stack(1)
    st4(wide, ldu2(p) << 16)
    return ldf4(wide)


@inline
def unsigned_element(p, item):
    if item == 8:
        return ld(p)
    if item == 4:
        return ldu4(p)
    if item == 2:
        return ldu2(p)
    return ldu1(p)


@inline
def signed_element(p, item):
    if item == 8:
        return ld(p)
    if item == 4:
        return ld4(p)
    if item == 2:
        return ld2(p)
    return ld1(p)


@inline
def dimension(o, i):
    return ld(o + T_DIMS + 8 * i)


@inline
def product_of(p, n):
    """The product of ``n`` words."""
    product = 1
    for i in range(n):
        product = product * ld(p + 8 * i)
    return product


def count_of(o):
    """The number of a tensor's elements."""
    return product_of(o + T_DIMS, ld(o + T_RANK))


def nonzero_of(o):
    """How many elements are not zero; of floats, the sign does not count."""
    item = ld(o + T_ITEM)
    mask = -1
    code = ld(o + T_DTYPE) & 255
    if code == FLOAT or code == BFLOAT:
        mask = (1 << (8 * item - 1)) - 1
    found = 0
    for i in range(count_of(o)):
        if signed_element(ld(o + O_DATA) + item * i, item) & mask:
            found += 1
    return found


@inline
def elements_to(shape, dims):
    """Copies the elements of a tensor of sizes to words; their number, or -1 for more than a tensor can have."""
    rank = dimension(shape, 0)
    if rank > MOST_RANK:
        return -1
    for i in range(rank):
        st(dims + 8 * i, element(shape, i))
    return rank


def reshaped(m, o, shape):
    """A view of tensor ``o`` with the dimensions in the tensor ``shape``; 0 when they do not fit."""
    dims = stack(64)
    rank = elements_to(shape, dims)
    if rank < 0 or product_of(dims, rank) != count_of(o):
        return 0
    return view_of(m, owner_of(o), ld(o + O_DATA), rank, ld(o + T_DTYPE), ld(o + T_ITEM), dims)


@inline
def bytes_of(o):
    return count_of(o) * ld(o + T_ITEM)


@inline
def row_at(at, rows, mode):
    """The number of a row; mode 0: it must be there (negative counts from the end), 1: clipped, 2: wrapped.  -1: it is not there."""
    if mode == 1:
        if at >= rows:
            at = rows - 1
        if at < 0:
            return 0 - (rows == 0)
        return at
    if mode == 2 and rows:
        return at - floor_div(at, rows) * rows
    if at < 0:
        at += rows
    if at < 0 or at >= rows:
        return -1
    return at


def row_of(m, data, at, mode):
    """A view of one slice along the first axis; 0 when it is not there."""
    rows = dimension(data, 0)
    at = row_at(at, rows, mode)
    if at < 0:
        return 0
    place = ld(data + O_DATA) + at * (bytes_of(data) // rows)
    return view_of(m, owner_of(data), place, ld(data + T_RANK) - 1, ld(data + T_DTYPE), ld(data + T_ITEM), data + T_DIMS + 8)


def own_data(m, data):
    """A tensor (whose reference is handed over) as one that nobody else can see: itself, or a copy.  0 when there is no memory."""
    if is_last(data):
        return data
    copy = new_tensor(m, ld(data + T_RANK), ld(data + T_DTYPE), ld(data + T_ITEM), count_of(data), data + T_DIMS)
    if copy:
        memcpy(ld(copy + O_DATA), ld(data + O_DATA), bytes_of(data))
    release(m, data)
    return copy


def with_row(m, data, at, row):
    """``data`` (handed over) with one slice along its first axis replaced: in place where nobody else sees it.  0 when it fails."""
    at = row_at(at, dimension(data, 0), 0)
    if at < 0:
        release(m, data)
        return 0
    data = own_data(m, data)
    if data:
        bytes_ = bytes_of(data) // dimension(data, 0)
        memcpy(ld(data + O_DATA) + at * bytes_, ld(row + O_DATA), bytes_)
    return data
