/** Planned objects as a table. */
import type { Plan } from "@requeue/core"
import * as Flag from "effect/cli/Flag"
import type { Service } from "./Output.ts"
import * as Table from "./Table.ts"

/** The flag that shows groups object by object. */
export const all = Flag.Boolean("all").pipe(
  Flag.withDescription("Show every object; else those that all queues share are told as one"),
  Flag.withDefault(false)
)

const marks = {
  present: ["=", "green"],
  missing: ["+", "yellow"],
  different: ["~", "red"],
  unknown: ["?", "gray"]
} as const satisfies Record<Plan.State, readonly [string, string]>

type Shown = Plan.PlannedObject & Partial<Plan.Inspected>

/** States, worst first: a group has the worst state of its members. */
const worst: ReadonlyArray<Plan.State> = ["different", "missing", "unknown", "present"]

const asOne = (group: string, members: ReadonlyArray<Shown>): Shown => {
  const kinds = Object.entries(Object.groupBy(members, ({ kind }) => kind)).map(([kind, found = []]) =>
    found.length === 1 ? kind : `${found.length} ${kind}s`
  )
  const state = worst.find((state) => members.some((member) => member.state === state))
  return { kind: "group", name: group, details: `${kinds.join(", ")}, shared by all queues`, ...(state && { state }) }
}

const grouped = (objects: ReadonlyArray<Shown>): ReadonlyArray<Shown> => {
  const groups = Map.groupBy(objects, ({ group }) => group)
  return objects.flatMap((object) => {
    if (object.group === undefined) return [object]
    const members = groups.get(object.group) ?? []
    return members[0] === object ? [asOne(object.group, members)] : []
  })
}

export const table = (objects: ReadonlyArray<Shown>, everything: boolean, paint: Service["paint"]): string => {
  const isInspected = objects.some(({ state }) => state !== undefined)
  const rows = (everything ? objects : grouped(objects)).map(({ details, kind, name, state, why }) => {
    const row = [kind, name, [details, why].filter((text) => text !== undefined && text !== "").join("; ")]
    if (state === undefined) return row
    const [mark, colour] = marks[state]
    return [paint(colour, mark), ...row]
  })
  return Table.format([...(isInspected ? [" "] : []), "object", "name", "details"], rows)
}
