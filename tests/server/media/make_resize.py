#!/usr/bin/env python3
"""Writes resize_golden.inc: what Pillow's BILINEAR makes of a small grey picture of floats.

    python tests/server/media/make_resize.py > tests/server/media/resize_golden.inc
"""
import numpy as np
from PIL import Image

WIDTH, HEIGHT = 13, 9
SIZES = ((13, 9), (5, 4), (20, 3), (7, 25), (1, 1), (12, 8))

pixel = np.array([[(x * 37 + y * 101 + x * y * 7) % 256 for x in range(WIDTH)]
                  for y in range(HEIGHT)], np.float32)
print("/* Made by make_resize.py with Pillow: X(width, height, values). */")
for width, height in SIZES:
    got = np.asarray(Image.fromarray(pixel).resize((width, height), Image.BILINEAR))
    values = [f"{v:.4f}f" for v in got.ravel()]
    print(f"X({width}, {height},")
    for i in range(0, len(values), 9):
        end = ")" if i + 9 >= len(values) else ","
        print("  " + ", ".join(values[i:i + 9]) + end)
