"""Shape programs: short lists of integer steps that compute the dimensions of results.

A step is an operation and three words ``a``, ``b``, ``c``; its value is the next of the values ``t``.
"""


def floor_div(a, b):
    if b == 0:
        return 0
    q = a // b
    if q * b != a and (a < 0) != (b < 0):
        return q - 1
    return q


@inline
def temp(t, p, i):
    """The value that word ``i`` of a step names."""
    return ld(t + 8 * ld(p + 8 * i))


@inline
def argument(tensors, p):
    """The tensor that a step is about."""
    return ld(tensors + 8 * ld(p + 8))


@inline
def step_const(t, p, tensors):
    return ld(p + 8)


@inline
def step_dim(t, p, tensors):
    return dimension(argument(tensors, p), ld(p + 16))


@inline
def step_value(t, p, tensors):
    return element(argument(tensors, p), ld(p + 16))


@inline
def step_add(t, p, tensors):
    return temp(t, p, 1) + temp(t, p, 2)


@inline
def step_sub(t, p, tensors):
    return temp(t, p, 1) - temp(t, p, 2)


@inline
def step_mul(t, p, tensors):
    return temp(t, p, 1) * temp(t, p, 2)


@inline
def step_div(t, p, tensors):
    return floor_div(temp(t, p, 1), temp(t, p, 2))


@inline
def step_mod(t, p, tensors):
    return temp(t, p, 1) - floor_div(temp(t, p, 1), temp(t, p, 2)) * temp(t, p, 2)


@inline
def step_max(t, p, tensors):
    if temp(t, p, 1) > temp(t, p, 2):
        return temp(t, p, 1)
    return temp(t, p, 2)


@inline
def step_min(t, p, tensors):
    if temp(t, p, 1) < temp(t, p, 2):
        return temp(t, p, 1)
    return temp(t, p, 2)


@inline
def step_eq(t, p, tensors):
    return temp(t, p, 1) == temp(t, p, 2)


@inline
def step_lt(t, p, tensors):
    return temp(t, p, 1) < temp(t, p, 2)


@inline
def step_select(t, p, tensors):
    if temp(t, p, 1):
        return temp(t, p, 2)
    return temp(t, p, 3)


@inline
def step_nonzero(t, p, tensors):
    return nonzero_of(argument(tensors, p))


@inline
def step_size(t, p, tensors):
    return count_of(argument(tensors, p))


@inline
def step_out(t, p, tensors):
    st(ld(argument(tensors, p) + O_DATA) + 8 * ld(p + 16), temp(t, p, 3))
    return 0


P_CHECK = 15

STEPS = {0: step_const, 1: step_dim, 2: step_value, 3: step_add, 4: step_sub, 5: step_mul, 6: step_div, 7: step_mod, 8: step_max, 9: step_min,
         10: step_eq, 11: step_lt, 12: step_select, 13: step_nonzero, 14: step_size, 16: step_out}


def run_shape(m, program, tensors):
    """Runs a shape program: dimensions of results, from dimensions and values of arguments.  0, or the failed check + 1."""
    t = ld(m + M_TEMPS)
    p = program + 8
    for i in range(ld(program)):
        op = ld(p)
        if op == P_CHECK:
            if temp(t, p, 1) == 0:
                return ld(p + 16) + 1
        else:
            st(t + 8 * i, dispatch(STEPS, op, t, p, tensors))
        p += 32
    return 0
