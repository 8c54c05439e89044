import type { Delivery } from "../../History.ts"
import { type Law, of, violation } from "../internal/law.ts"
import type { Lives, Seen } from "../internal/Lives.ts"
import type { Violation } from "../Violation.ts"

/** Names of what a process has of a copy: a redelivery may have replaced the delivery that its handler began with. */
const namesOf = ({ deliveries }: Lives, all: ReadonlyArray<Delivery>): ReadonlyArray<string> =>
  all.map((each) => `${deliveries.get(each)?.process.name} ${deliveries.get(each)?.copy.copy}`)

const isSame = (lives: Lives, one: ReadonlyArray<Delivery>, other: ReadonlyArray<Delivery>): boolean =>
  namesOf(lives, one).toSorted().join() === namesOf(lives, other).toSorted().join()

const show = (all: ReadonlyArray<Delivery>): string =>
  all.length === 0 ? "none" : all.map((each) => `d${each}`).join(", ")

type Parts = Pick<Seen<"Committed">["entry"], "rows" | "sends"> & { readonly acks: ReadonlyArray<Delivery> }

/** The parts of a commit, or of what a power cut has undone, are of the same deliveries. */
const torn = (lives: Lives, index: number, verb: string, { acks, rows, sends }: Parts): ReadonlyArray<Violation> => {
  if (isSame(lives, acks, rows) && isSame(lives, rows, sends)) return []
  const what = `A transaction ${verb} acks of ${show(acks)}, rows of ${show(rows)} and sends of ${show(sends)}; expected all of the same.`
  return [violation("transactions", lives.history[index]!.at, {}, what, [index])]
}

/** The settlement that its process asks for after the commit must be answered as lost, and no delivery of the copy comes later. */
const after = (lives: Lives, delivery: Delivery, index: number): ReadonlyArray<Violation> => {
  const life = lives.deliveries.get(delivery)
  if (life === undefined) return []
  const taken = life.settlings.find(({ answer, fate }) => fate === "taken" && answer > index)
  const copies = life.copy.children.filter(({ stored }) => (stored?.index ?? 0) > index)
  const shown = [taken?.answer, ...copies.map(({ stored }) => stored?.index)].filter((each) => each !== undefined)
  if (shown.length === 0) return []
  const what = `${life.process.name} settled a message after it was acked in a transaction; expected no more of it.`
  return [violation("transactions", lives.history[shown[0]!]!.at, of(life), what, [index, ...shown])]
}

/**
 * A transaction acks messages, writes their rows and sends theirs, or does nothing of it: over kills and power cuts, each row has
 * one ack and one send. If each commit is synced, a power cut undoes none.
 */
export const transactions: Law = (lives) => {
  const { copies, deliveries, history } = lives
  const open = new Set<Delivery>()
  const found = history.flatMap((entry, index) => {
    if (entry._tag === "Rebooted") {
      const { at, isFull, revived, rows, sends } = entry
      for (const each of revived) open.delete(each)
      if (isFull && rows.length + sends.length + revived.length > 0) {
        const what = `A power cut undid the transactions of ${show([...new Set([...rows, ...sends, ...revived])])}; expected them on the disk.`
        return [violation("transactions", at, {}, what, [index])]
      }
      return torn(lives, index, "lost", { acks: revived, rows, sends })
    }
    if (entry._tag !== "Committed") return []
    const { acked, rows, sends } = entry
    for (const each of acked) open.add(each)
    return torn(lives, index, "has", { acks: acked, rows, sends })
  })
  const done = history.flatMap((entry, index) =>
    entry._tag === "Committed" ? entry.acked.filter((each) => open.has(each)).map((each) => [each, index] as const) : []
  )
  // A copy that is gone for good was acked once.
  const twice = done.filter(([each], nth) => {
    const { copy } = deliveries.get(each) ?? {}
    return copy !== undefined && done.findIndex(([other]) => deliveries.get(other)?.copy === copy) < nth
  })
  return [
    ...found,
    ...twice.map(([each, index]) =>
      violation(
        "transactions",
        history[index]!.at,
        {},
        `d${each} was acked in a transaction after another one; expected one.`,
        [index]
      )
    ),
    ...done.flatMap(([each, index]) => after(lives, each, index)),
    ...[...copies.values()].flatMap(({ gone, message: { key } }) =>
      gone?.entry.why === "transaction" && gone.entry.delivery === undefined
        ? [
            violation(
              "transactions",
              gone.entry.at,
              { key },
              "A transaction removed a message that no process had; expected its lease.",
              [gone.index]
            )
          ]
        : []
    )
  ]
}
