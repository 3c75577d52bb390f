"""The constants of slices and of the search for bounds, a line each: ``VALUE  # unit: reason``.

None of them is part of a proof: a smaller one gives up earlier, or tries fewer candidates. Of the
shipped kernel (kzm-after) no search takes more than 26,000 steps of the SMT solver.
"""

from __future__ import annotations

__all__: list[str] = []  # names are read as attributes of the module

# Slices: larger values are unknown words, larger conditions free choices
JOINED_NODES = 40  # nodes between a join and its dominator: beyond, the join is a free choice
LARGE_VALUE = 400  # terms of a value: beyond, it is an unknown word
LARGE_CONDITION = 600  # terms of a condition: beyond, the branch is a free choice
SLICE_CELLS = 24  # cells that change: beyond, they are any word in each iteration
WAY_IN = 60  # dominators above a loop: their conditions hold where it is entered
WAY_IN_CONDITIONS = 40  # conditions on the way in that a model has: the first ones about its words
WAY_IN_TERMS = 2000  # terms of one of them: beyond, it is left out
WITNESS_TRIES = 400  # words tried for conditions: some words must satisfy those left out (rule 39)
TABLE_WORDS = 256  # addresses of a constant table: beyond, a load from it is an unknown word
TABLE_RUNS = 32  # runs of equal words in a table: each is a choice in the term of the load
TRIP_CONDITION = 100  # terms of a condition on iterations of a loop around: beyond, it is left out
FIRST_VISITS = 4  # visits of a loop that are told apart: later ones are any of the others
CALL_NODES = 4000  # nodes of one call by any caller: beyond, little is gained
FRAMES = 1_000_000  # frames of the interpreter: values are followed through as many blocks

# Simplification
SUBSTITUTIONS = 2  # iterations of substituting constraints into each other: more change little
NEW_SYMBOLS = 2  # symbols that a constraint may add: beyond, it says little about the loop
SMALL_CONSTRAINT = 15  # terms: a larger one is not substituted, and is no candidate
HARD_TERMS = 60  # terms: a larger condition or value is hard for the solvers
CHOICE_TERMS = 15  # terms of a choice between initial values: beyond, it is any word
CHOSEN_WORD_TERMS = 4  # terms of a word in such a choice: beyond, it is any word

# Concrete executions
EXECUTED_INSTRUCTIONS = 20_000_000  # instructions of a concrete execution: it ends some day
REPLAYED_INSTRUCTIONS = 400_000  # instructions of one that refutes a fact: a second or two
REFUTING_VALUES = 20_000  # values of a slice made to refute a fact: beyond, it is not refuted
REFUTING_CONTEXTS = 8  # contexts of a loop sliced for that: more are alike
ACTIVATIONS = 4096  # activations at a time: a larger depth is of no use to a supergraph

# All strategies
HUGE = 1 << 30  # executions: a bound that no proof is expected for; candidates may rely on it
USEFUL = 1 << 22  # executions: a thousandth of a word's range; a larger bound says nothing
INDUCTION_DEPTH = 1  # states: nearly all bounds are inductive over one transition
DEEPER = (INDUCTION_DEPTH, 4)  # states: tried in this order; a few iterations more help short loops

# Runs of a model
RUN_STEPS = 1 << 16  # executions of one run: longer loops are decided without their whole run
ALL_STEPS = 1 << 18  # executions of all runs of one exploration: four long runs
MOST_RUNS = 120  # runs of one exploration: more drop few candidates that induction keeps
RANDOM_STARTS = 600  # initial states drawn: constraints forbid most of them
RUN_ENDS = 48  # states recorded at the start of a run, and at its end: candidates hold in these
INPUT_POLICIES = 3  # ways of choosing inputs: corners, random until it goes on, random
INPUT_TRIES = 12  # random inputs tried in one step: the first that goes on is taken

# Hill climbing
CLIMBED_RUNS = 3  # runs improved: the longest of the random ones
LONG_RUN = 1 << 12  # executions: a run that is long enough
CLIMBING_STEPS = 1 << 16  # executions of all runs together: as one long run

# Candidate invariants
MOST_CANDIDATES = 80  # candidates of one model: queries grow with their number
WRAPPING_BITS = 16  # bits: a wider word does not wrap within a useful bound
FILTERING_RUNS = 4  # runs evaluated first: few candidates survive them
COMPARED_PAIRS = 12  # compared terms: the first ones decide whether a loop goes on
PAIRED_VARIABLES = 6  # variables compared with each other: pairs grow with the square
LONGEST_STRIDE = 1 << 20  # bytes: a longer step is a wrapped one
GOING_ON_CONDITIONS = 3  # conditions to go on: each one multiplies the candidates about shifts

# Bounded model checking: is there a third execution?
TWO_EXECUTIONS = 2  # executions: many loops of wrappers end after one or two
TWO_DEPTH = 3  # states: the third execution is seen within as many

# Houdini, and the search for the smallest inductive bound
LIKELY_BOUNDS = 3  # bounds tried after the longest run: the next constants of the model
LONG_LOOP_SHARE = 4  # part of the steps: a loop with runs of RUN_STEPS is bounded soon, or not

# Linear phases
PHASES = 32  # phases: a disjunct each in the invariant, and terms grow with the square

# Distance of two ends
DISTANCE_QUERIES = 120  # queries: of initial states alone, a millisecond each
DISTANCE_STEPS = 120_000  # steps in all: as much again as the other strategies have
DISTANCE_QUERY_SHARE = 6  # part of these steps for one query: one hard term leaves time for others
DISTANCE_TERMS = 6  # terms: the first distances among the candidates
NEARLY = 8  # part of the longest run: a bound larger by less is good enough
LENGTHENINGS = 2  # searches for longer runs: the second one confirms the first
FAR_RUN = 1 << 12  # executions: from here on Houdini is slow, so distances come first
FAR_START = 60  # terms in initial values: from here on, too

# Explicit states
LISTED_STATES = 512  # states: a disjunct each in the invariant
LISTED_INPUT_BITS = 8  # bits of inputs: 256 successors of each state
LISTED_START_BITS = 9  # bits of parameters: at most LISTED_STATES initial states
LISTED_STEPS = 1 << 16  # transitions: as one long run

# Abstractions: a simpler model first
LOOSE = 16  # times the longest run: a larger bound may be due to the abstraction
LOWERING_SHARE = 8  # part of the queries and steps: a bound is proved already, and may be lowered
LOWERING_SECONDS_SHARE = 3  # part of the seconds: the same, with room for a slow machine
ABSTRACT_SHARE = 4  # part of the steps: another model, with more details, may follow
DETAILED_TERMS = 1200  # terms: a larger constraint is in no model

# Totals of triangular nests
STEEPEST = 16  # denominator of a slope: unrolled loops have 2, 4, 8 or 16
OUTER_ITERATIONS = USEFUL  # iterations of the outer loop: a sum over more says nothing

# Worker processes
WORKER_SLACK = 4  # times the seconds and the memory of a search: beyond it, something is wrong
