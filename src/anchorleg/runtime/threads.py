"""The fork-join pool that parallel kernels use, written in LLVM IR over pthreads.

``i32 al_parallel_launch(ptr body, ptr closure, i32 num_tasks)`` calls ``i32 body(i32 task, i32 num_tasks, ptr closure)``
for every task, on the calling thread and on workers, and returns 0 or the error of one task.

How it works.  The 64-bit word ``al_epoch`` is odd while a launch is live.  The launcher writes the launch's fields,
makes the epoch odd, wakes sleepers if there are any, and then takes tasks like any worker.  Each task slot holds the
epoch that claimed it last; a thread claims a slot by moving it to the live epoch with compare-and-swap, starting from
the slot of its own number, so that a thread usually gets the same part of the data in kernel after kernel, and a thread
that wakes late costs nothing because the others take its share.  A worker reads the epoch again after reading the
fields, so it cannot mix two launches; a slot still unclaimed in epoch *e* proves that launch *e* is not over.  Waiting
is a bounded spin and then a futex (Linux) or a condition variable (elsewhere).

A launch that comes while another is live (nested, or from another Python thread) runs its tasks in its own thread.
After ``fork`` the child has no workers: Python calls ``al_after_fork`` there; code outside Python compares process ids.

The same text serves the process's own pool and exported shared libraries: all its symbols are weak.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_SLOTS = 256
_WORKER_SPINS = 4000
_JOIN_SPINS = 2000
_SLOT_SHIFT = 6  # one cache line for each slot


@dataclass(frozen=True)
class Platform:
    """What differs between operating systems and processors."""

    linux: bool
    futex_call: int
    pause: str
    pause_decl: str

    @property
    def has_futex(self) -> bool:
        return self.linux and self.futex_call != 0


_FUTEX_CALL = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
_PAUSE = {
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}
_ARCH_ALIAS = {"amd64": "x86_64", "arm64": "aarch64"}


def arch_of(triple: str) -> str:
    """The processor part of a target triple, in one spelling."""
    arch = triple.split("-")[0].lower()
    return _ARCH_ALIAS.get(arch, arch)


def platform_of(triple: str) -> Platform:
    """The platform facts for a target triple."""
    arch = arch_of(triple)
    pause, declaration = _PAUSE.get(arch, ("fence seq_cst", ""))
    linux = "linux" in triple
    return Platform(linux, _FUTEX_CALL.get(arch, 0) if linux else 0, pause, declaration)


def runtime_text(triple: str, condvar: bool = False) -> str:
    """LLVM IR of the pool and of the workspace functions for ``triple``; ``condvar`` forbids the futex."""
    facts = platform_of(triple)
    futex = facts.has_futex and not condvar
    parts = [
        f'target triple = "{triple}"', _GLOBALS, facts.pause_decl, _FUTEX if futex else _CONDVAR,
        _count_text(facts), _POOL, _workspace_text(),
    ]
    text = "\n".join(parts)
    for name, value in {
        "@@PAUSE@@": facts.pause, "@@FUTEX@@": str(facts.futex_call), "@@SLOTS@@": str(MAX_SLOTS), "@@SHIFT@@": str(_SLOT_SHIFT),
        "@@SLOT_BYTES@@": str(MAX_SLOTS << _SLOT_SHIFT), "@@WORKER_SPINS@@": str(_WORKER_SPINS),
        "@@JOIN_SPINS@@": str(_JOIN_SPINS), "@@SIG_BLOCK@@": "0" if facts.linux else "1",
    }.items():
        text = text.replace(name, value)
    return text


_GLOBALS = """
@al_epoch = weak global i64 0, align 128
@al_body = weak global ptr null, align 128
@al_closure = weak global ptr null, align 8
@al_tasks = weak global i32 0, align 4
@al_done = weak global i32 0, align 128
@al_waiting = weak global i32 0, align 4
@al_error = weak global i32 0, align 4
@al_sleepers = weak global i32 0, align 128
@al_busy = weak global i32 0, align 128
@al_threads = weak global i32 0, align 128
@al_started = weak global i32 0, align 4
@al_pid = weak global i32 0, align 4
@al_check_pid = weak global i32 1, align 4
@al_slots = weak global [@@SLOT_BYTES@@ x i8] zeroinitializer, align 128
@al_env_own = weak constant [22 x i8] c"ANCHORLEG_NUM_THREADS\\00"
@al_env_tvm = weak constant [16 x i8] c"TVM_NUM_THREADS\\00"

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @getpid()
declare ptr @getenv(ptr)
declare i32 @atoi(ptr)
declare i64 @sysconf(i32)
"""

_FUTEX = """
declare i64 @syscall(i64, ...)

define weak void @al_wait_setup() {
  ret void
}

define weak void @al_wait(ptr %word, i32 %seen) {
  %r = call i64 (i64, ...) @syscall(i64 @@FUTEX@@, ptr %word, i64 128, i32 %seen, ptr null, ptr null, i64 0)
  ret void
}

define weak void @al_wake(ptr %word, i32 %count) {
  %r = call i64 (i64, ...) @syscall(i64 @@FUTEX@@, ptr %word, i64 129, i32 %count, ptr null, ptr null, i64 0)
  ret void
}
"""

# room for the largest mutex (64 bytes) and condition variable (48) of the systems at hand
_CONDVAR = """
@al_mutex = weak global [64 x i8] zeroinitializer, align 64
@al_cond = weak global [64 x i8] zeroinitializer, align 64
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

define weak void @al_wait_setup() {
  %a = call i32 @pthread_mutex_init(ptr @al_mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr @al_cond, ptr null)
  ret void
}

define weak void @al_wait(ptr %word, i32 %seen) {
entry:
  %a = call i32 @pthread_mutex_lock(ptr @al_mutex)
  %now = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %now, %seen
  br i1 %same, label %sleep, label %out
sleep:
  %b = call i32 @pthread_cond_wait(ptr @al_cond, ptr @al_mutex)
  br label %out
out:
  %c = call i32 @pthread_mutex_unlock(ptr @al_mutex)
  ret void
}

define weak void @al_wake(ptr %word, i32 %count) {
  %a = call i32 @pthread_mutex_lock(ptr @al_mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @al_cond)
  %c = call i32 @pthread_mutex_unlock(ptr @al_mutex)
  ret void
}
"""

_AFFINITY = """
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i64 @llvm.ctpop.i64(i64)

define weak i32 @al_cores() {
entry:
  %mask = alloca [16 x i64], align 16
  store [16 x i64] zeroinitializer, ptr %mask, align 16
  %r = call i32 @sched_getaffinity(i32 0, i64 128, ptr %mask)
  %bad = icmp slt i32 %r, 0
  br i1 %bad, label %online, label %sum
sum:
  %i = phi i64 [ 0, %entry ], [ %i2, %sum ]
  %n = phi i64 [ 0, %entry ], [ %n2, %sum ]
  %at = getelementptr inbounds i64, ptr %mask, i64 %i
  %word = load i64, ptr %at, align 8
  %bits = call i64 @llvm.ctpop.i64(i64 %word)
  %n2 = add i64 %n, %bits
  %i2 = add i64 %i, 1
  %more = icmp ult i64 %i2, 16
  br i1 %more, label %sum, label %done
done:
  %count = trunc i64 %n2 to i32
  ret i32 %count
online:
  %c = call i64 @sysconf(i32 84)
  %c32 = trunc i64 %c to i32
  ret i32 %c32
}
"""

_ONLINE = """
define weak i32 @al_cores() {
  %c = call i64 @sysconf(i32 58)
  %c32 = trunc i64 %c to i32
  ret i32 %c32
}
"""


def _count_text(facts: Platform) -> str:
    return _AFFINITY if facts.linux else _ONLINE


_POOL = """
define weak void @al_set_num_threads(i32 %n) {
  store atomic i32 %n, ptr @al_threads seq_cst, align 4
  ret void
}

define weak void @al_trust_fork_hook() {
  store i32 0, ptr @al_check_pid, align 4
  ret void
}

define weak i32 @al_num_threads() {
entry:
  %known = load atomic i32, ptr @al_threads monotonic, align 4
  %have = icmp sgt i32 %known, 0
  br i1 %have, label %ready, label %own
ready:
  ret i32 %known
own:
  %e1 = call ptr @getenv(ptr @al_env_own)
  %n1 = icmp eq ptr %e1, null
  br i1 %n1, label %tvm, label %parse
tvm:
  %e2 = call ptr @getenv(ptr @al_env_tvm)
  %n2 = icmp eq ptr %e2, null
  br i1 %n2, label %cores, label %parse
parse:
  %text = phi ptr [ %e1, %own ], [ %e2, %tvm ]
  %value = call i32 @atoi(ptr %text)
  %good = icmp sgt i32 %value, 0
  br i1 %good, label %keep, label %cores
cores:
  %c = call i32 @al_cores()
  br label %keep
keep:
  %t = phi i32 [ %value, %parse ], [ %c, %cores ]
  %low = icmp slt i32 %t, 1
  %result = select i1 %low, i32 1, i32 %t
  store atomic i32 %result, ptr @al_threads monotonic, align 4
  ret i32 %result
}

define weak void @al_after_fork() {
  store i32 0, ptr @al_started, align 4
  store atomic i32 0, ptr @al_sleepers seq_cst, align 4
  store atomic i32 0, ptr @al_waiting seq_cst, align 4
  %e = load atomic i64, ptr @al_epoch seq_cst, align 8
  %e1 = add i64 %e, 1
  %even = and i64 %e1, -2
  store atomic i64 %even, ptr @al_epoch seq_cst, align 8
  %pid = call i32 @getpid()
  store i32 %pid, ptr @al_pid, align 4
  call void @al_wait_setup()
  store atomic i32 0, ptr @al_busy seq_cst, align 4
  ret void
}

; claim and run slots, beginning at the caller's own; returns how many were run
define weak i32 @al_take(i32 %self, i64 %epoch, ptr %body, ptr %closure, i32 %tasks) {
entry:
  %fits = icmp slt i32 %tasks, @@SLOTS@@
  %slots = select i1 %fits, i32 %tasks, i32 @@SLOTS@@
  %first = urem i32 %self, %slots
  br label %scan
scan:
  %k = phi i32 [ 0, %entry ], [ %k2, %next ]
  %slot = phi i32 [ %first, %entry ], [ %slot2, %next ]
  %count = phi i32 [ 0, %entry ], [ %count2, %next ]
  %wide = zext i32 %slot to i64
  %offset = shl i64 %wide, @@SHIFT@@
  %at = getelementptr inbounds i8, ptr @al_slots, i64 %offset
  %last = load atomic i64, ptr %at monotonic, align 8
  %open = icmp slt i64 %last, %epoch
  br i1 %open, label %claim, label %next
claim:
  %swap = cmpxchg ptr %at, i64 %last, i64 %epoch acq_rel monotonic
  %won = extractvalue { i64, i1 } %swap, 1
  br i1 %won, label %run, label %next
run:
  %task = phi i32 [ %slot, %claim ], [ %task2, %ran ]
  %r = call i32 %body(i32 %task, i32 %tasks, ptr %closure)
  %ok = icmp eq i32 %r, 0
  br i1 %ok, label %ran, label %failed
failed:
  store atomic i32 %r, ptr @al_error monotonic, align 4
  br label %ran
ran:
  %task2 = add i32 %task, %slots
  %again = icmp slt i32 %task2, %tasks
  br i1 %again, label %run, label %ranall
ranall:
  %one = add i32 %count, 1
  br label %next
next:
  %count2 = phi i32 [ %count, %scan ], [ %count, %claim ], [ %one, %ranall ]
  %slot1 = add i32 %slot, 1
  %wrap = icmp eq i32 %slot1, %slots
  %slot2 = select i1 %wrap, i32 0, i32 %slot1
  %k2 = add i32 %k, 1
  %end = icmp eq i32 %k2, %slots
  br i1 %end, label %out, label %scan
out:
  ret i32 %count2
}

define weak ptr @al_worker(ptr %arg) {
entry:
  %full = alloca [16 x i64], align 16
  call void @llvm.memset.p0.i64(ptr %full, i8 -1, i64 128, i1 false)
  %m = call i32 @pthread_sigmask(i32 @@SIG_BLOCK@@, ptr %full, ptr null)
  %id64 = ptrtoint ptr %arg to i64
  %id = trunc i64 %id64 to i32
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %seen, %woken ], [ %seen, %torn ], [ %e, %finish ]
  br label %spin
spin:
  %n = phi i32 [ 0, %idle ], [ %n2, %pause ]
  %es = load atomic i64, ptr @al_epoch acquire, align 8
  %odd = and i64 %es, 1
  %live = icmp ne i64 %odd, 0
  %fresh = icmp ne i64 %es, %seen
  %go = and i1 %live, %fresh
  br i1 %go, label %work, label %pause
pause:
  @@PAUSE@@
  %n2 = add i32 %n, 1
  %tired = icmp uge i32 %n2, @@WORKER_SPINS@@
  br i1 %tired, label %sleep, label %spin
sleep:
  %s0 = atomicrmw add ptr @al_sleepers, i32 1 seq_cst
  %ez = load atomic i64, ptr @al_epoch seq_cst, align 8
  %oddz = and i64 %ez, 1
  %livez = icmp ne i64 %oddz, 0
  %freshz = icmp ne i64 %ez, %seen
  %goz = and i1 %livez, %freshz
  br i1 %goz, label %woken, label %down
down:
  %low = trunc i64 %ez to i32
  call void @al_wait(ptr @al_epoch, i32 %low)
  br label %woken
woken:
  %s1 = atomicrmw sub ptr @al_sleepers, i32 1 seq_cst
  br label %idle
work:
  %e = phi i64 [ %es, %spin ]
  %body = load atomic ptr, ptr @al_body acquire, align 8
  %closure = load atomic ptr, ptr @al_closure acquire, align 8
  %tasks = load atomic i32, ptr @al_tasks acquire, align 4
  %e2 = load atomic i64, ptr @al_epoch acquire, align 8
  %whole = icmp eq i64 %e, %e2
  br i1 %whole, label %allowed, label %torn
torn:
  br label %idle
allowed:
  %threads = load atomic i32, ptr @al_threads monotonic, align 4
  %mine = icmp slt i32 %id, %threads
  br i1 %mine, label %take, label %finish
take:
  %count = call i32 @al_take(i32 %id, i64 %e, ptr %body, ptr %closure, i32 %tasks)
  %some = icmp sgt i32 %count, 0
  br i1 %some, label %report, label %finish
report:
  %d = atomicrmw add ptr @al_done, i32 %count seq_cst
  %w = load atomic i32, ptr @al_waiting seq_cst, align 4
  %waits = icmp ne i32 %w, 0
  br i1 %waits, label %signal, label %finish
signal:
  call void @al_wake(ptr @al_done, i32 1)
  br label %finish
finish:
  br label %idle
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; make workers until there are as many as wanted; too few is not an error, the work is shared among those there are
define weak void @al_start(i32 %want) {
entry:
  %thread = alloca ptr, align 8
  %have0 = load i32, ptr @al_started, align 4
  %none = icmp eq i32 %have0, 0
  br i1 %none, label %setup, label %check
setup:
  %pid = call i32 @getpid()
  store i32 %pid, ptr @al_pid, align 4
  call void @al_wait_setup()
  br label %check
check:
  %have = phi i32 [ %have0, %entry ], [ %have0, %setup ], [ %id, %made ]
  %more = icmp slt i32 %have, %want
  br i1 %more, label %make, label %out
make:
  %id = add i32 %have, 1
  %id64 = zext i32 %id to i64
  %arg = inttoptr i64 %id64 to ptr
  %r = call i32 @pthread_create(ptr %thread, ptr null, ptr @al_worker, ptr %arg)
  %ok = icmp eq i32 %r, 0
  br i1 %ok, label %made, label %out
made:
  %t = load ptr, ptr %thread, align 8
  %dr = call i32 @pthread_detach(ptr %t)
  store i32 %id, ptr @al_started, align 4
  br label %check
out:
  ret void
}

define weak i32 @al_inline(ptr %body, ptr %closure, i32 %tasks) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i2, %next ]
  %r = call i32 %body(i32 %i, i32 %tasks, ptr %closure)
  %ok = icmp eq i32 %r, 0
  br i1 %ok, label %next, label %out
next:
  %i2 = add i32 %i, 1
  %more = icmp slt i32 %i2, %tasks
  br i1 %more, label %loop, label %out
out:
  ret i32 %r
}

define weak void @al_join(i32 %slots) {
entry:
  br label %spin
spin:
  %n = phi i32 [ 0, %entry ], [ %n2, %pause ]
  %d = load atomic i32, ptr @al_done acquire, align 4
  %all = icmp eq i32 %d, %slots
  br i1 %all, label %out, label %pause
pause:
  @@PAUSE@@
  %n2 = add i32 %n, 1
  %tired = icmp uge i32 %n2, @@JOIN_SPINS@@
  br i1 %tired, label %announce, label %spin
announce:
  store atomic i32 1, ptr @al_waiting seq_cst, align 4
  br label %check
check:
  %d2 = load atomic i32, ptr @al_done seq_cst, align 4
  %all2 = icmp eq i32 %d2, %slots
  br i1 %all2, label %over, label %down
down:
  call void @al_wait(ptr @al_done, i32 %d2)
  br label %check
over:
  store atomic i32 0, ptr @al_waiting seq_cst, align 4
  br label %out
out:
  ret void
}

define weak i32 @al_parallel_launch(ptr %body, ptr %closure, i32 %wanted) {
entry:
  %threads = call i32 @al_num_threads()
  %auto = icmp slt i32 %wanted, 1
  %tasks = select i1 %auto, i32 %threads, i32 %wanted
  %one = icmp eq i32 %tasks, 1
  %alone = icmp slt i32 %threads, 2
  %serial = or i1 %one, %alone
  br i1 %serial, label %inline, label %forked
forked:
  %check = load i32, ptr @al_check_pid, align 4
  %checks = icmp ne i32 %check, 0
  br i1 %checks, label %pids, label %lock
pids:
  %started0 = load i32, ptr @al_started, align 4
  %fresh = icmp eq i32 %started0, 0
  br i1 %fresh, label %lock, label %compare
compare:
  %pid = call i32 @getpid()
  %old = load i32, ptr @al_pid, align 4
  %same = icmp eq i32 %pid, %old
  br i1 %same, label %lock, label %child
child:
  call void @al_after_fork()
  br label %lock
lock:
  %swap = cmpxchg ptr @al_busy, i32 0, i32 1 acquire monotonic
  %won = extractvalue { i32, i1 } %swap, 1
  br i1 %won, label %ours, label %inline
ours:
  %want = sub i32 %threads, 1
  %started = load i32, ptr @al_started, align 4
  %few = icmp slt i32 %started, %want
  br i1 %few, label %grow, label %publish
grow:
  call void @al_start(i32 %want)
  br label %publish
publish:
  %fits = icmp slt i32 %tasks, @@SLOTS@@
  %slots = select i1 %fits, i32 %tasks, i32 @@SLOTS@@
  store atomic ptr %body, ptr @al_body release, align 8
  store atomic ptr %closure, ptr @al_closure release, align 8
  store atomic i32 %tasks, ptr @al_tasks release, align 4
  store atomic i32 0, ptr @al_error monotonic, align 4
  store atomic i32 0, ptr @al_done monotonic, align 4
  %before = load atomic i64, ptr @al_epoch monotonic, align 8
  %epoch = add i64 %before, 1
  store atomic i64 %epoch, ptr @al_epoch seq_cst, align 8
  %asleep = load atomic i32, ptr @al_sleepers seq_cst, align 4
  %any = icmp sgt i32 %asleep, 0
  br i1 %any, label %wake, label %work
wake:
  %others = sub i32 %slots, 1
  call void @al_wake(ptr @al_epoch, i32 %others)
  br label %work
work:
  %count = call i32 @al_take(i32 0, i64 %epoch, ptr %body, ptr %closure, i32 %tasks)
  %prior = atomicrmw add ptr @al_done, i32 %count seq_cst
  %sum = add i32 %prior, %count
  %all = icmp eq i32 %sum, %slots
  br i1 %all, label %over, label %join
join:
  call void @al_join(i32 %slots)
  br label %over
over:
  %after = add i64 %epoch, 1
  store atomic i64 %after, ptr @al_epoch release, align 8
  %result = load atomic i32, ptr @al_error monotonic, align 4
  store atomic i32 0, ptr @al_busy release, align 4
  ret i32 %result
inline:
  %r = call i32 @al_inline(ptr %body, ptr %closure, i32 %tasks)
  ret i32 %r
}
"""


def _workspace_text() -> str:
    """Scratch memory for kernels: upstream's names, 128-byte alignment, one byte at least."""
    return """
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)

define weak ptr @al_alloc(i64 %size) {
  %slot = alloca ptr, align 8
  store ptr null, ptr %slot, align 8
  %none = icmp eq i64 %size, 0
  %bytes = select i1 %none, i64 1, i64 %size
  %r = call i32 @posix_memalign(ptr %slot, i64 128, i64 %bytes)
  %p = load ptr, ptr %slot, align 8
  %bad = icmp ne i32 %r, 0
  %result = select i1 %bad, ptr null, ptr %p
  ret ptr %result
}

define weak void @al_free(ptr %p) {
  call void @free(ptr %p)
  ret void
}

define weak ptr @TVMBackendAllocWorkspace(i32 %device, i32 %id, i64 %size, i32 %code, i32 %bits) {
  %p = call ptr @al_alloc(i64 %size)
  ret ptr %p
}

define weak i32 @TVMBackendFreeWorkspace(i32 %device, i32 %id, ptr %p) {
  call void @free(ptr %p)
  ret i32 0
}
"""


EXPORTS = (
    "al_parallel_launch", "al_num_threads", "al_set_num_threads", "al_after_fork", "al_trust_fork_hook", "al_alloc",
    "al_free", "TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace",
)


def error_text() -> str:
    """LLVM IR of the error functions for shared libraries: the last text is kept, up to 4095 bytes.

    In a process of ours Python answers them instead, for each thread by itself.
    """
    return """
@al_last_error = weak global [4096 x i8] zeroinitializer, align 16
declare ptr @strncpy(ptr, ptr, i64)

define weak void @TVMAPISetLastError(ptr %text) {
  %r = call ptr @strncpy(ptr @al_last_error, ptr %text, i64 4095)
  ret void
}

define weak ptr @TVMGetLastError() {
  ret ptr @al_last_error
}
"""
