"""How the layout-bound operators are moved to a layout that a caller names (see ``ConvertLayout``).

A rule is ``(attrs, inputs, tinfos, desired_layouts) -> call`` and changes the layout attributes only; arguments are moved by
the pass.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ....ir.op import Op
from ....support.errors import ArgumentError
from ....tir.data_layout import Layout
from ...expr import Call
from ..op import register_convert_op_layout

Rule = Callable[[Any, Sequence[Any], Sequence[Any], Sequence[str]], Any]

# operator → data layout → the kernel layout that goes with it by default
_KERNELS = {
    "nn.conv1d": {"NCW": "OIW", "NWC": "WIO"},
    "nn.conv2d": {"NCHW": "OIHW", "NHWC": "HWIO", "HWNC": "HWOI"},
    "nn.conv3d": {"NCDHW": "OIDHW", "NDHWC": "DHWIO"},
    "nn.conv1d_transpose": {"NCW": "IOW", "NWC": "WOI"},
    "nn.conv2d_transpose": {"NCHW": "IOHW", "NHWC": "HWIO"},
    "nn.conv3d_transpose": {"NCDHW": "IODHW", "NDHWC": "DHWOI"},
    "nn.deformable_conv2d": {"NCHW": "OIHW", "NHWC": "HWIO"},
}
_POOLS = tuple(f"nn.{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for n in (1, 2, 3))
_WITH_LAYOUT = (*_POOLS, "nn.global_max_pool2d", "nn.global_avg_pool2d", "nn.upsampling", "image.resize1d", "image.resize2d", "image.resize3d",
                "vision.roi_align", "vision.roi_pool")


def _wanted(name: str, desired: Sequence[str], least: int) -> list[str]:
    layouts = [str(x) for x in desired]
    if len(layouts) < least:
        raise ArgumentError(f"ConvertLayout: {name} expects {least} layouts (of the data and of the kernel), got {layouts}")
    if layouts[0] == "default":
        raise ArgumentError(f"ConvertLayout: the data layout of {name} cannot be 'default'; name one, e.g. 'NHWC'")
    return layouts


def _is_depthwise(attrs: Any, tinfos: Sequence[Any]) -> bool:
    dims = tinfos[1].dims
    return attrs.groups > 1 and _axis(dims, attrs.kernel_layout, "I") == 1 and _axis(dims, attrs.kernel_layout, "O") == attrs.groups


def _axis(dims: Sequence[Any], layout: str, letter: str) -> Any:
    at = Layout(layout).index_of(letter)
    return dims[at] if 0 <= at < len(dims) else None


def _convolution(name: str) -> Rule:
    def convert(attrs: Any, inputs: Sequence[Any], tinfos: Sequence[Any], desired: Sequence[str]) -> Any:
        data, kernel = _wanted(name, desired, 2)[:2]
        packed = any(c.islower() for c in data)
        if packed and name == "nn.conv2d":
            return _packed(attrs, inputs, tinfos, data, kernel)
        if kernel == "default":
            kernel = _default_kernel(name, attrs, tinfos, data)
        changes = {"data_layout": data, "kernel_layout": kernel}
        if attrs.out_layout:
            changes["out_layout"] = data
        return Call(Op.get(name), inputs, attrs.replace(**changes))

    return convert


def _default_kernel(name: str, attrs: Any, tinfos: Sequence[Any], data: str) -> str:
    kernel = _KERNELS[name].get(data)
    if kernel is None:
        raise ArgumentError(f"ConvertLayout: {name} has no default kernel layout for data in {data!r}; give one, or one of the data "
                            f"layouts {', '.join(_KERNELS[name])}")
    return "HWOI" if name == "nn.conv2d" and data == "NHWC" and _is_depthwise(attrs, tinfos) else kernel


def _packed(attrs: Any, inputs: Sequence[Any], tinfos: Sequence[Any], data: str, kernel: str) -> Any:
    """A convolution over packed channels; None where channels do not fill the blocks."""
    if kernel == "default":
        raise ArgumentError(f"ConvertLayout: the kernel layout for data in {data!r} cannot be 'default'; name one, e.g. 'OIHW4o'")
    block, channels = Layout(data).factor_of("C"), _axis(tinfos[0].dims, attrs.data_layout, "C")
    outputs = _axis(tinfos[-1].dims, attrs.out_layout or attrs.data_layout, "C")
    if not all(isinstance(n, int) and n % block == 0 for n in (channels, outputs)):
        return None
    out = data if attrs.out_layout else ""
    changes = {"data_layout": data, "kernel_layout": kernel, "out_layout": out}
    if attrs.kernel_size is None:
        changes["kernel_size"] = tuple(_axis(tinfos[1].dims, attrs.kernel_layout, c) for c in "HW")
    return Call(Op.get("nn.contrib_conv2d_NCHWc"), inputs, attrs.replace(channels=outputs, **changes))


def _layout(name: str) -> Rule:
    def convert(attrs: Any, inputs: Sequence[Any], tinfos: Sequence[Any], desired: Sequence[str]) -> Any:
        wanted = _wanted(name, desired, 1)[0]
        changes = {"layout": wanted}
        if getattr(attrs, "out_layout", ""):
            changes["out_layout"] = wanted
        return Call(Op.get(name), inputs, attrs.replace(**changes))

    return convert


for _name in _KERNELS:
    register_convert_op_layout(_name, _convolution(_name))
for _name in _WITH_LAYOUT:
    register_convert_op_layout(_name, _layout(_name))
