"""Process-wide defaults: double precision, and compiled code kept between runs."""

import os

import jax
import platformdirs


def configure() -> None:
    """Turn on float64 and the persistent compilation cache.

    `TUTELAGE_CACHE=off` turns the cache off, `TUTELAGE_CACHE=folder` moves it.
    """
    jax.config.update("jax_enable_x64", True)
    folder = os.environ.get("TUTELAGE_CACHE", "")
    if folder.lower() == "off" or getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    folder = folder or os.path.join(platformdirs.user_cache_dir("tutelage"), "compiled")
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
