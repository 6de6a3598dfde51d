"""The one file of C; everything else about the build is in pyproject.toml."""

from setuptools import Extension, setup

# optional: without a compiler, or one that this is not written for, the build goes on, and SciPy does the same (loops.py).
loops = Extension("oneclass._loops", ["src/oneclass/_loops.c"], extra_compile_args=["-O3"], py_limited_api=True, optional=True)
setup(ext_modules=[loops], options={"bdist_wheel": {"py_limited_api": "cp311"}})
