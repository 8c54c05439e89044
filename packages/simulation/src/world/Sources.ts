/**
 * Sources: the deliveries for whose settlement copies are stored. Servers do not know them. The open calls of a process at its
 * port show them when it passes the copies to its driver, however late these arrive.
 */
import type { Asked, Delivery } from "../History.ts"
import { queue as work } from "../Scenario.ts"
import { keyOf, type Parcel, taleOf } from "./Parcel.ts"
import type { World } from "./World.ts"

/** The sources of all copies. */
export interface Sources {
  /** A message is delivered to a process. */
  readonly given: (process: string, key: number, delivery: Delivery) => void
  /**
   * Finds the delivery for which a process stores a copy in a queue now; `undefined` if it is a send. `copied` is the delivery
   * that the copy itself shows, if it shows one. `misfit` is above 0 for a delivery that the copy does not resemble, and infinite for
   * one that it cannot be made of; its delay ends in `wait` milliseconds.
   */
  readonly find: (
    process: string,
    parcel: Parcel,
    queue: string,
    hints?: { readonly copied?: Delivery | undefined; readonly misfit?: (delivery: Delivery, wait: number) => number }
  ) => Delivery | undefined
  /** A copy for this delivery is on its way. */
  readonly sent: (delivery: Delivery) => void
  /** A copy for this delivery is stored. */
  readonly stored: (delivery: Delivery) => void
}

/** The rank of a stored copy, above that of any sent one. */
const highest = 1_000_000

/** No delivery is known. */
export const make = ({ activity, history, now }: World): Sources => {
  /** The deliveries of each message to each process. */
  const all = new Map<string, Array<Delivery>>()
  /** For each delivery that has copies: the rank of the last one, higher than those that were sent before, or stored. */
  const ranks = new Map<Delivery, number>()
  let last = 0

  const rankOf = (delivery: Delivery): number => ranks.get(delivery) ?? 0
  const isStored = (delivery: Delivery): boolean => rankOf(delivery) >= highest

  /** The last settlement of each delivery, as far as the history is read. */
  const asked = new Map<Delivery, Asked & { readonly at: number }>()
  let read = 0

  const askedOf = (delivery: Delivery): (Asked & { readonly at: number }) | undefined => {
    for (; read < history.length; read++) {
      const entry = history[read]!
      if (entry._tag === "Asked") asked.set(entry.delivery, { ...entry.settlement, at: entry.at })
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
    sent: (delivery) => void ranks.set(delivery, ++last + (isStored(delivery) ? highest : 0)),
    stored: (delivery) => void ranks.set(delivery, ++last + highest),
    given: (process, key, delivery) => {
      const name = `${process} ${key}`
      all.set(name, [...(all.get(name) ?? []), delivery])
    },
    // Of the deliveries that the process settles so, and that the copy resembles, the one whose last copy was sent first.
    find: (process, parcel, queue, { copied, misfit = () => 0 } = {}) => {
      const key = keyOf(parcel)
      const { reason } = taleOf(parcel.metadata)
      if (activity.has("publish", process, key)) return undefined
      if (copied !== undefined) return copied
      const given = (all.get(`${process} ${key}`) ?? []).filter((each) => misfit(each, 0) < Infinity)
      const fitting = given.filter((each) => maySend(each, queue, reason))
      const settled = fitting.filter((each) => activity.has("settle", process, each))
      const ended = fitting.filter((each) => askedOf(each) !== undefined && !isStored(each))
      const orderOf = (each: Delivery): number => {
        const { at = 0, delay = 0 } = askedOf(each) ?? {}
        return rankOf(each) + misfit(each, delay === 0 ? 0 : at + delay - now())
      }
      const first = (all: ReadonlyArray<Delivery>) => all.toSorted((one, other) => orderOf(one) - orderOf(other))[0]
      // A client may repeat a copy after its call has ended, and one that ends returns what it holds without a request.
      const last = given.at(-1)
      const repeated = last !== undefined && fitting.includes(last) ? last : (first(fitting) ?? last)
      return first(settled) ?? first(ended) ?? repeated
    }
  }
}
