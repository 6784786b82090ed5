"""Frames of calls, and what a call needs."""


@inline
def code_of(m, func):
    return ld(ld(m + M_FUNCTIONS) + 16 * func)


@inline
def registers_of(m, func):
    return ld(ld(m + M_FUNCTIONS) + 16 * func + 8)


def push(m, func, back, dst):
    """A frame for a call, above the current one; 0 when the stack is full."""
    fp = ld(m + M_FRAME)
    top = ld(m + M_STACK)
    if fp:
        top = fp + F_REGISTERS + 8 * registers_of(m, ld(fp + F_FUNCTION))
    registers = registers_of(m, func)
    if top + F_REGISTERS + 8 * registers > ld(m + M_LIMIT):
        return 0
    st(top + F_CALLER, fp)
    st(top + F_BACK, back)
    st(top + F_RESULT, dst)
    st(top + F_FUNCTION, func)
    memset(top + F_REGISTERS, 0, 8 * registers)
    return top


def clear_frame(m, fp):
    """Lets go of all that a frame's registers hold."""
    for i in range(registers_of(m, ld(fp + F_FUNCTION))):
        v = ld(fp + F_REGISTERS + 8 * i)
        if v:
            release(m, v)
    return 0


def unwind(m):
    """Leaves all frames, after a failure."""
    fp = ld(m + M_FRAME)
    while fp:
        clear_frame(m, fp)
        fp = ld(fp + F_CALLER)
    st(m + M_FRAME, 0)
    return 0


def start(m, func, args, n):
    """Enters a function; the arguments' references are handed over.  0, or 1 when the stack is full."""
    fp = push(m, func, 0, 0)
    if fp == 0:
        return 1
    memcpy(fp + F_REGISTERS, args, 8 * n)
    st(m + M_FRAME, fp)
    st(m + M_PC, code_of(m, func))
    return 0


@inline
def stop(m, pc, status):
    """Stops the loop at an instruction: 0, which is no instruction's address."""
    st(m + M_PC, pc)
    st(m + M_STATUS, status)
    return 0


def fail(m, pc, what, a, b):
    """Stops the loop with an error."""
    st(m + M_ERROR, what)
    st(m + M_ERROR_A, a)
    st(m + M_ERROR_B, b)
    return stop(m, pc, S_FAILED)


@inline
def collect(tensors, k, o):
    """Puts a tensor, or those in a tuple, at place ``k``; the next place."""
    if kind_of(o) == TENSOR:
        st(tensors + 8 * k, o)
        return k + 1
    n = ld(o + A_COUNT)
    memcpy(tensors + 8 * k, o + A_FIELDS, 8 * n)
    return k + n


def gather(m, r, operands, n):
    """Collects the tensors of a call's arguments (those inside tuples too); their number."""
    k = 0
    for i in range(n):
        k = collect(ld(m + M_TENSORS), k, ld(r + 8 * ld(operands + 8 * i)))
    return k


def call_compiled(m, kernel, count):
    """Calls compiled code for the tensors collected; its status."""
    tensors = ld(m + M_TENSORS)
    args = ld(m + M_ARGS)
    for i in range(count):
        st(args + 8 * i, ld(ld(tensors + 8 * i) + O_DATA))
    sizes = ld(kernel + K_SIZES)
    where = ld(kernel + K_WHERE)
    for j in range(sizes):
        st(args + 8 * (count + j), dimension(ld(tensors + 8 * ld(where + 16 * j)), ld(where + 16 * j + 8)))
    st(args + 8 * (count + sizes), ld(m + M_WORKSPACE))
    return icall2(ld(kernel + K_THUNK), ld(kernel + K_CODE), args)
