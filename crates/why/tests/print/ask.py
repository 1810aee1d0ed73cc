# Run in gdb: goes to where `why print` is asked about, and writes down what gdb sees there.
import json
import os

import gdb

for setting in ["pagination off", "debuginfod enabled off", "confirm off", "print null-stop on"]:
    gdb.execute("set " + setting)
gdb.execute("handle SIGUSR1 nostop noprint pass")


def variables(frame):
    try:
        block = frame.block()
    except RuntimeError:
        return {}
    found = {}
    while block:
        for symbol in block:
            # What is inlined may be there twice, once without a place.
            known = found.get(symbol.name, "<optimized out>") != "<optimized out>"
            is_value = symbol.is_variable or symbol.is_argument or symbol.is_constant
            if is_value and not known:
                try:
                    value = symbol.value(frame)
                    text = value.format_string(max_elements=16, repeat_threshold=10, deref_refs=True)
                except (gdb.error, ValueError) as error:
                    text = str(error)
                found[symbol.name] = text
        if block.function:
            break
        block = block.superblock
    return found


def frames():
    frame = gdb.newest_frame()
    while frame is not None:
        # A function that has jumped to another one has no frame; gdb makes it up.
        if frame.type() == gdb.TAILCALL_FRAME:
            frame = frame.older()
            continue
        place = frame.find_sal()
        yield {
            "function": frame.name(),
            "line": place.line if place.symtab else None,
            "signal": frame.type() == gdb.SIGTRAMP_FRAME,
            "variables": variables(frame),
        }
        frame = frame.older()


if os.environ["WHERE"] != "crash":
    breakpoint = gdb.Breakpoint(os.environ["WHERE"])
    breakpoint.ignore_count = int(os.environ["NUMBER"]) - 1
gdb.execute("run")
values = {}
for expression in json.loads(os.environ["EXPRESSIONS"]):
    try:
        values[expression] = gdb.parse_and_eval(expression).format_string(deref_refs=True)
    except gdb.error as error:
        values[expression] = str(error)
answer = json.dumps({"frames": list(frames()), "values": values})
with open(os.environ["OUT"], "w") as out:
    out.write(answer)
gdb.execute("kill")
