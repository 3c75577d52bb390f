"""The meaning of each error code: cause, example and cure, for ``wcet explain`` and the site."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["EXPLANATIONS", "Explanation"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """One code and its exit status; ``example`` is a message."""

    code: str
    title: str
    status: int
    cause: str
    example: str
    cure: str

    def paragraphs(self) -> Iterator[str]:
        """The text of ``wcet explain``, by paragraph."""
        yield f"{self.code}: {self.title} (exit status {self.status})"
        yield f"cause    {self.cause}"
        yield f"example  {self.example}"
        yield f"cure     {self.cure}"


EXPLANATIONS = {
    one.code: one
    for one in (
        Explanation(
            "E101", "the command line", 2,
            "The command line names something that does not exist, two options contradict each "
            "other, or an output cannot be written.",
            "no entry 'syscal': there is no symbol syscal",
            "See 'wcet COMMAND --help'. The message names known ones.",
        ),
        Explanation(
            "E102", "a file", 3,
            "A file is unsuitable: no ELF, of another machine or byte order, no platform file, no "
            "baseline, no recording; or it cannot be read.",
            "kernel.elf: not an ELF file",
            "Give the file that the linker wrote, for 32-bit ARM, little-endian; or name the board "
            "with --platform.",
        ),
        Explanation(
            "E103", "a fact", 4,
            "A line of a facts file cannot be read, contradicts another, or names a place that "
            "does not exist after a rebuild.",
            "kernel.facts:3: there is no code from sched.c:412",
            "The message offers places near by. docs/facts.md ('wcet help facts') has the words.",
        ),
        Explanation(
            "E104", "control flow", 5,
            "The binary alone does not determine the targets of a branch or the depth of a "
            "recursion, or it uses an unsupported construct.",
            "0xf0010234 <dispatch+0x14>: the targets of this jump are unknown",
            "State it: 'targets of PLACE are A, B', 'recursion of F at most N'; or let paths end "
            "before: 'path must end at PLACE'. 'wcet analyse --suggest-facts FILE' lists all.",
        ),
        Explanation(
            "E105", "a loop without a bound", 6,
            "No bound of the loop was proved. Its iterations may depend on memory with unknown "
            "contents.",
            "0xf0010c48 <walk+0x48> list.c:37: this loop has no bound",
            "State it: 'loop PLACE at most N'. Without a known number, N may be a parameter. "
            "'wcet loops' shows the reason.",
        ),
        Explanation(
            "E106", "a loop whose solver failed", 8,
            "The solver that was to prove the bound is missing, was killed, or took too long.",
            "0xf0010c48 <walk+0x48>: NuSMV is missing",
            "Run 'wcet setup', raise --time-limit, or prove with --checker smt.",
        ),
        Explanation(
            "E107", "the board or the core", 7,
            "The description of the core or board lacks a figure that this code needs. No latency "
            "has a default.",
            "the core has no timing for this instruction",
            "Add the row with its source in the manual, or name another platform.",
        ),
        Explanation(
            "E108", "a solver", 8,
            "NuSMV, HiGHS, CBC or another solver is missing, failed, or did not prove its result.",
            "NuSMV is missing, so no loop bound can be proved",
            "Run 'wcet setup'; or choose another one with --solver or --checker.",
        ),
        Explanation(
            "E109", "facts that exclude every path", 9,
            "Under the facts given no execution is left, so there is nothing to bound.",
            "the facts exclude every path of syscall",
            "Remove facts until it passes. 'wcet check-facts' tests them on a recording.",
        ),
        Explanation(
            "E110", "resources", 10,
            "The system, or a limit of the shell, gives no more memory, files, processes, disk "
            "space or processor time.",
            "out of resources: memory (ulimit -v)",
            "Raise the limit, or free some. --share always needs less memory.",
        ),
        Explanation(
            "E111", "an execution outside of the graph", 1,
            "A recorded execution takes an edge that the graph does not have: the recording is of "
            "another binary, or the graph is incomplete.",
            "0xf0010234: executed, but not in the graph",
            "Record the very ELF that is analysed. If it is the same one, report a defect.",
        ),
        Explanation(
            "E112", "a fact that an execution refutes", 4,
            "A recorded execution contradicts a fact.",
            "kernel.facts:3: 'exclude PLACE': an execution does it",
            "Remove the fact, or find out why the recording is no valid execution.",
        ),
        Explanation(
            "E113", "another distribution's package", 3,
            "Another package named cache, ilp, pipeline, loopbounds, quoll or wcet is found before "
            "Quoll's, or was installed over it.",
            "lib/cache/__init__.py is found before the package cache of quoll",
            "Install Quoll by itself: 'pipx install quoll', or a virtual environment of its own; "
            "see that PYTHONPATH names no folder with such a package.",
        ),
        Explanation(
            "E114", "the build", 11,
            "The command that wcet.toml names as 'build' failed, so there may be no kernel, or an "
            "old one.",
            "the build of wcet.toml failed, status 2: make kernel",
            "Repair the build; its output stands before the message. A kernel that is named on the "
            "command line is not built.",
        ),
        Explanation(
            "E115", "a bound below an execution", 12,
            "An execution of this kernel, which an earlier 'wcet replay' or 'wcet refine' has "
            "stored, takes longer than the bound of its entry. The bound is not valid.",
            "entry syscall: an execution takes 41,350 cycles and the bound is 39,871 (recording "
            "steer.trace): the bound is not valid",
            "Find the wrong fact: 'wcet check-facts' on the same recording; else report a defect. "
            "--no-cache ignores stored executions.",
        ),
    )
}  # fmt: skip
