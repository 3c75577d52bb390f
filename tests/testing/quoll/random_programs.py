"""Random programs of calls and branches, as short text."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Assembly of functions f0.. that call lower ones, loop, branch, tail-call and stop."""
    count = draw(st.integers(1, 5))
    text = []
    for i in range(count):
        size = draw(st.integers(1, 5))
        body = [f".type f{i}, %function", f"f{i}: push {{lr}}"]
        for j in range(size):
            body.append(f"f{i}_{j}: cmp r0, #{j}")
            options = ["loop", "skip", "stop", "return", "exit", "spin"]
            options += ["call", "maybe", "tail"] * (i > 0)
            kind = draw(st.sampled_from(options))
            label = f"f{i}_{draw(st.integers(0, size - 1))}"
            callee = f"f{draw(st.integers(0, max(i - 1, 0)))}"
            body.append(
                {
                    "loop": f"bne {label}",
                    "skip": f"b {label}",
                    "stop": ".word 0xe7f000f0",
                    "return": "popeq {pc}",
                    "exit": "movseq pc, lr",
                    "spin": f"beq {label}\n bl f{i}_spin\n f{i}_{j}x: nop",
                    "call": f"bl {callee}",
                    "maybe": f"bleq {callee}",
                    "tail": f"bne f{i}_{j}x\n pop {{lr}}\n b {callee}\n f{i}_{j}x: nop",
                }[kind]
            )
        body.append(
            draw(st.sampled_from(["pop {pc}", "movs pc, lr", "b .", f"pop {{lr}}\n b f{i}"]))
        )
        body.append(f".type f{i}_spin, %function\nf{i}_spin: b .")
        text.append("\n".join(body))
    return f"main: b f{count - 1}\n" + "\n".join(text)
