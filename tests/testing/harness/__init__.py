"""The kernels and tools that tests need built, and QEMU."""
