"""Parameters as bytes, under the address users know; the format lives in :mod:`anchorleg.runtime.params`."""
from ..runtime.params import load_param_dict, save_param_dict

__all__ = ["load_param_dict", "save_param_dict"]
