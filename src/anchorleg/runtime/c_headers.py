"""The C headers that code of external compilers includes: DLPack's tensors, packed calls, workspace."""

from __future__ import annotations

from collections.abc import Iterable

_DLPACK = """#ifndef ANCHORLEG_DLPACK_H_
#define ANCHORLEG_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLOpenCL = 4, kDLVulkan = 7, kDLMetal = 8, kDLROCM = 10, kDLExtDev = 12 } DLDeviceType;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLComplex = 5 } DLDataTypeCode;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;

/* A tensor: address, where it is, rank, element type, shape, strides in elements (NULL: compact), bytes to skip at the address */
typedef struct {
    void* data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t* shape;
    int64_t* strides;
    uint64_t byte_offset;
} DLTensor;

#ifdef __cplusplus
}
#endif

#endif
"""

_RUNTIME = """#ifndef ANCHORLEG_C_RUNTIME_API_H_
#define ANCHORLEG_C_RUNTIME_API_H_

#include <dlpack/dlpack.h>

#ifndef TVM_DLL
#define TVM_DLL __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef DLTensor* TVMArrayHandle;
typedef DLDevice TVMDevice;
typedef enum {
    kTVMArgInt = 0, kTVMArgFloat = 2, kTVMOpaqueHandle = 3, kTVMNullptr = 4, kTVMDataType = 5, kDLDevice = 6, kTVMDLTensorHandle = 7,
    kTVMObjectHandle = 8, kTVMModuleHandle = 9, kTVMPackedFuncHandle = 10, kTVMStr = 11, kTVMBytes = 12, kTVMNDArrayHandle = 13, kTVMArgBool = 15
} TVMArgTypeCode;

/* One argument or result of a packed call; a type code says which member it is */
typedef union {
    int64_t v_int64;
    double v_float64;
    void* v_handle;
    const char* v_str;
    DLDataType v_type;
    DLDevice v_device;
} TVMValue;

/* A packed function: 0 on success, else after TVMAPISetLastError */
typedef int (*TVMBackendPackedCFunc)(TVMValue* args, int* type_codes, int num_args, TVMValue* out_value, int* out_type_code, void* resource_handle);

TVM_DLL void TVMAPISetLastError(const char* message);
TVM_DLL const char* TVMGetLastError(void);

#ifdef __cplusplus
}
#endif

#endif
"""

_BACKEND = """#ifndef ANCHORLEG_C_BACKEND_API_H_
#define ANCHORLEG_C_BACKEND_API_H_

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory for the time of a call; NULL when there is none */
TVM_DLL void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint, int dtype_bits_hint);
TVM_DLL int TVMBackendFreeWorkspace(int device_type, int device_id, void* ptr);

#ifdef __cplusplus
}
#endif

#endif
"""

HEADERS = {"dlpack/dlpack.h": _DLPACK, "tvm/runtime/c_runtime_api.h": _RUNTIME, "tvm/runtime/c_backend_api.h": _BACKEND}

# what has to be linked to code that uses it
SUPPORT_NAMES = ("TVMAPISetLastError", "TVMGetLastError", "TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace")

_SUPPORT = """/* What code of external compilers calls; a platform that has these functions goes first */
#include <stdlib.h>
#include <tvm/runtime/c_backend_api.h>

static const char* last_error = "";

__attribute__((weak)) void TVMAPISetLastError(const char* message) { last_error = message; }

__attribute__((weak)) const char* TVMGetLastError(void) { return last_error; }

__attribute__((weak)) void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint, int dtype_bits_hint) {
    (void)device_type; (void)device_id; (void)dtype_code_hint; (void)dtype_bits_hint;
    return malloc((size_t)nbytes);
}

__attribute__((weak)) int TVMBackendFreeWorkspace(int device_type, int device_id, void* ptr) {
    (void)device_type; (void)device_id;
    free(ptr);
    return 0;
}
"""


def support_files(sources: Iterable[str]) -> dict[str, str]:
    """The headers for sources of external compilers, and the functions of the runtime that they call, as C files by name."""
    used = any(name in text for text in sources for name in SUPPORT_NAMES)
    return {**HEADERS, **({"external_support.c": _SUPPORT} if used else {})}


__all__ = ["HEADERS", "SUPPORT_NAMES", "support_files"]
