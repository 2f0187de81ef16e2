"""Small files in the documented formats of the sets of which no copy could be had."""

from __future__ import annotations

import io

import numpy as np
import scipy.io

ROWS = 6


def three_d_road() -> bytes:
    rows = [f"{144552912 + at // 2},9.{3498486 + at},56.7408757,17.0{at}" for at in range(ROWS)]
    return "\n".join(rows).encode()


def slices() -> bytes:
    header = ",".join(["patientId", *(f"value{at}" for at in range(384)), "reference"])
    rows = [
        ",".join([str(at // 2), *(f"{(at * 7 + c) % 5 / 4}" for c in range(384)), f"{21.8 + at}"])
        for at in range(ROWS)
    ]
    return "\r\n".join([header, *rows, ""]).encode()


def song() -> bytes:
    rows = [
        ",".join([str(2001 - at), *(f"{at * 1.5 - c:.5f}" for c in range(90))])
        for at in range(ROWS)
    ]
    return "\n".join(rows).encode()


def buzz() -> bytes:
    rows = [",".join([*(f"{at + c}.0" for c in range(77)), f"{at * 0.5}"]) for at in range(ROWS)]
    return "\n".join(rows).encode()


def house_electric() -> bytes:
    """Two rows more than are complete: one with question marks, one that ends after them."""
    names = "Global_active_power;Global_reactive_power;Voltage;Global_intensity;"
    names += "Sub_metering_1;Sub_metering_2;Sub_metering_3"
    rows = [f"16/12/2006;17:2{at}:00;{4.2 + at};0.418;234.84;18.4;0;1;17" for at in range(ROWS)]
    rows[3:3] = ["28/4/2007;00:21:00;?;?;?;?;?;?;", "28/4/2007;00:22:00;?;?;?;?;?;?;"]
    return "\r\n".join([f"Date;Time;{names}", *rows]).encode()


def miniboone() -> bytes:
    header = "\t".join(["", *(f"f{at}" for at in range(1, 51)), "clase"])
    rows = [
        "\t".join([str(at), *(f"{at / 10 + c}" for c in range(50)), str(at % 2)])
        for at in range(1, ROWS + 1)
    ]
    return "\n".join([header, *rows, ""]).encode()


def kuka() -> bytes:
    names = [f"x{at}" for at in range(1, 29)] + [f"torque{at}" for at in range(1, 8)]
    rows = [",".join(f"{at + c / 100}" for c in range(35)) for at in range(ROWS)]
    return "\n".join([",".join(names), *rows]).encode()


def mujoco() -> bytes:
    names = [f"x{at}" for at in range(1, 24)] + [f"y{at}" for at in range(1, 10)]
    rows = [",".join(f"{at + c / 100}" for c in range(32)) for at in range(ROWS)]
    return "\n".join([",".join(names), *rows]).encode()


def prepared(width: int) -> bytes:
    """As uci_datasets has its tables: no header, five digits, the target last."""
    rows = [
        ",".join([*(f"{-at - c * 1e-5:.5f}" for c in range(width)), f"{at + 0.5:.5f}"])
        for at in range(ROWS)
    ]
    return "\n".join([*rows, ""]).encode()


def sarcos(rows: int) -> bytes:
    file = io.BytesIO()
    scipy.io.savemat(file, {"sarcos_inv": np.arange(rows * 28.0).reshape(rows, 28)})
    return file.getvalue()
