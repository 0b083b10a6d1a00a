"""How far apart two colours look, to whom: CIEDE2000 after a simulation of colour blindness.

Sources: Machado, Oliveira and Fernandes 2009 (the matrices, severity 1); Sharma, Wu and Dalal 2005
(the formula, and the pairs that test it).
"""

import numpy as np
from matplotlib.colors import to_rgb

EYES = {
    "usual": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                            [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip
_TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                    [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip


def linear(colour):
    """A colour's light: its channels without the screen's gamma."""
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """WCAG's ratio of two colours' luminances, 1 to 21."""
    low, high = sorted(0.05 + linear(colour) @ _TO_XYZ[1] for colour in (one, other))
    return high / low


def lab(colour, eye="usual"):
    """CIELAB of a colour as this eye sees it."""
    xyz = _TO_XYZ @ np.clip(EYES[eye] @ linear(colour), 0, 1) / _TO_XYZ.sum(axis=1)
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def apart(one, other, eye="usual"):
    """ΔE2000 of two colours as this eye sees them."""
    return delta_e(lab(one, eye), lab(other, eye))


def delta_e(first, second):
    """CIEDE2000 of two colours in CIELAB."""
    (l1, a1, b1), (l2, a2, b2) = first, second
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    dl, dc = l2 - l1, c2 - c1
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2)
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    hue = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    t = 1 + sum(
        weight * np.cos(np.radians(times * hue + shift))
        for weight, times, shift in ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.20, 4, -63))
    )
    sl = 1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2)
    sc, sh = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    rotation = -2 * np.sqrt(chroma**7 / (chroma**7 + 25**7))
    rotation *= np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    parts = dl / sl, dc / sc, dh / sh
    return float(np.sqrt(parts[0] ** 2 + parts[1] ** 2 + parts[2] ** 2
                         + rotation * parts[1] * parts[2]))  # fmt: skip
