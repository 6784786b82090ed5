from .build_info import libinfo  # noqa: F401
