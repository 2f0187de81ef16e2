"""Waiting for processes to end."""

from __future__ import annotations

import time

import psutil


def until_gone(pids: list[int], limit: float = 5.0) -> None:
    end = time.monotonic() + limit
    while any(running(pid) for pid in pids):
        assert time.monotonic() < end, "a process outlived its run"
        time.sleep(0.05)


def running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
