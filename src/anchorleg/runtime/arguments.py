"""The checks of a kernel's tensor arguments, shared by all packed entries, written in LLVM IR.

A packed entry names each tensor parameter by a descriptor
``{ptr name, ptr shape text, ptr dtype text, i32 rank, i32 dtype word, i32 alignment, i32 is bool}`` and calls

* ``ptr al_open_tensor(ptr args, ptr type codes, i32 index, ptr descriptor)``: the ``DLTensor*``, or null after an error;
* ``i32 al_check_shape(ptr tensor, ptr descriptor, ptr shape, ptr strides or null)``: 0, or -1 after an error.

An error leaves a text, with what was expected and what came, through ``TVMAPISetLastError``.
"""

from __future__ import annotations

SYMBOLS = ("al_open_tensor", "al_check_shape")
_MESSAGES = {
    "code": "%s: expected a tensor, got type code %lld",
    "null": "%s: expected a tensor, got a null pointer",
    "rank": "%s: expected rank %lld with shape %s, got rank %lld",
    "dtype": "%s: expected dtype %s, got type code %lld with %lld bits and %lld lanes",
    "device": "%s: expected a tensor on the host (device type 1), got device type %lld",
    "align": "%s: expected data aligned to %lld bytes, got an address %lld past that",
    "shape": "%s: expected shape %s, got %lld in dimension %lld",
    "data": "%s: expected the data of a tensor of shape %s, got a null pointer",
    "stride": "%s: expected stride %lld in dimension %lld of a tensor of shape %s, got %lld",
}


def _message(name: str, text: str) -> str:
    return f'@al_text_{name} = weak unnamed_addr constant [{len(text) + 1} x i8] c"{text}\\00"'


def _fail(label: str, name: str, arguments: str) -> str:
    return f"""{label}:
  %text_{label} = alloca [512 x i8], align 16
  %n_{label} = call i32 (ptr, @@SIZE@@, ptr, ...) @snprintf(ptr %text_{label}, @@SIZE@@ 512, ptr @al_text_{name}, ptr %name{arguments})
  call void @TVMAPISetLastError(ptr %text_{label})
  br label %bad"""


def _descriptor(position: int, name: str, kind: str) -> str:
    return f"  %{name}_at = getelementptr @@DESCRIPTOR@@, ptr %desc, i32 0, i32 {position}\n  %{name} = load {kind}, ptr %{name}_at"


def _field(offset: int, name: str, kind: str) -> str:
    return f"  %{name}_at = getelementptr i8, ptr %t, i64 {offset}\n  %{name} = load {kind}, ptr %{name}_at, align 4"


_TEXT = """
declare i32 @snprintf(ptr, @@SIZE@@, ptr, ...)
@@DECLARE_ERROR@@
@@MESSAGES@@

define weak ptr @al_open_tensor(ptr %args, ptr %codes, i32 %index, ptr %desc) nounwind@@SECTION@@ {
entry:
@@NAME@@
@@SHAPE_TEXT@@
@@DTYPE_TEXT@@
@@RANK@@
@@WORD@@
@@ALIGN@@
@@BOOL@@
  %code_at = getelementptr i32, ptr %codes, i32 %index
  %code = load i32, ptr %code_at, align 4
  %h = icmp eq i32 %code, 3
  %d = icmp eq i32 %code, 7
  %a = icmp eq i32 %code, 13
  %hd = or i1 %h, %d
  %hda = or i1 %hd, %a
  %code64 = sext i32 %code to i64
  br i1 %hda, label %coded, label %fail_code
coded:
  %slot = getelementptr i64, ptr %args, i32 %index
  %t = load ptr, ptr %slot, align 8
  %there = icmp ne ptr %t, null
  br i1 %there, label %open, label %fail_null
open:
@@GOT_RANK@@
  %rank64 = sext i32 %rank to i64
  %got_rank64 = sext i32 %got_rank to i64
  %rank_ok = icmp eq i32 %rank, %got_rank
  br i1 %rank_ok, label %ranked, label %fail_rank
ranked:
@@GOT_WORD@@
  %tcode = and i32 %got_word, 255
  %tbits0 = lshr i32 %got_word, 8
  %tbits = and i32 %tbits0, 255
  %tlanes = lshr i32 %got_word, 16
  %tcode64 = zext i32 %tcode to i64
  %tbits64 = zext i32 %tbits to i64
  %tlanes64 = zext i32 %tlanes to i64
  %same = icmp eq i32 %got_word, %word
  %dlbool = icmp eq i32 %got_word, 67590
  %byte = icmp eq i32 %got_word, 67585
  %like = or i1 %dlbool, %byte
  %wants_bool = icmp ne i32 %is_bool, 0
  %bool_ok = and i1 %like, %wants_bool
  %typed = or i1 %same, %bool_ok
  br i1 %typed, label %place, label %fail_dtype
place:
@@GOT_DEVICE@@
  %dev64 = sext i32 %dev to i64
  %host = icmp eq i32 %dev, 1
  br i1 %host, label %address, label %fail_device
address:
  %data = load ptr, ptr %t, align 4
@@GOT_OFFSET@@
  %base = ptrtoint ptr %data to i64
  %where = add i64 %base, %offset
  %align64 = zext i32 %align to i64
  %mask = sub i64 %align64, 1
  %past = and i64 %where, %mask
  %aligned = icmp eq i64 %past, 0
  br i1 %aligned, label %good, label %fail_align
good:
  ret ptr %t
@@FAILS@@
bad:
  ret ptr null
}

define weak i32 @al_check_shape(ptr %t, ptr %desc, ptr %shape, ptr %strides) nounwind@@SECTION@@ {
entry:
@@NAME@@
@@SHAPE_TEXT@@
@@RANK@@
@@GOT_SHAPE@@
@@GOT_STRIDES@@
  %rank64 = sext i32 %rank to i64
  %some = icmp sgt i32 %rank, 0
  br i1 %some, label %extents, label %held
extents:
  %i = phi i64 [ 0, %entry ], [ %i2, %extent_ok ]
  %total = phi i64 [ 1, %entry ], [ %total2, %extent_ok ]
  %want_at = getelementptr i64, ptr %shape, i64 %i
  %want = load i64, ptr %want_at, align 8
  %got_at = getelementptr i64, ptr %got_shape, i64 %i
  %got = load i64, ptr %got_at, align 8
  %extent_same = icmp eq i64 %want, %got
  br i1 %extent_same, label %extent_ok, label %fail_shape
extent_ok:
  %total2 = mul i64 %total, %got
  %i2 = add i64 %i, 1
  %more = icmp slt i64 %i2, %rank64
  br i1 %more, label %extents, label %extents_done
extents_done:
  %unstrided = icmp eq ptr %got_strides, null
  %plain = icmp eq ptr %strides, null
  %both = and i1 %unstrided, %plain
  %empty = icmp eq i64 %total2, 0
  %skip = or i1 %both, %empty
  br i1 %skip, label %held, label %steps
steps:
  %j = phi i64 [ %rank64, %extents_done ], [ %j1, %step_ok ]
  %compact = phi i64 [ 1, %extents_done ], [ %compact2, %step_ok ]
  %j1 = sub i64 %j, 1
  %e_at = getelementptr i64, ptr %got_shape, i64 %j1
  %e = load i64, ptr %e_at, align 8
  %from_want = select i1 %plain, ptr %shape, ptr %strides
  %ws_at = getelementptr i64, ptr %from_want, i64 %j1
  %ws0 = load i64, ptr %ws_at, align 8
  %ws = select i1 %plain, i64 %compact, i64 %ws0
  %from_got = select i1 %unstrided, ptr %shape, ptr %got_strides
  %gs_at = getelementptr i64, ptr %from_got, i64 %j1
  %gs0 = load i64, ptr %gs_at, align 8
  %gs = select i1 %unstrided, i64 %compact, i64 %gs0
  %step_same = icmp eq i64 %ws, %gs
  %trivial = icmp slt i64 %e, 2
  %step_fine = or i1 %step_same, %trivial
  br i1 %step_fine, label %step_ok, label %fail_stride
step_ok:
  %compact2 = mul i64 %compact, %e
  %left = icmp sgt i64 %j1, 0
  br i1 %left, label %steps, label %held
held:
  %count = phi i64 [ 1, %entry ], [ %total2, %extents_done ], [ %total2, %step_ok ]
  %data = load ptr, ptr %t, align 4
  %nowhere = icmp eq ptr %data, null
  %any = icmp ne i64 %count, 0
  %lost = and i1 %nowhere, %any
  br i1 %lost, label %fail_data, label %good
good:
  ret i32 0
@@SHAPE_FAILS@@
bad:
  ret i32 -1
}
"""


def arguments_text(pointer_bytes: int = 8, declare_error: bool = True, section: str = "") -> str:
    """The two functions as LLVM IR for a processor with addresses of that many bytes; in a section of the object, where one is named."""
    p = pointer_bytes
    offsets = {"dev": p, "got_rank": p + 8, "got_word": p + 12, "got_shape": p + 16, "got_strides": 2 * p + 16,
               "offset": -(-(3 * p + 16) // 8) * 8}
    fails = [("fail_code", "code", ", i64 %code64"), ("fail_null", "null", ""),
             ("fail_rank", "rank", ", i64 %rank64, ptr %shape_text, i64 %got_rank64"),
             ("fail_dtype", "dtype", ", ptr %dtype_text, i64 %tcode64, i64 %tbits64, i64 %tlanes64"), ("fail_device", "device", ", i64 %dev64"),
             ("fail_align", "align", ", i64 %align64, i64 %past")]
    shape_fails = [("fail_shape", "shape", ", ptr %shape_text, i64 %got, i64 %i"), ("fail_data", "data", ", ptr %shape_text"),
                   ("fail_stride", "stride", ", i64 %ws, i64 %j1, ptr %shape_text, i64 %gs")]
    parts = {
        "MESSAGES": "\n".join(_message(n, t) for n, t in _MESSAGES.items()),
        "FAILS": "\n".join(_fail(*f) for f in fails), "SHAPE_FAILS": "\n".join(_fail(*f) for f in shape_fails),
        "NAME": _descriptor(0, "name", "ptr"), "SHAPE_TEXT": _descriptor(1, "shape_text", "ptr"),
        "DTYPE_TEXT": _descriptor(2, "dtype_text", "ptr"), "RANK": _descriptor(3, "rank", "i32"), "WORD": _descriptor(4, "word", "i32"),
        "ALIGN": _descriptor(5, "align", "i32"), "BOOL": _descriptor(6, "is_bool", "i32"),
        "GOT_RANK": _field(offsets["got_rank"], "got_rank", "i32"), "GOT_WORD": _field(offsets["got_word"], "got_word", "i32"),
        "GOT_DEVICE": _field(offsets["dev"], "dev", "i32"), "GOT_OFFSET": _field(offsets["offset"], "offset", "i64"),
        "GOT_SHAPE": _field(offsets["got_shape"], "got_shape", "ptr"), "GOT_STRIDES": _field(offsets["got_strides"], "got_strides", "ptr"),
        "DECLARE_ERROR": "declare void @TVMAPISetLastError(ptr)" if declare_error else "",
        "SECTION": f' section "{section}"' if section else "",
        "DESCRIPTOR": "{ ptr, ptr, ptr, i32, i32, i32, i32 }", "SIZE": "i64" if p == 8 else "i32",
    }
    text = _TEXT
    for name, part in parts.items():
        text = text.replace(f"@@{name}@@", part)
    return text.replace("@@DESCRIPTOR@@", parts["DESCRIPTOR"]).replace("@@SIZE@@", parts["SIZE"])
