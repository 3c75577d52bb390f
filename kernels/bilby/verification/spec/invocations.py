# SPDX-License-Identifier: BSD-2-Clause
"""Operations on objects: which there are, by kind of capability and label."""

from __future__ import annotations

from kernels.bilby.verification.spec import (
    cnodes,
    contexts,
    lines,
    numbers,
    spaces,
    threads,
    timing,
    untyped,
)
from kernels.bilby.verification.spec.invocation import Invocation, Refused
from kernels.bilby.verification.spec.layout import API

OPERATIONS = {
    ("asid_control", API["LABEL_ASID_MAKE_POOL"]): numbers.make_pool,
    ("asid_pool", API["LABEL_ASID_ASSIGN"]): numbers.assign,
    ("untyped", API["LABEL_UNTYPED_RETYPE"]): untyped.retype,
    ("device", API["LABEL_UNTYPED_RETYPE"]): untyped.retype_device,
    ("cnode", API["LABEL_CNODE_COPY"]): cnodes.copy,
    ("cnode", API["LABEL_CNODE_MINT"]): cnodes.mint,
    ("tcb", API["LABEL_TCB_CONFIGURE"]): threads.configure,
    ("tcb", API["LABEL_TCB_WRITE_REGISTERS"]): threads.write_registers,
    ("tcb", API["LABEL_TCB_RESUME"]): threads.resume,
    ("tcb", API["LABEL_TCB_SET_PRIORITY"]): threads.set_priority,
    ("page_table", API["LABEL_PAGE_TABLE_MAP"]): spaces.map_table,
    ("frame", API["LABEL_FRAME_MAP"]): spaces.map_frame,
    ("irq_control", API["LABEL_IRQ_GET"]): lines.get_line,
    ("irq_handler", API["LABEL_IRQ_SET_NOTIFICATION"]): lines.set_notification,
    ("irq_handler", API["LABEL_IRQ_ACKNOWLEDGE"]): lines.acknowledge,
    ("irq_handler", API["LABEL_IRQ_CLEAR_NOTIFICATION"]): lines.clear_notification,
    ("cnode", API["LABEL_CNODE_MOVE"]): cnodes.move,
    ("cnode", API["LABEL_CNODE_MUTATE"]): cnodes.mutate,
    ("cnode", API["LABEL_CNODE_ROTATE"]): cnodes.rotate,
    ("cnode", API["LABEL_CNODE_DELETE"]): cnodes.delete_one,
    ("cnode", API["LABEL_CNODE_REVOKE"]): cnodes.revoke,
    ("cnode", API["LABEL_CNODE_RECYCLE"]): cnodes.recycle_one,
    ("tcb", API["LABEL_TCB_SUSPEND"]): threads.suspend_thread,
    ("frame", API["LABEL_FRAME_UNMAP"]): spaces.unmap,
    ("page_table", API["LABEL_PAGE_TABLE_UNMAP"]): spaces.unmap_one_table,
    ("frame", API["LABEL_FRAME_CLEAN"]): spaces.clean,
    ("frame", API["LABEL_FRAME_PUBLISH"]): spaces.clean,
    ("frame", API["LABEL_FRAME_ADDRESS"]): spaces.tell_address,
    ("tcb", API["LABEL_TCB_READ_REGISTERS"]): threads.read_registers,
    ("tcb", API["LABEL_TCB_UNCONFIGURE"]): threads.unconfigure,
    ("tcb", API["LABEL_TCB_BIND"]): threads.bind,
    ("tcb", API["LABEL_TCB_UNBIND"]): threads.unbind,
}


TIMED = {
    ("sched_control", API["LABEL_CONTEXT_CONFIGURE"]): contexts.configure,
    ("sched_control", API["LABEL_SYSTEM_CRITICALITY"]): contexts.set_level,
    ("context", API["LABEL_CONTEXT_BIND"]): contexts.bind,
    ("context", API["LABEL_CONTEXT_UNBIND"]): contexts.unbind,
    ("context", API["LABEL_CONTEXT_CONSUMED"]): contexts.tell_consumed,
    ("context", API["LABEL_CONTEXT_YIELD_TO"]): contexts.yield_to,
    ("tcb", API["LABEL_TCB_SET_CRITICALITY"]): timing.set_criticality,
    ("tcb", API["LABEL_TCB_SET_LIMITS"]): timing.set_limits,
    ("tcb", API["LABEL_TCB_SET_TIMEOUT"]): timing.set_timeout,
    ("tcb", API["LABEL_TCB_SAVE_CALLER"]): timing.save_caller,
    ("cnode", API["LABEL_CNODE_SWAP_CALLER"]): timing.swap_caller,
}  # only where time is a capability


def perform(call: Invocation) -> None:
    """Raises Refused with the error code of the API, or changes the state."""
    key = (call.cap.kind, call.label)
    operation = OPERATIONS.get(key)
    if call.kernel.time is not None:
        operation = TIMED.get(key, operation)
    if operation is None:
        raise Refused("ILLEGAL_OPERATION")
    operation(call)
