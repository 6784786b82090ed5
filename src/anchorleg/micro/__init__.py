"""For machines without an operating system: the Model Library Format, and projects that build with a cross compiler."""
from .model_library_format import export_model_library_format, read_model_library_format
from .project import BOARDS, Project, create_project

__all__ = ["BOARDS", "Project", "create_project", "export_model_library_format", "read_model_library_format"]
