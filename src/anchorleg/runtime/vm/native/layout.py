"""What lies where.

A *machine* is a block of words (``M_…`` below); one thread runs it at a time.  Code, constants and kernels are read only
and may be shared by machines.

Values are addresses of counted objects; an odd number is a small integer itself (``2 v + 1``), 0 is no value.  An object
begins with the count of its references (-1: never freed) and a word that tells its kind, the class of its memory
(``<< 8``) and the class of its data plus one (``<< 32``).

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
M_STATUS = 184      # why the loop stopped (S_…)
M_CELLS = 192       # all cells of references, a list

S_DONE = 0          # the base frame has returned
S_PYTHON = 1        # an instruction needs Python
S_STEPS = 2         # the steps are used up
S_FAILED = -1

E_MEMORY = 1
E_STACK = 2
E_KERNEL = 3
E_FATAL = 4
E_SHAPE = 5
E_RESHAPE = 6
E_ROW = 7
E_VALUE = 8

STORAGE = 0         # kinds of objects
TENSOR = 1
ADT = 2
CLOSURE = 3
CELL = 4            # what a reference refers to
MARK = 65536        # in the word of an object's kind: seen on the walk that is under way

O_COUNT = 0         # every object
O_HEAD = 8
O_DATA = 16         # storage and tensors

B_BYTES = 24        # a storage

T_OWNER = 24        # a tensor: owner of the data (0: itself)
T_RANK = 32
T_DTYPE = 40
T_ITEM = 48         # bytes of an element
T_DIMS = 56

A_TAG = 16          # a tuple or a value of a data type; a closure has the number of its function there
A_COUNT = 24        # number of fields, or of captured values
A_FIELDS = 32

C_PREVIOUS = 16     # a cell, otherwise as an object of one field
C_VALUE = 32
C_NEXT = 40

F_CALLER = 0        # a frame: the caller's frame
F_BACK = 8          # where to go on there
F_RESULT = 16       # the register for the result there
F_FUNCTION = 24
F_REGISTERS = 32

K_KIND = 0          # a kernel record
K_CODE = 8          # compiled code, or a shape program
K_THUNK = 16
K_SIZES = 24        # how many dimensions it wants, and pairs of the argument and the dimension's number
K_WHERE = 32

K_COMPILED = 0
K_SHAPE = 1
K_HOST = 2

UINT = 1            # the lowest byte of a dtype
FLOAT = 2
BFLOAT = 4
INT64 = 81920       # the dtype int64: code 0, 64 bits, one lane

SMALL = 4096
SLAB = 262144
LARGE_CLASS = 56    # from 1 MiB on a free block of a slightly larger class serves too
COUNTED_CLASS = 28  # from here on idle blocks are counted, and given back to the system when there are many
MOST_BYTES = 1 << 46
MOST_RANK = 64
