"""Help says what each option is when it is left out."""

import argparse

from tinytf.support.help_texts import ShowDefaults


def test_defaults_are_shown_where_they_say_something():
    parser = argparse.ArgumentParser(formatter_class=ShowDefaults)
    parser.add_argument("names", nargs="*", help="which ones")
    parser.add_argument("--steps", type=int, default=30, help="of training")
    parser.add_argument("--rate", type=float, default=0.0, help="of learning")
    parser.add_argument("--device", help="default: the best here")
    parser.add_argument("--pool", default=4, help="batches (default: 4, once 50)")
    parser.add_argument("--resume", action="store_true", help="go on")
    shown = [" ".join(line.split()) for line in parser.format_help().splitlines()]
    assert "names which ones" in shown
    assert "--steps STEPS of training (default: 30)" in shown
    assert "--rate RATE of learning (default: 0.0)" in shown
    assert "--device DEVICE default: the best here" in shown
    assert "--pool POOL batches (default: 4, once 50)" in shown
    assert "--resume go on" in shown
