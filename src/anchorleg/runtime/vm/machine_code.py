"""The virtual machine's inner loop, in the language of ``runtime.native_python``: this file is compiled, never imported.

A *machine* is a block of words (``M_…`` below); one thread runs it at a time.  Code, constants and kernels are read only
and may be shared by machines.

Values are addresses of counted objects; an odd number is a small integer itself (``2 v + 1``), 0 is no value.  Words of an
object::

    0  count of references (-1: never freed)
    1  kind, class of the object's memory << 8, (class of its data + 1) << 32
    storage   2 data   3 bytes
    tensor    2 data   3 owner of the data (0: itself)   4 rank   5 dtype   6 bytes of an element   7… dimensions
    adt       2 tag    3 number of fields   4… fields
    closure   2 function   3 number of captured values   4… values

Words of a frame: caller's frame, where to go on, register for the result, function; then the registers.

An operand marked for *moving* has its last use there: ``2 register + 1`` instead of ``2 register``.
"""

M_FREE = 0          # heads of the lists of free blocks, one per size class
M_NAIVE = 8         # whether freed memory is given back at once
M_FRAME = 16
M_PC = 24
M_LIMIT = 32        # end of the stack of frames
M_ERROR = 40        # what went wrong (E_…), and two words about it
M_ERROR_A = 48
M_ERROR_B = 56
M_RESULT = 64
M_FUNCTIONS = 72    # per function: code, number of registers
M_CONSTANTS = 80
M_KERNELS = 88      # addresses of kernel records
M_WORKSPACE = 96
M_STEPS = 104       # instructions to go
M_ARGS = 112        # buffers for a call's arguments: pointers, then tensors
M_TENSORS = 120
M_TEMPS = 128       # values of a shape program
M_STACK = 136       # start of the stack
M_SLAB = 144        # the slab small blocks are cut from, its end
M_SLAB_END = 152
M_SLABS = 160       # all slabs, linked through their first word
M_HELD = 168        # bytes taken from the system
M_IDLE = 176        # bytes in the lists

E_MEMORY = 1
E_STACK = 2
E_KERNEL = 3
E_FATAL = 4
E_SHAPE = 5
E_RESHAPE = 6
E_ROW = 7
E_VALUE = 8

INT64 = 81920       # the dtype int64: code 0, 64 bits, one lane

STORAGE = 0
TENSOR = 1
ADT = 2
CLOSURE = 3

SMALL = 4096
SLAB = 262144
LARGE_CLASS = 56    # from 1 MiB on a free block of a slightly larger class serves too


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


def new_block(m, c):
    """A block that no list had: cut from a slab, or from the system.  0 when there is no memory."""
    n = class_size(c)
    if n > SMALL or ld(m + M_NAIVE):
        st(m + M_HELD, ld(m + M_HELD) + n)
        return aligned(n)
    p = ld(m + M_SLAB)
    if p + n > ld(m + M_SLAB_END):
        p = aligned(SLAB)
        if p == 0:
            return 0
        st(m + M_HELD, ld(m + M_HELD) + SLAB)
        st(p, ld(m + M_SLABS))
        st(m + M_SLABS, p)
        st(m + M_SLAB_END, p + SLAB)
        p += 128
    st(m + M_SLAB, p + n)
    return p


def larger_block(m, c):
    """A free block of one of the next classes, cut to fit by calling it one of class ``c``; 0 when there is none."""
    i = c + 1
    while i <= c + 3:
        p = ld(ld(m + M_FREE) + 8 * i)
        if p:
            return i
        i += 1
    return 0


def take_block(m, c):
    """A block of class ``c``."""
    list_ = ld(m + M_FREE) + 8 * c
    p = ld(list_)
    if p:
        st(list_, ld(p))
        if c >= 28:
            st(m + M_IDLE, ld(m + M_IDLE) - class_size(c))
        return p
    return new_block(m, c)


def give_block(m, p, c):
    """Takes a block back."""
    if ld(m + M_NAIVE):
        st(m + M_HELD, ld(m + M_HELD) - class_size(c))
        free(p)
        return 0
    list_ = ld(m + M_FREE) + 8 * c
    st(p, ld(list_))
    st(list_, p)
    if c >= 28:
        st(m + M_IDLE, ld(m + M_IDLE) + class_size(c))
    return 0


def trim(m, keep):
    """Gives large free blocks back to the system until at most ``keep`` bytes lie idle."""
    c = 255
    while c >= 28 and ld(m + M_IDLE) > keep:
        list_ = ld(m + M_FREE) + 8 * c
        p = ld(list_)
        while p and ld(m + M_IDLE) > keep:
            st(list_, ld(p))
            st(m + M_IDLE, ld(m + M_IDLE) - class_size(c))
            st(m + M_HELD, ld(m + M_HELD) - class_size(c))
            free(p)
            p = ld(list_)
        c -= 1
    return 0


def new_object(m, kind, words):
    c = size_class(8 * words)
    p = take_block(m, c)
    if p == 0:
        return 0
    st(p, 1)
    st(p + 8, kind + (c << 8))
    return p


def new_tensor(m, rank, dtype, item, count, shape):
    """A tensor with data of its own for ``count`` elements; the dimensions are copied from ``shape``."""
    bytes_ = count * item
    words = 7 + rank
    p = 0
    if bytes_ <= 64:
        start = (words * 8 + 63) & -64
        c = size_class(start + 64)
        p = take_block(m, c)
        if p == 0:
            return 0
        st(p + 8, TENSOR + (c << 8))
        st(p + 16, p + start)
    else:
        if bytes_ < 0 or bytes_ > (1 << 46):
            return 0
        p = new_object(m, TENSOR, words)
        if p == 0:
            return 0
        d = size_class((bytes_ + 63) & -64)
        if d >= LARGE_CLASS and ld(ld(m + M_FREE) + 8 * d) == 0:
            other = larger_block(m, d)
            if other:
                d = other
        data = take_block(m, d)
        if data == 0:
            st(p + 16, 0)
            st(p + 24, 0)
            release(m, p)
            return 0
        st(p + 8, ld(p + 8) + ((d + 1) << 32))
        st(p + 16, data)
    st(p, 1)
    st(p + 24, 0)
    st(p + 32, rank)
    st(p + 40, dtype)
    st(p + 48, item)
    i = 0
    while i < rank:
        st(p + 56 + 8 * i, ld(shape + 8 * i))
        i += 1
    return p


def view_of(m, owner, data, rank, dtype, item, shape):
    """A tensor over memory that ``owner`` (counted here) keeps."""
    p = new_object(m, TENSOR, 7 + rank)
    if p == 0:
        return 0
    keep(owner)
    st(p + 16, data)
    st(p + 24, owner)
    st(p + 32, rank)
    st(p + 40, dtype)
    st(p + 48, item)
    i = 0
    while i < rank:
        st(p + 56 + 8 * i, ld(shape + 8 * i))
        i += 1
    return p


def keep(o):
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


def foreign(m, data, rank, dtype, item, shape):
    """A tensor over memory of somebody else."""
    return view_of(m, 0, data, rank, dtype, item, shape)


def new_adt(m, tag, n, fields):
    """A tuple or a value of a data type; the fields' references are handed over."""
    p = new_object(m, ADT, 4 + n)
    if p == 0:
        return 0
    st(p + 16, tag)
    st(p + 24, n)
    memcpy(p + 32, fields, 8 * n)
    return p


def release(m, o):
    """Gives up one reference to a value, and frees what nobody refers to any more."""
    pending = dropped(o, 0)
    while pending:
        o = pending
        pending = ld(o)
        head = ld(o + 8)
        kind = head & 255
        if kind == TENSOR:
            pending = dropped(ld(o + 24), pending)
        elif kind != STORAGE:
            i = 0
            n = ld(o + 24)
            while i < n:
                pending = dropped(ld(o + 32 + 8 * i), pending)
                i += 1
        data = head >> 32
        if data:
            give_block(m, ld(o + 16), data - 1)
        give_block(m, o, (head >> 8) & 255)
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


def scalar_of(o):
    """The integer a value holds."""
    if o & 1:
        return o >> 1
    return element(o, 0)


def element(o, i):
    """An element of an integer tensor (a float is rounded toward zero)."""
    data = ld(o + 16)
    item = ld(o + 48)
    code = ld(o + 40) & 255
    if code == 2:
        if item == 8:
            return ldf8(data + 8 * i)
        return ldf4(data + 4 * i)
    if item == 8:
        return ld(data + 8 * i)
    if item == 4:
        if code == 1:
            return ldu4(data + 4 * i)
        return ld4(data + 4 * i)
    if item == 2:
        if code == 1:
            return ldu2(data + 2 * i)
        return ld2(data + 2 * i)
    if code == 1:
        return ldu1(data + i)
    return ld1(data + i)


def count_of(o):
    n = 1
    i = 0
    rank = ld(o + 32)
    while i < rank:
        n = n * ld(o + 56 + 8 * i)
        i += 1
    return n


def nonzero_of(o):
    """How many elements are not zero."""
    n = count_of(o)
    item = ld(o + 48)
    data = ld(o + 16)
    float_ = (ld(o + 40) & 255) == 2
    found = 0
    i = 0
    while i < n:
        v = 0
        if item == 8:
            v = ld(data + 8 * i)
            if float_:
                v = v << 1
        elif item == 4:
            v = ld4(data + 4 * i)
            if float_:
                v = (v << 1) & 4294967295
        elif item == 2:
            v = ld2(data + 2 * i)
            if float_:
                v = (v << 1) & 65535
        else:
            v = ld1(data + i)
        if v:
            found += 1
        i += 1
    return found


def floor_div(a, b):
    if b == 0:
        return 0
    q = a // b
    if q * b != a and (a < 0) != (b < 0):
        return q - 1
    return q


P_CONST = 0
P_DIM = 1
P_VALUE = 2
P_ADD = 3
P_SUB = 4
P_MUL = 5
P_DIV = 6
P_MOD = 7
P_MAX = 8
P_MIN = 9
P_EQ = 10
P_LT = 11
P_SELECT = 12
P_NONZERO = 13
P_SIZE = 14
P_CHECK = 15
P_OUT = 16


def run_shape(m, program, tensors):
    """Runs a shape program: dimensions of results, from dimensions and values of arguments.  0, or the failed check + 1."""
    n = ld(program)
    t = ld(m + M_TEMPS)
    p = program + 8
    i = 0
    while i < n:
        op = ld(p)
        a = ld(p + 8)
        b = ld(p + 16)
        v = 0
        if op == P_CONST:
            v = a
        elif op == P_DIM:
            v = ld(ld(tensors + 8 * a) + 56 + 8 * b)
        elif op == P_VALUE:
            v = element(ld(tensors + 8 * a), b)
        elif op == P_ADD:
            v = ld(t + 8 * a) + ld(t + 8 * b)
        elif op == P_SUB:
            v = ld(t + 8 * a) - ld(t + 8 * b)
        elif op == P_MUL:
            v = ld(t + 8 * a) * ld(t + 8 * b)
        elif op == P_DIV:
            v = floor_div(ld(t + 8 * a), ld(t + 8 * b))
        elif op == P_MOD:
            v = ld(t + 8 * a) - floor_div(ld(t + 8 * a), ld(t + 8 * b)) * ld(t + 8 * b)
        elif op == P_MAX:
            v = ld(t + 8 * a)
            if ld(t + 8 * b) > v:
                v = ld(t + 8 * b)
        elif op == P_MIN:
            v = ld(t + 8 * a)
            if ld(t + 8 * b) < v:
                v = ld(t + 8 * b)
        elif op == P_EQ:
            v = ld(t + 8 * a) == ld(t + 8 * b)
        elif op == P_LT:
            v = ld(t + 8 * a) < ld(t + 8 * b)
        elif op == P_SELECT:
            if ld(t + 8 * a):
                v = ld(t + 8 * b)
            else:
                v = ld(t + 8 * ld(p + 24))
        elif op == P_NONZERO:
            v = nonzero_of(ld(tensors + 8 * a))
        elif op == P_SIZE:
            v = count_of(ld(tensors + 8 * a))
        elif op == P_CHECK:
            if ld(t + 8 * a) == 0:
                return b + 1
        elif op == P_OUT:
            st(ld(ld(tensors + 8 * a) + 16) + 8 * b, ld(t + 8 * ld(p + 24)))
        st(t + 8 * i, v)
        p += 32
        i += 1
    return 0


def gather(m, r, operands, n):
    """Collects the tensors of a call's arguments (those inside tuples too); their number."""
    tensors = ld(m + M_TENSORS)
    k = 0
    i = 0
    while i < n:
        o = ld(r + 8 * ld(operands + 8 * i))
        if (ld(o + 8) & 255) == TENSOR:
            st(tensors + 8 * k, o)
            k += 1
        else:
            j = 0
            fields = ld(o + 24)
            while j < fields:
                st(tensors + 8 * k, ld(o + 32 + 8 * j))
                k += 1
                j += 1
        i += 1
    return k


def call_kernel(m, kernel, count):
    """Calls compiled code for the tensors collected; its status."""
    tensors = ld(m + M_TENSORS)
    args = ld(m + M_ARGS)
    i = 0
    while i < count:
        st(args + 8 * i, ld(ld(tensors + 8 * i) + 16))
        i += 1
    n = ld(kernel + 24)
    where = ld(kernel + 32)
    j = 0
    while j < n:
        st(args + 8 * i, ld(ld(tensors + 8 * ld(where + 16 * j)) + 56 + 8 * ld(where + 16 * j + 8)))
        i += 1
        j += 1
    st(args + 8 * i, ld(m + M_WORKSPACE))
    return icall2(ld(kernel + 16), ld(kernel + 8), args)


def push(m, func, back, dst):
    """A frame for a call, above the current one; 0 when the stack is full."""
    fp = ld(m + M_FRAME)
    top = ld(m + M_STACK)
    if fp:
        top = fp + 32 + 8 * ld(ld(m + M_FUNCTIONS) + 16 * ld(fp + 24) + 8)
    registers = ld(ld(m + M_FUNCTIONS) + 16 * func + 8)
    if top + 32 + 8 * registers > ld(m + M_LIMIT):
        return 0
    st(top, fp)
    st(top + 8, back)
    st(top + 16, dst)
    st(top + 24, func)
    memset(top + 32, 0, 8 * registers)
    return top


def clear_frame(m, fp):
    i = 0
    n = ld(ld(m + M_FUNCTIONS) + 16 * ld(fp + 24) + 8)
    while i < n:
        v = ld(fp + 32 + 8 * i)
        if v:
            release(m, v)
        i += 1
    return 0


def unwind(m):
    """Leaves all frames, after a failure."""
    fp = ld(m + M_FRAME)
    while fp:
        clear_frame(m, fp)
        fp = ld(fp)
    st(m + M_FRAME, 0)
    return 0


def start(m, func, args, n):
    """Enters a function; the arguments' references are handed over.  0, or 1 when the stack is full."""
    fp = push(m, func, 0, 0)
    if fp == 0:
        return 1
    i = 0
    while i < n:
        st(fp + 32 + 8 * i, ld(args + 8 * i))
        i += 1
    st(m + M_FRAME, fp)
    st(m + M_PC, ld(ld(m + M_FUNCTIONS) + 16 * func))
    return 0


def fail(m, pc, what, a, b):
    st(m + M_PC, pc)
    st(m + M_ERROR, what)
    st(m + M_ERROR_A, a)
    st(m + M_ERROR_B, b)
    return -1


def is_last(o):
    """Whether nobody else can see the tensor's data: one reference, to it and to what owns the data."""
    while o:
        if ld(o) != 1:
            return 0
        if (ld(o + 8) & 255) != TENSOR:
            return 1
        o = ld(o + 24)
    return 1


def put_row(m, r, pc):
    """``data`` with one slice along its first axis replaced: in place where nobody else sees the data.  0 when it fails."""
    data = take(r, ld(pc + 16))
    at = scalar_of(ld(r + 8 * ld(pc + 24)))
    row = ld(r + 8 * ld(pc + 32))
    rows = ld(data + 56)
    if at < 0:
        at += rows
    if at < 0 or at >= rows:
        release(m, data)
        return 0
    item = ld(data + 48)
    total = count_of(data) * item
    if is_last(data) == 0:
        copy = new_tensor(m, ld(data + 32), ld(data + 40), item, count_of(data), data + 56)
        if copy == 0:
            release(m, data)
            return 0
        memcpy(ld(copy + 16), ld(data + 16), total)
        release(m, data)
        data = copy
    bytes_ = total // rows
    memcpy(ld(data + 16) + at * bytes_, ld(row + 16), bytes_)
    return data


def row_of(m, data, at, mode):
    """A view of one slice along the first axis; mode 0: it must be there (negative counts from the end), 1: clipped, 2: wrapped."""
    rows = ld(data + 56)
    if mode == 1:
        if at < 0:
            at = 0
        if at >= rows:
            at = rows - 1
    elif mode == 2 and rows:
        at = at - floor_div(at, rows) * rows
    elif at < 0:
        at += rows
    if at < 0 or at >= rows:
        return 0
    owner = ld(data + 24)
    if owner == 0:
        owner = data
    item = ld(data + 48)
    bytes_ = count_of(data) * item // rows
    return view_of(m, owner, ld(data + 16) + at * bytes_, ld(data + 32) - 1, ld(data + 40), item, data + 64)


def reshaped(m, o, shape):
    """A view of tensor ``o`` with the dimensions in the tensor ``shape``; 0 when they do not fit."""
    rank = ld(shape + 56)
    dims = stack(64)
    if rank > 64:
        return 0
    n = 1
    i = 0
    while i < rank:
        d = element(shape, i)
        st(dims + 8 * i, d)
        n = n * d
        i += 1
    if n != count_of(o):
        return 0
    owner = ld(o + 24)
    if owner == 0:
        owner = o
    return view_of(m, owner, ld(o + 16), rank, ld(o + 40), ld(o + 48), dims)


def run(m):
    """Runs until the base frame returns (0), an instruction needs Python (1), the steps are used up (2) or one fails (-1)."""
    fp = ld(m + M_FRAME)
    r = fp + 32
    pc = ld(m + M_PC)
    steps = ld(m + M_STEPS)
    while True:
        if steps == 0:
            st(m + M_PC, pc)
            return 2
        steps -= 1
        op = ld(pc)
        if op == 4:
            kernel = ld(ld(m + M_KERNELS) + 8 * ld(pc + 8))
            n = ld(pc + 16)
            kind = ld(kernel)
            if kind == 2:
                st(m + M_PC, pc)
                st(m + M_STEPS, steps)
                return 1
            count = gather(m, r, pc + 24, n)
            if kind == 0:
                status = call_kernel(m, kernel, count)
                if status:
                    return fail(m, pc, E_KERNEL, ld(pc + 8), status)
            else:
                status = run_shape(m, ld(kernel + 8), ld(m + M_TENSORS))
                if status:
                    return fail(m, pc, E_SHAPE, ld(pc + 8), status - 1)
            pc += 24 + 8 * n
        elif op == 24:
            # dst, dtype, item, rank, count, dims…: a tensor with its own data
            p = new_tensor(m, ld(pc + 32), ld(pc + 16), ld(pc + 24), ld(pc + 40), pc + 48)
            if p == 0:
                return fail(m, pc, E_MEMORY, ld(pc + 40) * ld(pc + 24), 0)
            set_register(m, r + 8 * ld(pc + 8), p)
            pc += 48 + 8 * ld(pc + 32)
        elif op == 25:
            # dst, dtype, item, shape register: a tensor with its own data
            shape = ld(r + 8 * ld(pc + 32))
            rank = ld(shape + 56)
            n = 1
            i = 0
            data = ld(shape + 16)
            negative = 0
            while i < rank:
                d = ld(data + 8 * i)
                if d < 0:
                    negative = 1
                n = n * d
                i += 1
            if negative:
                return fail(m, pc, E_VALUE, 0, 0)
            p = new_tensor(m, rank, ld(pc + 16), ld(pc + 24), n, data)
            if p == 0:
                return fail(m, pc, E_MEMORY, n * ld(pc + 24), 0)
            set_register(m, r + 8 * ld(pc + 8), p)
            pc += 40
        elif op == 0:
            set_register(m, r + 8 * ld(pc + 8), take(r, ld(pc + 16)))
            pc += 24
        elif op == 20:
            set_register(m, r + 8 * ld(pc + 8), 0)
            pc += 16
        elif op == 11:
            set_register(m, r + 8 * ld(pc + 8), ld(ld(m + M_CONSTANTS) + 8 * ld(pc + 16)))
            pc += 24
        elif op == 14:
            set_register(m, r + 8 * ld(pc + 8), ld(pc + 16))
            pc += 24
        elif op == 10:
            if scalar_of(ld(r + 8 * ld(pc + 8))) == scalar_of(ld(r + 8 * ld(pc + 16))):
                pc = ld(pc + 24)
            else:
                pc = ld(pc + 32)
        elif op == 26:
            # register, integer, address: go on where the register holds the integer, else go to the address
            if scalar_of(ld(r + 8 * ld(pc + 8))) == ld(pc + 16):
                pc += 32
            else:
                pc = ld(pc + 24)
        elif op == 12:
            pc = ld(pc + 8)
        elif op == 9:
            o = ld(r + 8 * ld(pc + 16))
            set_register(m, r + 8 * ld(pc + 8), keep(ld(o + 32 + 8 * ld(pc + 24))))
            pc += 32
        elif op == 2:
            # dst, function, n, operands
            func = ld(pc + 16)
            n = ld(pc + 24)
            top = push(m, func, pc + 32 + 8 * n, ld(pc + 8))
            if top == 0:
                return fail(m, pc, E_STACK, func, 0)
            i = 0
            while i < n:
                st(top + 32 + 8 * i, take(r, ld(pc + 32 + 8 * i)))
                i += 1
            fp = top
            st(m + M_FRAME, fp)
            r = fp + 32
            pc = ld(ld(m + M_FUNCTIONS) + 16 * func)
        elif op == 27:
            # tail call: function, n, operands
            func = ld(pc + 8)
            n = ld(pc + 16)
            registers = ld(ld(m + M_FUNCTIONS) + 16 * func + 8)
            if r + 8 * registers > ld(m + M_LIMIT):
                return fail(m, pc, E_STACK, func, 0)
            buffer = ld(m + M_ARGS)
            i = 0
            while i < n:
                st(buffer + 8 * i, take(r, ld(pc + 24 + 8 * i)))
                i += 1
            clear_frame(m, fp)
            st(fp + 24, func)
            memcpy(r, buffer, 8 * n)
            memset(r + 8 * n, 0, 8 * (registers - n))
            pc = ld(ld(m + M_FUNCTIONS) + 16 * func)
        elif op == 3:
            # dst, closure, n, operands
            closure = ld(r + 8 * ld(pc + 16))
            n = ld(pc + 24)
            func = ld(closure + 16)
            captured = ld(closure + 24)
            top = push(m, func, pc + 32 + 8 * n, ld(pc + 8))
            if top == 0:
                return fail(m, pc, E_STACK, func, 0)
            i = 0
            while i < captured:
                st(top + 32 + 8 * i, keep(ld(closure + 32 + 8 * i)))
                i += 1
            i = 0
            while i < n:
                st(top + 32 + 8 * (captured + i), take(r, ld(pc + 32 + 8 * i)))
                i += 1
            fp = top
            st(m + M_FRAME, fp)
            r = fp + 32
            pc = ld(ld(m + M_FUNCTIONS) + 16 * func)
        elif op == 1:
            value = take(r, ld(pc + 8))
            clear_frame(m, fp)
            pc = ld(fp + 8)
            dst = ld(fp + 16)
            fp = ld(fp)
            st(m + M_FRAME, fp)
            if fp == 0:
                st(m + M_RESULT, value)
                return 0
            r = fp + 32
            set_register(m, r + 8 * dst, value)
        elif op == 7 or op == 8:
            # dst, tag or function, n, operands
            n = ld(pc + 24)
            p = new_object(m, op - 5, 4 + n)
            if p == 0:
                return fail(m, pc, E_MEMORY, 8 * n, 0)
            st(p + 16, ld(pc + 16))
            st(p + 24, n)
            i = 0
            while i < n:
                st(p + 32 + 8 * i, take(r, ld(pc + 32 + 8 * i)))
                i += 1
            set_register(m, r + 8 * ld(pc + 8), p)
            pc += 32 + 8 * n
        elif op == 13:
            set_register(m, r + 8 * ld(pc + 8), ld(ld(r + 8 * ld(pc + 16)) + 16) * 2 + 1)
            pc += 24
        elif op == 17:
            o = ld(r + 8 * ld(pc + 16))
            rank = stack(1)
            st(rank, ld(o + 32))
            p = new_tensor(m, 1, INT64, 8, ld(o + 32), rank)
            if p == 0:
                return fail(m, pc, E_MEMORY, 64, 0)
            memcpy(ld(p + 16), o + 56, 8 * ld(o + 32))
            set_register(m, r + 8 * ld(pc + 8), p)
            pc += 24
        elif op == 18:
            p = reshaped(m, ld(r + 8 * ld(pc + 16)), ld(r + 8 * ld(pc + 24)))
            if p == 0:
                return fail(m, pc, E_RESHAPE, ld(r + 8 * ld(pc + 16)), ld(r + 8 * ld(pc + 24)))
            set_register(m, r + 8 * ld(pc + 8), p)
            pc += 32
        elif op == 29:
            p = row_of(m, ld(r + 8 * ld(pc + 16)), scalar_of(ld(r + 8 * ld(pc + 24))), ld(pc + 32))
            if p == 0:
                return fail(m, pc, E_ROW, 0, 0)
            set_register(m, r + 8 * ld(pc + 8), p)
            pc += 40
        elif op == 28:
            p = put_row(m, r, pc)
            if p == 0:
                return fail(m, pc, E_ROW, 0, 0)
            set_register(m, r + 8 * ld(pc + 8), p)
            pc += 40
        elif op == 16:
            # dst, size register or -1, bytes, bytes of an element
            n = ld(pc + 24)
            if ld(pc + 16) >= 0:
                size = ld(r + 8 * ld(pc + 16))
                n = scalar_of(size)
                if (size & 1) == 0:
                    if ld(size + 32) == 1:
                        n = ld(pc + 32)
                        i = 0
                        while i < ld(size + 56):
                            n = n * element(size, i)
                            i += 1
            if n < 0:
                return fail(m, pc, E_VALUE, n, 0)
            p = new_object(m, STORAGE, 4)
            if p == 0:
                return fail(m, pc, E_MEMORY, n, 0)
            st(p + 16, 0)
            c = size_class((n + 63) & -64)
            data = 0
            if n < (1 << 46):
                data = take_block(m, c)
            if data == 0:
                release(m, p)
                return fail(m, pc, E_MEMORY, n, 0)
            st(p + 8, ld(p + 8) + ((c + 1) << 32))
            st(p + 16, data)
            st(p + 24, n)
            set_register(m, r + 8 * ld(pc + 8), p)
            pc += 40
        elif op == 5:
            # dst, storage, offset register or -1, offset, dtype, item, rank, dims…
            storage = ld(r + 8 * ld(pc + 16))
            offset = ld(pc + 32)
            if ld(pc + 24) >= 0:
                offset = scalar_of(ld(r + 8 * ld(pc + 24)))
            rank = ld(pc + 56)
            n = ld(pc + 48)
            i = 0
            while i < rank:
                n = n * ld(pc + 64 + 8 * i)
                i += 1
            if offset < 0 or offset + n > ld(storage + 24):
                return fail(m, pc, E_VALUE, offset + n, ld(storage + 24))
            p = view_of(m, storage, ld(storage + 16) + offset, rank, ld(pc + 40), ld(pc + 48), pc + 64)
            if p == 0:
                return fail(m, pc, E_MEMORY, 64, 0)
            set_register(m, r + 8 * ld(pc + 8), p)
            pc += 64 + 8 * rank
        elif op == 6:
            # dst, storage, offset register or -1, offset, dtype, item, shape register
            storage = ld(r + 8 * ld(pc + 16))
            offset = ld(pc + 32)
            if ld(pc + 24) >= 0:
                offset = scalar_of(ld(r + 8 * ld(pc + 24)))
            shape = ld(r + 8 * ld(pc + 56))
            rank = ld(shape + 56)
            dims = stack(64)
            if rank > 64:
                return fail(m, pc, E_VALUE, rank, 64)
            n = ld(pc + 48)
            i = 0
            while i < rank:
                st(dims + 8 * i, element(shape, i))
                n = n * element(shape, i)
                i += 1
            if offset < 0 or n < 0 or offset + n > ld(storage + 24):
                return fail(m, pc, E_VALUE, offset + n, ld(storage + 24))
            p = view_of(m, storage, ld(storage + 16) + offset, rank, ld(pc + 40), ld(pc + 48), dims)
            if p == 0:
                return fail(m, pc, E_MEMORY, 64, 0)
            set_register(m, r + 8 * ld(pc + 8), p)
            pc += 64
        else:
            return fail(m, pc, E_FATAL, op, 0)
    return 0
