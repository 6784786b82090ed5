"""Tasks: a tunable template with arguments; and the contexts that say which configuration to use."""
from __future__ import annotations

from .dispatcher import ApplyConfig, ApplyFixedConfig, ApplyHistoryBest, DispatchContext, FallbackContext
from .extraction import TaskExtractEnv, extract_from_multiple_program, extract_from_program
from .space import ConfigEntity, ConfigSpace, FallbackConfigEntity
from .task import TASK_TABLE, Task, TaskTemplate, args_to_workload, create, get_config, serialize_args, template
from .topi_integration import get_workload, register_topi_compute, register_topi_schedule

__all__ = ["ApplyConfig", "ApplyFixedConfig", "ApplyHistoryBest", "ConfigEntity", "ConfigSpace", "DispatchContext", "FallbackConfigEntity",
           "FallbackContext", "TASK_TABLE", "Task", "TaskExtractEnv", "TaskTemplate", "args_to_workload", "create",
           "extract_from_multiple_program", "extract_from_program", "get_config", "get_workload",
           "register_topi_compute", "register_topi_schedule", "serialize_args", "template"]
