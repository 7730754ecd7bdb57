"""The kit that plugin authors test with: a kernel without discovery, and checks of what a plugin promises."""

from .conformance import Fault, check_plugin
from .kit import Kit, kernel_with

__all__ = ["Fault", "Kit", "check_plugin", "kernel_with"]
