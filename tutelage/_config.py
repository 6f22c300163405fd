"""Process-wide defaults: double precision, and compiled code kept between runs."""

import os
import warnings

import jax
import platformdirs


def configure() -> None:
    """Turn on float64 and the persistent compilation cache.

    `TUTELAGE_CACHE=off` turns the cache off, `TUTELAGE_CACHE=folder` moves it.
    """
    jax.config.update("jax_enable_x64", True)
    folder = cache_folder("compiled")
    if folder is None or getattr(jax.config, "jax_compilation_cache_dir", None) or not _usable(folder):
        return
    jax.config.update("jax_compilation_cache_dir", folder)
    # JAX writes entries in place: one that another process is writing, or was killed at, is read as damaged. The
    # program is compiled then, and nothing is lost.
    warnings.filterwarnings("ignore", "Error reading persistent compilation cache entry", UserWarning)
    # However small: a run has dozens of programs of some hundredths of a second, which together are seconds.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _usable(folder: str) -> bool:
    """Whether a cache can be there. JAX would warn of every program that it cannot read or keep; nothing is lost."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def cache_folder(part: str) -> str | None:
    """Where things are kept that can be made again; None if nothing is to be kept."""
    given = os.environ.get("TUTELAGE_CACHE", "")
    if given.lower() == "off":
        return None
    # A folder that is given is that of compiled code itself; anything else lies beside it.
    if given:
        return given if part == "compiled" else os.path.join(given, part)
    return os.path.join(platformdirs.user_cache_dir("tutelage"), part)
