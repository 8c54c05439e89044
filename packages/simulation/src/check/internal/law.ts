/** Laws: functions from lives to violations. */
import { familyOf } from "../../Scenario.ts"
import type { Violation } from "../Violation.ts"
import type { Attempt, DeliveryLife, Lives } from "./Lives.ts"

/** A law. */
export type Law = (lives: Lives) => ReadonlyArray<Violation>

/** The process in which operators work. */
export const operator = "operator"

/** A violation about the known entries; missing ones, at -1, are left out. */
export const violation = (
  law: string,
  at: number,
  about: { readonly key?: number; readonly delivery?: number; readonly process?: string },
  what: string,
  entries: ReadonlyArray<number | undefined>
): Violation => ({
  law,
  at,
  key: about.key,
  delivery: about.delivery,
  process: about.process,
  what,
  entries: [...new Set(entries.map((index) => index ?? -1))].filter((index) => index >= 0).toSorted((a, b) => a - b)
})

/** A delivery as the subject of a violation. */
export const of = ({ copy, delivery, process }: DeliveryLife) => ({
  key: copy.message.key,
  delivery,
  process: process.name
})

/** Whether a copy is in a queue that programs send to. */
export const isWork = ({ work }: Lives, { copy }: Pick<DeliveryLife | Attempt, "copy">): boolean =>
  copy.stored !== undefined && work.has(copy.stored.entry.queue)

/**
 * Whether a process recognises a copy when it is redelivered. On brokers that push it cannot if a foreign producer's message has
 * no identity.
 */
export const hasName = ({ scenario }: Pick<Lives, "scenario">, { message, parent, stored }: Attempt["copy"]): boolean =>
  familyOf(scenario) !== "push" ||
  parent !== undefined ||
  stored?.entry.process !== undefined ||
  message.plan?.by !== "foreign"

/** Whether a message only waits, because the broker has refused its settlement: a copy that would wait, or its dead letter. */
export const isKept = ({ settlings }: Pick<DeliveryLife | Attempt, "settlings">, until: number): boolean => {
  const last = settlings.findLast(({ index }) => index < until)
  return last?.fate === "rejected" && last.answer < until
}
