/** Defects that the simulation found, or that a review had found before it, as they were: each is put back in one place. */
import type { Mutant } from "./Mutant.ts"

const consume = (file: string): string => `core/src/consume/internal/${file}.ts`

export const found: ReadonlyArray<Mutant> = [
  {
    name: "settlements of others wait for the answer to an extension",
    file: consume("settler"),
    from: "    const requests = extended === undefined ? pending : pending.filter((item) => !extended.has(item))\n",
    to: "    if (extended !== undefined) return\n    const requests = pending\n",
    was: "One extension without an answer held up all settlements, until their leases ended."
  },
  {
    name: "a retry is asked again though its message has come again",
    file: consume("recovery"),
    from: 'fate === "gone" || item.isSuperseded',
    to: 'fate === "gone"',
    was: "A retry was asked up to ten times, and each time a copy of it was stored."
  },
  {
    name: "a redelivery makes the answer to an extension one that nobody asked for",
    file: consume("settler"),
    from: "call(options, asked, extended,",
    to: "call(options, unsettled, extended,",
    was: "Leases that had ended went unnoticed where one of them was extended while its message came again."
  },
  {
    name: "a delivery that was overtaken by a later one takes its place",
    file: consume("redeliveries"),
    from: "(isOlder(delivery, twin, isBound) || merge(twin, delivery))",
    to: "merge(twin, delivery)",
    was: "A later delivery was left unsettled, and its message came again after its lease."
  },
  {
    name: "a delivery that came before its retry was answered costs the attempts of releases",
    file: consume("redeliveries"),
    from: "    onReturned(item)\n    item.isSuperseded = true",
    to: "    item.isSuperseded = true",
    was: "A message that no handler had seen was given up after a retry whose answer came late."
  },
  {
    name: "a retry that is kept has no way back without a copy",
    file: consume("recovery"),
    from: "const native = withoutCopy(settlement)",
    to: "const native = kept.has(item) ? undefined : withoutCopy(settlement)",
    was: "A retry that was lost twice, and refused then, was kept for ever."
  },
  {
    name: "a retry that is lost again while it waits here has no delay",
    file: consume("recovery"),
    from: '      if ("delay" in wanted) item.due = timers.now() + wanted.delay\n',
    to: "",
    was: "A retry of 20 minutes that was lost three times was asked for without a delay."
  },
  {
    name: "the lossy client copies again what was stored",
    file: "simulation/src/lossy/Settling.ts",
    from: 'memory.isFinished(receipt) ? { _tag: "Finish" as const } : toCommand(request, dependencies)',
    to: "toCommand(request, dependencies)",
    was: "A retry whose copy was stored after its message had come again was stored twice, and ran twice."
  }
]
