"""The ARM instruction set: decoding and semantics. Nothing outside knows an encoding."""
