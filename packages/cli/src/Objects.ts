/** Planned objects as a table. */
import { Plan } from "@requeue/core/port"
import * as Flag from "effect/cli/Flag"
import type { Service } from "./Output.ts"
import * as Table from "./Table.ts"

/** The flag that shows every object instead of groups. */
export const all = Flag.Boolean("all").pipe(
  Flag.withDescription("Show every object. Default: objects that all queues share are summed up"),
  Flag.withDefault(false)
)

const marks = {
  present: ["=", "green"],
  missing: ["+", "yellow"],
  different: ["~", "red"],
  unknown: ["?", "gray"]
} as const satisfies Record<Plan.State, readonly [string, string]>

/**
 * Returns one line of a plan: how many objects it has of each kind, queues first, and then the plan's `growth`, the text
 * about objects that delays outside the policy may add.
 */
export const counts = ({ growth, objects }: Pick<Plan.Plan, "growth" | "objects">): string => {
  const kinds = [...Map.groupBy(objects, ({ kind }) => kind)].toSorted(
    ([a], [b]) => Number(b === "queue") - Number(a === "queue")
  )
  return `objects: ${kinds.map(([kind, { length }]) => `${length} ${kind}${length === 1 ? "" : "s"}`).join(", ")}${growth === undefined ? "" : `, ${growth}`}`
}

export const table = (objects: ReadonlyArray<Plan.Shown>, everything: boolean, paint: Service["paint"]): string => {
  const isInspected = objects.some(({ state }) => state !== undefined)
  const rows = (everything ? objects : Plan.grouped(objects)).map(({ details, kind, name, state, why }) => {
    const row = [kind, name, [details, why].filter((text) => text !== undefined && text !== "").join("; ")]
    if (state === undefined) return row
    const [mark, colour] = marks[state]
    return [paint(colour, mark), ...row]
  })
  return Table.format([...(isInspected ? [" "] : []), "object", "name", "details"], rows)
}
