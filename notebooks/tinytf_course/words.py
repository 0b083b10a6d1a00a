"""Values and arguments in words, short enough for a line."""

import inspect
import numbers as kinds

import torch


def given(answer, arguments, named=None):
    """The arguments in words: `for x=[[1, 2]], num_heads=2`; large ones by their shape."""
    named = named or {}
    names = parameter_names(answer, len(arguments))
    words = [_argument(name, value) for name, value in zip(names, arguments, strict=True)]
    words += [_argument(name, value) for name, value in named.items()]
    return "for " + ", ".join(words) if words else "without arguments"


def _argument(name, value):
    if isinstance(value, torch.Tensor):
        kind = "" if value.dtype in (torch.float32, torch.int64, torch.bool) else dtype_name(value)
        if 0 < value.numel() <= 12 and not value.is_meta:
            return f"{name}={short(value)}" + f" ({kind})" * bool(kind)
        return f"{name} of shape {tuple(value.shape)}" + f" ({kind})" * bool(kind)
    if isinstance(value, list | tuple | dict) and len(short(value)) > 90:
        return f"{name} ({described(value)})"
    return f"{name}={short(value)}"


def described(value):
    """What kind of thing it is: `a tensor of shape (2, 3)`, `a tuple of 2`."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, str):
        return f"the text {short(value)!r}"
    if value is None or isinstance(value, kinds.Number):
        return short(value)
    return f"a {type(value).__name__}"


def short(value, digits=4):
    """A small value as text: [[1, 0.33], [0, 1]]; functions and modules by their names."""
    value = value.tolist() if isinstance(value, torch.Tensor) else value
    if isinstance(value, list | tuple):
        inside = ", ".join(short(part, digits) for part in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{short(k)}: {short(v, digits)}" for k, v in value.items()) + "}"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, torch.nn.Module) or callable(value):
        return getattr(value, "__name__", type(value).__name__).strip("_<>")
    text = str(value)
    return text if len(text) <= 200 else text[:200] + "…"


def quoted(value):
    """`short`, with a text in quotes."""
    return repr(short(value)) if isinstance(value, str) else short(value)


def parameter_names(answer, count):
    """The names of an answer's first parameters; `argument 3` where it has none."""
    named = list(getattr(answer, "parameters", ()))
    if not named:
        try:
            named = list(inspect.signature(answer).parameters)
        except (TypeError, ValueError):
            named = []
    return (named + [f"argument {i + 1}" for i in range(len(named), count)])[:count]


def which(names, at):
    """`x`, or `maps[0]` for a part of an argument."""
    first, *rest = at
    return f"`{names[first]}{''.join(f'[{part!r}]' for part in rest)}`"


def dtype_name(x):
    """`float32`."""
    return str(x.dtype).removeprefix("torch.")


def apart(got, expected):
    """`1.5, expected 2`, in as many digits as it takes to see that they differ."""
    for digits in (4, 6, 8, 12):
        pair = short(got, digits), short(expected, digits)
        if pair[0] != pair[1]:
            break
    return f"{pair[0]}, expected {pair[1]}"
