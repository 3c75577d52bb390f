"""The constants of slices and of the search for bounds, a line each: ``VALUE  # unit: reason``.

No proof depends on them: with a smaller value a search gives up earlier, or tries fewer candidates.
In the shipped kernel (kzm-after) no search takes more than 26,000 steps of the SMT solver.
"""

from __future__ import annotations

__all__: list[str] = []  # names are read as attributes of the module

# Slices: larger values are unknown words, larger conditions free choices
JOINED_NODES = 40  # nodes between a join and its dominator: beyond, the join is a free choice
LARGE_VALUE = 400  # terms of a value: beyond, it is an unknown word
LARGE_CONDITION = 600  # terms of a condition: beyond, the branch is a free choice
SLICE_CELLS = 24  # cells that change: beyond, they are any word in each iteration
WAY_IN = 60  # dominators above a loop: their conditions hold where it is entered
WAY_IN_CONDITIONS = 40  # conditions on the way in: a model gets the nearest ones about its words
WAY_IN_TERMS = 2000  # terms of one of them: beyond, it is left out
WITNESS_TRIES = 400  # words tried: some must satisfy the conditions that the model lacks (rule 39)
TABLE_WORDS = 256  # addresses of a constant table: beyond, a load from it is an unknown word
TABLE_RUNS = 32  # runs of equal words in a table: each is a choice in the term of the load
TRIP_CONDITION = 100  # terms of a condition on iterations of a loop around: beyond, it is left out
FIRST_VISITS = 4  # visits of a loop: each has conditions of its own, and the last one too
LISTED_VISITS = 16  # visits of a loop: the words of a cell are listed, a choice each
SHARING_CONTEXTS = 3  # contexts of a loop: from so many on, one proof for any caller pays
SHARED_MOST = 64  # iterations in such a proof: loops over arguments run longer, for each caller
CALL_NODES = 4000  # nodes of a call analysed for any caller: more gain little
FRAMES = 1_000_000  # frames of the Python interpreter: values are followed through as many blocks

# Simplification
SUBSTITUTIONS = 2  # iterations of substituting constraints into each other: more change little
NEW_SYMBOLS = 2  # symbols that a constraint may add: beyond, it says little about the loop
SMALL_CONSTRAINT = 15  # terms: a larger one is not substituted, and is no candidate
HARD_TERMS = 60  # terms: a larger condition or value is hard for the solvers
CHOICE_TERMS = 15  # terms of a choice between initial values: beyond, it is any word
CHOSEN_WORD_TERMS = 4  # terms of a word in such a choice: beyond, it is any word

# Concrete executions
EXECUTED_INSTRUCTIONS = 20_000_000  # instructions of a concrete execution: it may be endless
ATTEMPTED_INSTRUCTIONS = 1_000_000  # the same, if unknown memory may decide: a second or two
TRACED_INSTRUCTIONS = 1_000_000  # of an execution on the data cache, too: a second more
FOLLOWED_INSTRUCTIONS = 1_000_000  # of all executions together: five seconds
FOLLOWED_APART = 150_000  # of these, at places with several states: a second or two
FREELY_APART = 100_000  # of these: beyond, few states of a place are kept apart
FOLLOWED_AGAIN = 3  # times: executions are followed with further bounds of single loops
FOLLOWED_STATES = 64  # states of a place: beyond, they are joined
FEWER_STATES = 4  # states of a place: if executions are too long in more of them
JOINED_STATES = 16  # states of a place that are left when they are joined: by few words
APART_BY_MEMORY = 16  # states of a place: beyond, few words of memory tell them apart
MODES = 8  # states of a place: these few words tell so many apart
PARTED_STATES = 8  # states in a block: unknown conditions part no more of them
PARTED_INSTRUCTIONS = 80_000  # of the further ones of these states: a second or two
VAIN_PARTINGS = 32  # at an instruction that told no numbers apart: it parts no more
MONOTONE_NODES = 300  # nodes of a loop: words that only grow or fall are followed in it
MONOTONE_VISITS = 4  # of a node: then growing sums are taken to have no end
REPEATED_ITERATIONS = 16  # of a loop: from here on, its state is compared with the one before
ENDLESS_ITERATIONS = 512  # of a loop that an unknown word may end: it needs a bound beyond
FOLLOWED_ITERATIONS = 4096  # of a loop without a known bound: it may be endless
FORGOTTEN_BYTES = 4096  # bytes in which a store of unknown address forgets words: one page
LOADED_PLACES = 32  # addresses of a load: beyond, it is an unknown word
EXECUTED_OFTEN = 64  # executions of a block: from so many on, compiling it pays
REPLAYED_INSTRUCTIONS = 400_000  # instructions of an execution that refutes a fact: a second or two
REFUTING_VALUES = 20_000  # values of a slice made to refute a fact: beyond, it is not refuted
REFUTING_CONTEXTS = 8  # contexts of a loop sliced to refute a fact: further ones are alike
ACTIVATIONS = 4096  # activations at a time: no supergraph has room for a greater depth

# All strategies
HUGE = 1 << 30  # executions: no proof is expected of this bound; candidates assume it
USEFUL = 1 << 22  # executions: a thousandth of a word's range; larger bounds are too loose
INDUCTION_DEPTH = 1  # states: nearly all bounds are inductive over one transition
DEEPER = (INDUCTION_DEPTH, 4)  # states: tried in this order; a few iterations more help short loops

# Runs of a model
RUN_STEPS = 1 << 16  # executions of one run: longer loops are decided without their whole run
ALL_STEPS = 1 << 18  # executions of all runs of one exploration: four long runs
MOST_RUNS = 120  # runs of one exploration: more refute few candidates that induction would retain
RANDOM_STARTS = 600  # initial states drawn: constraints forbid most of them
RUN_ENDS = 48  # states recorded at the start and at the end of a run: candidates must hold in them
INPUT_POLICIES = 3  # ways to choose inputs: corners, random until the loop repeats, random
INPUT_TRIES = 12  # random inputs tried in one step: the first that repeats the loop is taken

# Hill climbing
CLIMBED_RUNS = 3  # runs improved: the longest random ones
LONG_RUN = 1 << 12  # executions: a run that is long enough
CLIMBING_STEPS = 1 << 16  # executions of all runs together: as many as in one long run

# Candidate invariants
MOST_CANDIDATES = 80  # candidates of one model: queries grow with their number
WRAPPING_BITS = 16  # bits: a wider word does not wrap within a useful bound
FILTERING_RUNS = 4  # runs evaluated first: they refute most candidates
COMPARED_PAIRS = 12  # compared terms: the first ones decide whether the loop repeats
PAIRED_VARIABLES = 6  # variables compared with each other: pairs grow with the square
LONGEST_STRIDE = 1 << 20  # bytes: a longer step comes from a wrap
GOING_ON_CONDITIONS = 3  # conditions to repeat: each one multiplies the candidates about shifts

# Bounded model checking: is there a third execution?
TWO_EXECUTIONS = 2  # executions: many loops of wrappers exit after one or two
TWO_DEPTH = 3  # states: the third execution is seen within as many

# Houdini, and the search for the smallest inductive bound
LIKELY_BOUNDS = 3  # bounds tried after the longest run: the next constants of the model
LONG_LOOP_SHARE = 4  # divisor of the steps: a loop with runs of RUN_STEPS is bounded soon, or never

# Linear phases
PHASES = 32  # phases: a disjunct each in the invariant, and terms grow with the square

# Distance of two ends
DISTANCE_QUERIES = 120  # queries: of initial states alone, a millisecond each
DISTANCE_STEPS = 120_000  # steps in all: as many as all other strategies have
DISTANCE_QUERY_SHARE = 6  # divisor of these steps for one query: a hard term leaves time for others
DISTANCE_TERMS = 6  # terms: the first distances among the candidates
NEARLY = 8  # divisor of the longest run: a bound that exceeds it by less is good enough
LENGTHENINGS = 2  # searches for longer runs: the second one confirms the first
FAR_RUN = 1 << 12  # executions: from here on Houdini is slow, so distances come first
FAR_START = 60  # terms in initial values: from here on, too

# Explicit states
LISTED_STATES = 512  # states: a disjunct each in the invariant
LISTED_INPUT_BITS = 8  # bits of inputs: 256 successors of each state
LISTED_START_BITS = 9  # bits of parameters: at most LISTED_STATES initial states
LISTED_STEPS = 1 << 16  # transitions: as many as in one long run

# Abstractions: a simpler model first
LOOSE = 16  # times the longest run: a larger bound may be due to the abstraction
LOWERING_SHARE = 8  # divisor of queries and steps: they lower a bound that is proved already
LOWERING_SECONDS_SHARE = 3  # divisor of the seconds for the same: room for a slow machine
ABSTRACT_SHARE = 4  # divisor of the steps: a more detailed model may follow
DETAILED_TERMS = 1200  # terms: a larger constraint is in no model

# Totals of triangular nests
STEEPEST = 16  # denominator of a slope: unrolled loops have 2, 4, 8 or 16
OUTER_ITERATIONS = USEFUL  # iterations of the outer loop: a sum over more is too loose

# Checkers
PROMPT_SECONDS = 1  # seconds of NuSMV before the SMT solver proves: most proofs take 0.1

# Worker processes
WORKER_SLACK = 4  # times the seconds and the memory of a search: beyond it, something is wrong
