/**
 * Sources: the deliveries for whose settlement copies are stored. Servers do not know them. The open calls of a process at its
 * port show them when it passes the copies to its driver, however late these arrive.
 */
import type { Asked, Delivery } from "../History.ts"
import { queue as work } from "../Scenario.ts"
import { keyOf, type Parcel, taleOf } from "./Store.ts"
import type { World } from "./World.ts"

/** The sources of all copies. */
export interface Sources {
  /** A message is delivered to a process. */
  readonly given: (process: string, key: number, delivery: Delivery) => void
  /**
   * Finds the delivery for which a process stores a copy in a queue now; `undefined` if it is a send. `copied` is the delivery
   * that the copy itself shows, if it shows one.
   */
  readonly find: (process: string, parcel: Parcel, queue: string, copied?: Delivery) => Delivery | undefined
  /** A copy for this delivery is on its way. */
  readonly sent: (delivery: Delivery) => void
  /** A copy for this delivery is stored. */
  readonly stored: (delivery: Delivery) => void
}

/** The weight of a stored copy, above any number of sent ones. */
const weight = 1000

/** No delivery is known. */
export const make = ({ activity, history }: World): Sources => {
  /** The deliveries of each message to each process. */
  const all = new Map<string, Array<Delivery>>()
  /** For each delivery that has copies: how many are sent, and much more once one is stored. */
  const copies = new Map<Delivery, number>()

  const countOf = (delivery: Delivery): number => copies.get(delivery) ?? 0
  const count = (delivery: Delivery, by: number): void => void copies.set(delivery, countOf(delivery) + by)

  /** The last settlement of each delivery, as far as the history is read. */
  const asked = new Map<Delivery, Asked>()
  let read = 0

  const askedOf = (delivery: Delivery): Asked | undefined => {
    for (; read < history.length; read++) {
      const entry = history[read]!
      if (entry._tag === "Asked") asked.set(entry.delivery, entry.settlement)
    }
    return asked.get(delivery)
  }

  /** Whether the settlement of a delivery may be a copy in a queue. */
  const maySend = (delivery: Delivery, to: string, reason: string | undefined): boolean => {
    const { queue = work, reason: wanted, tag } = askedOf(delivery) ?? {}
    const isOther = tag === "DeadLetter" && reason !== undefined && reason !== wanted
    return tag !== "Ack" && tag !== "Drop" && queue === to && !isOther
  }

  return {
    sent: (delivery) => count(delivery, 1),
    stored: (delivery) => count(delivery, weight),
    given: (process, key, delivery) => {
      const name = `${process} ${key}`
      all.set(name, [...(all.get(name) ?? []), delivery])
    },
    // Of the deliveries that the process settles so, the one with the fewest copies.
    find: (process, parcel, queue, copied) => {
      const key = keyOf(parcel)
      const { reason } = taleOf(parcel.metadata)
      if (activity.has("publish", process, key)) return undefined
      if (copied !== undefined) return copied
      const given = all.get(`${process} ${key}`) ?? []
      const fitting = given.filter((each) => maySend(each, queue, reason))
      const settled = fitting.filter((each) => activity.has("settle", process, each))
      const ended = fitting.filter((each) => askedOf(each) !== undefined && countOf(each) < weight)
      const fewest = (all: ReadonlyArray<Delivery>) => all.toSorted((one, other) => countOf(one) - countOf(other))[0]
      // A client may repeat a copy after its call has ended, and one that ends returns what it holds without a request.
      return fewest(settled) ?? fewest(ended) ?? given.at(-1)
    }
  }
}
