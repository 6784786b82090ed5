"""The instructions: each takes the machine, its registers and its own address, and gives the next instruction's (0: stop).

Words of an instruction are numbered; word 0 is the operation, word 1 mostly the register for the result.
"""


@inline
def word(pc, i):
    return ld(pc + 8 * i)


@inline
def value(r, pc, i):
    """What the register holds that word ``i`` names."""
    return ld(r + 8 * word(pc, i))


@inline
def give(m, r, pc, result, words):
    """Stores a result whose reference is handed over, and goes on."""
    set_register(m, r + 8 * word(pc, 1), result)
    return pc + 8 * words


@inline
def give_new(m, r, pc, result, words, what, a, b):
    """As `give`, for a result that is 0 where it could not be had; then that is the error."""
    if result == 0:
        return fail(m, pc, what, a, b)
    return give(m, r, pc, result, words)


# -- values


@inline
def move(m, r, pc):
    return give(m, r, pc, take(r, word(pc, 2)), 3)


@inline
def kill_register(m, r, pc):
    return give(m, r, pc, 0, 2)


@inline
def load_const(m, r, pc):
    return give(m, r, pc, ld(ld(m + M_CONSTANTS) + 8 * word(pc, 2)), 3)


@inline
def load_consti(m, r, pc):
    return give(m, r, pc, word(pc, 2), 3)


@inline
def new_with_operands(m, r, pc, kind):
    """dst, tag or function, n, operands"""
    n = word(pc, 3)
    p = new_fields(m, kind, word(pc, 2), n)
    if p:
        take_all(r, pc + 32, n, p + A_FIELDS)
    return give_new(m, r, pc, p, 4 + n, E_MEMORY, 8 * n, 0)


@inline
def alloc_adt(m, r, pc):
    return new_with_operands(m, r, pc, ADT)


@inline
def alloc_closure(m, r, pc):
    return new_with_operands(m, r, pc, CLOSURE)


@inline
def get_field(m, r, pc):
    return give(m, r, pc, keep(field(value(r, pc, 2), word(pc, 3))), 4)


@inline
def get_tag(m, r, pc):
    return give(m, r, pc, ld(value(r, pc, 2) + A_TAG) * 2 + 1, 3)


@inline
def alloc_ref(m, r, pc):
    """dst, operand"""
    return give_new(m, r, pc, new_cell(m, take(r, word(pc, 2))), 3, E_MEMORY, 48, 0)


@inline
def read_ref(m, r, pc):
    return give(m, r, pc, keep(ld(value(r, pc, 2) + C_VALUE)), 3)


@inline
def write_ref(m, r, pc):
    """dst, cell, operand; the result is the empty tuple"""
    unit = new_fields(m, ADT, 0, 0)
    if unit:
        set_register(m, value(r, pc, 2) + C_VALUE, take(r, word(pc, 3)))
    return give_new(m, r, pc, unit, 4, E_MEMORY, 32, 0)


# -- jumps and calls


@inline
def goto(m, r, pc):
    return word(pc, 1)


@inline
def if_(m, r, pc):
    """value, value, address where they are equal, address where they are not"""
    if scalar_of(value(r, pc, 1)) == scalar_of(value(r, pc, 2)):
        return word(pc, 3)
    return word(pc, 4)


@inline
def if_immediate(m, r, pc):
    """value, integer, address: goes on where they are equal, else to the address"""
    if scalar_of(value(r, pc, 1)) == word(pc, 2):
        return pc + 32
    return word(pc, 3)


@inline
def enter(m, frame):
    """Goes on in a new frame."""
    st(m + M_FRAME, frame)
    return code_of(m, ld(frame + F_FUNCTION))


@inline
def invoke(m, r, pc):
    """dst, function, n, operands"""
    n = word(pc, 3)
    frame = push(m, word(pc, 2), pc + 32 + 8 * n, word(pc, 1))
    if frame == 0:
        return fail(m, pc, E_STACK, word(pc, 2), 0)
    take_all(r, pc + 32, n, frame + F_REGISTERS)
    return enter(m, frame)


@inline
def invoke_closure(m, r, pc):
    """dst, closure, n, operands; the function's first parameters are what the closure holds"""
    closure = value(r, pc, 2)
    n = word(pc, 3)
    frame = push(m, ld(closure + A_TAG), pc + 32 + 8 * n, word(pc, 1))
    if frame == 0:
        return fail(m, pc, E_STACK, ld(closure + A_TAG), 0)
    held = ld(closure + A_COUNT)
    for i in range(held):
        st(frame + F_REGISTERS + 8 * i, keep(field(closure, i)))
    take_all(r, pc + 32, n, frame + F_REGISTERS + 8 * held)
    return enter(m, frame)


@inline
def tail_call(m, r, pc):
    """function, n, operands: the frame becomes the function's"""
    func = word(pc, 1)
    n = word(pc, 2)
    registers = registers_of(m, func)
    if r + 8 * registers > ld(m + M_LIMIT):
        return fail(m, pc, E_STACK, func, 0)
    take_all(r, pc + 24, n, ld(m + M_ARGS))
    clear_frame(m, r - F_REGISTERS)
    st(r - F_REGISTERS + F_FUNCTION, func)
    memcpy(r, ld(m + M_ARGS), 8 * n)
    memset(r + 8 * n, 0, 8 * (registers - n))
    return code_of(m, func)


@inline
def ret(m, r, pc):
    result = take(r, word(pc, 1))
    frame = r - F_REGISTERS
    clear_frame(m, frame)
    caller = ld(frame + F_CALLER)
    st(m + M_FRAME, caller)
    if caller == 0:
        st(m + M_RESULT, result)
        return stop(m, pc, S_DONE)
    set_register(m, caller + F_REGISTERS + 8 * ld(frame + F_RESULT), result)
    return ld(frame + F_BACK)


@inline
def fatal(m, r, pc):
    """No clause of a match fits, or the operation is not known."""
    return fail(m, pc, E_FATAL, word(pc, 0), 0)


# -- kernels


@inline
def invoke_packed(m, r, pc):
    """kernel, n, registers"""
    kernel = ld(ld(m + M_KERNELS) + 8 * word(pc, 1))
    n = word(pc, 2)
    if ld(kernel + K_KIND) == K_HOST:
        return stop(m, pc, S_PYTHON)
    count = gather(m, r, pc + 24, n)
    if ld(kernel + K_KIND) == K_COMPILED:
        status = call_compiled(m, kernel, count)
        if status:
            return fail(m, pc, E_KERNEL, word(pc, 1), status)
    else:
        status = run_shape(m, ld(kernel + K_CODE), ld(m + M_TENSORS))
        if status:
            return fail(m, pc, E_SHAPE, word(pc, 1), status - 1)
    return pc + 24 + 8 * n


# -- memory


@inline
def alloc_own(m, r, pc):
    """dst, dtype, item, rank, count, dims…: a tensor with its own data"""
    p = new_tensor(m, word(pc, 4), word(pc, 2), word(pc, 3), word(pc, 5), pc + 48)
    return give_new(m, r, pc, p, 6 + word(pc, 4), E_MEMORY, word(pc, 5) * word(pc, 3), 0)


@inline
def has_negative(p, n):
    for i in range(n):
        if ld(p + 8 * i) < 0:
            return 1
    return 0


@inline
def alloc_own_reg(m, r, pc):
    """dst, dtype, item, shape: a tensor with its own data"""
    shape = value(r, pc, 4)
    rank = dimension(shape, 0)
    dims = ld(shape + O_DATA)
    if has_negative(dims, rank):
        return fail(m, pc, E_VALUE, 0, 0)
    n = product_of(dims, rank)
    p = new_tensor(m, rank, word(pc, 2), word(pc, 3), n, dims)
    return give_new(m, r, pc, p, 5, E_MEMORY, n * word(pc, 3), 0)


@inline
def storage_bytes(r, pc):
    """The size that alloc_storage asks for: immediate, a number of bytes, or a shape."""
    if word(pc, 2) < 0:
        return word(pc, 3)
    size = value(r, pc, 2)
    if size & 1 or ld(size + T_RANK) != 1:
        return scalar_of(size)
    n = word(pc, 4)
    for i in range(dimension(size, 0)):
        n = n * element(size, i)
    return n


@inline
def alloc_storage(m, r, pc):
    """dst, size or -1, bytes, bytes of an element"""
    n = storage_bytes(r, pc)
    if n < 0:
        return fail(m, pc, E_VALUE, n, 0)
    p = new_object(m, STORAGE, 4)
    if p:
        p = give_data(m, p, n)
    if p:
        st(p + B_BYTES, n)
    return give_new(m, r, pc, p, 5, E_MEMORY, n, 0)


@inline
def offset_of(r, pc):
    """offset register or -1, offset"""
    if word(pc, 3) >= 0:
        return scalar_of(value(r, pc, 3))
    return word(pc, 4)


@inline
def tensor_in(m, r, pc, rank, dims, words):
    """dst, storage, offset register or -1, offset, dtype, item: a tensor in a storage"""
    storage = value(r, pc, 2)
    offset = offset_of(r, pc)
    n = word(pc, 6) * product_of(dims, rank)
    if rank < 0 or offset < 0 or n < 0 or offset + n > ld(storage + B_BYTES):
        return fail(m, pc, E_VALUE, offset + n, ld(storage + B_BYTES))
    p = view_of(m, storage, ld(storage + O_DATA) + offset, rank, word(pc, 5), word(pc, 6), dims)
    return give_new(m, r, pc, p, words, E_MEMORY, 64, 0)


@inline
def alloc_tensor(m, r, pc):
    """… rank, dims…"""
    return tensor_in(m, r, pc, word(pc, 7), pc + 64, 8 + word(pc, 7))


def alloc_tensor_reg(m, r, pc):
    """… shape"""
    dims = stack(64)
    rank = elements_to(value(r, pc, 7), dims)
    return tensor_in(m, r, pc, rank, dims, 8)


# -- views


def shape_of(m, r, pc):
    o = value(r, pc, 2)
    p = new_tensor(m, 1, INT64, 8, ld(o + T_RANK), o + T_RANK)
    if p:
        memcpy(ld(p + O_DATA), o + T_DIMS, 8 * ld(o + T_RANK))
    return give_new(m, r, pc, p, 3, E_MEMORY, 64, 0)


@inline
def reshape_tensor(m, r, pc):
    p = reshaped(m, value(r, pc, 2), value(r, pc, 3))
    return give_new(m, r, pc, p, 4, E_RESHAPE, value(r, pc, 2), value(r, pc, 3))


@inline
def get_row(m, r, pc):
    p = row_of(m, value(r, pc, 2), scalar_of(value(r, pc, 3)), word(pc, 4))
    return give_new(m, r, pc, p, 5, E_ROW, 0, 0)


@inline
def put_row(m, r, pc):
    at = scalar_of(value(r, pc, 3))
    row = value(r, pc, 4)
    return give_new(m, r, pc, with_row(m, take(r, word(pc, 2)), at, row), 5, E_ROW, 0, 0)


INSTRUCTIONS = {
    MOVE: move, RET: ret, INVOKE: invoke, INVOKE_CLOSURE: invoke_closure, INVOKE_PACKED: invoke_packed, ALLOC_TENSOR: alloc_tensor,
    ALLOC_TENSOR_REG: alloc_tensor_reg, ALLOC_ADT: alloc_adt, ALLOC_CLOSURE: alloc_closure, GET_FIELD: get_field, IF: if_, LOAD_CONST: load_const,
    GOTO: goto, GET_TAG: get_tag, LOAD_CONSTI: load_consti, ALLOC_STORAGE: alloc_storage, SHAPE_OF: shape_of, RESHAPE_TENSOR: reshape_tensor,
    KILL_REGISTER: kill_register, ALLOC_OWN: alloc_own, ALLOC_OWN_REG: alloc_own_reg, IF_IMMEDIATE: if_immediate, TAIL_CALL: tail_call,
    PUT_ROW: put_row, GET_ROW: get_row, ALLOC_REF: alloc_ref, READ_REF: read_ref, WRITE_REF: write_ref, None: fatal,
}


def run(m):
    """Runs until the base frame returns, an instruction needs Python, the steps are used up or one fails (S_…)."""
    pc = ld(m + M_PC)
    steps = ld(m + M_STEPS)
    while steps:
        steps -= 1
        following = dispatch(INSTRUCTIONS, ld(pc), m, ld(m + M_FRAME) + F_REGISTERS, pc)
        if following == 0:
            st(m + M_STEPS, steps)
            return ld(m + M_STATUS)
        pc = following
    st(m + M_PC, pc)
    return S_STEPS
