"""Errors to plant in the evidence of claims: each takes what it replaces, and perhaps the honest evidence."""

import dataclasses


def times(factor):
    """A method whose result, or each part of it, is multiplied."""
    return _changed(lambda part: factor * part)


def plus(amount):
    """A method to whose result, or each part of it, something is added."""
    return _changed(lambda part: part + amount)


def _changed(change):
    def plant(old, *_):
        def new(*args):
            result = old(*args)
            return tuple(map(change, result)) if isinstance(result, tuple) else change(result)

        return new

    return plant


def each(change):
    """Change every entry of a dictionary, or of a tuple."""

    def plant(old, *_):
        return {key: change(value) for key, value in old.items()} if isinstance(old, dict) else tuple(map(change, old))

    return plant


def replaced(**changes):
    """A dataclass with some fields computed anew from itself."""
    return lambda old, *_: dataclasses.replace(old, **{name: make(old) for name, make in changes.items()})
