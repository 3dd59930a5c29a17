"""tf.config: devices, threads, memory."""
import collections
import os

import tidemark as td

from .function import functions_run_eagerly, run_functions_eagerly  # noqa: F401

PhysicalDevice = collections.namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = collections.namedtuple("LogicalDevice", ["name", "device_type"])


def list_physical_devices(device_type=None):
    return [PhysicalDevice("/physical_device:CPU:0", "CPU")] if device_type in (None, "CPU") else []


def list_logical_devices(device_type=None):
    return [LogicalDevice("/device:CPU:0", "CPU")] if device_type in (None, "CPU") else []


get_visible_devices = list_physical_devices


def set_visible_devices(devices, device_type=None):
    return None


class LogicalDeviceConfiguration:
    """memory_limit: MiB that all tensors together may take."""

    def __init__(self, memory_limit=None, **options):
        self.memory_limit = memory_limit


def set_logical_device_configuration(device, logical_devices):
    for each in logical_devices:
        if each.memory_limit is not None:
            td.memory.set_limit(int(each.memory_limit) * 2**20)


class threading:
    """tf.config.threading. The number of threads is read once: TIDEMARK_THREADS in the environment."""

    @staticmethod
    def get_inter_op_parallelism_threads():
        return 0

    @staticmethod
    def get_intra_op_parallelism_threads():
        return int(os.environ.get("TIDEMARK_THREADS") or 0)

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads):
        return None

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads):
        os.environ.setdefault("TIDEMARK_THREADS", str(num_threads))


class experimental:
    """tf.config.experimental."""

    VirtualDeviceConfiguration = LogicalDeviceConfiguration
    list_physical_devices = staticmethod(list_physical_devices)

    @staticmethod
    def get_memory_info(device="CPU:0"):
        """Bytes of live tensors, now and at the most since reset_memory_stats."""
        return {"current": int(td.memory.current()), "peak": int(td.memory.peak())}

    @staticmethod
    def reset_memory_stats(device="CPU:0"):
        td.memory.reset_peak()

    @staticmethod
    def get_memory_usage(device="CPU:0"):
        return int(td.memory.current())

    @staticmethod
    def set_memory_growth(device, enable):
        return None

    @staticmethod
    def enable_op_determinism():
        """Nothing to do: every op gives the same bits for any number of threads."""

    @staticmethod
    def enable_tensor_float_32_execution(enabled):
        return None


class optimizer:
    """tf.config.optimizer."""

    @staticmethod
    def set_jit(enabled):
        return None

    @staticmethod
    def get_jit():
        return ""
