"""The first cell of every chapter."""

import random


def setup(seed=0):
    """Seed every generator, switch on the house style, and return the device to use.

    The device is that of `tinytf.support.device.choose_device`: the TINYTF_DEVICE environment
    variable (cpu, cuda or mps) if set, otherwise the best one present. Prints nothing, so that
    a chapter reads the same on every machine. For the same reason a GPU computes convolutions in
    full float32, as it does matrix products, and not in TF32, whose mantissa has 10 bits. The
    process in which `check` runs answers begins to load meanwhile.
    """
    import numpy
    import torch

    from tinytf.support.device import choose_device
    from tinytf.viz.spoken import speak_in_notebooks
    from tinytf.viz.style import use_house_style
    from tinytf_course.worker import start

    start()
    torch.backends.cudnn.allow_tf32 = False
    use_house_style()
    speak_in_notebooks()
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)
    return choose_device()
