/**
 * The order within the message groups of a FIFO queue: of each group, one delivery is with the consumer at a time. The
 * others of the same receive wait under their leases. When the first goes back to the queue, so do they, because SQS
 * delivers no message of a group before those in front of it.
 */
import type { Delivery } from "@requeue/core/adapter-kit"
import { receiptOf } from "./receipt.ts"

/** The deliveries of all groups. */
export interface MessageGroups {
  /** A delivery was received: it goes to the consumer now, or behind others of its group. */
  readonly arrived: (delivery: Delivery.Delivery) => void
  /** A delivery has left the queue: the next one of its group goes to the consumer. */
  readonly gone: (delivery: Delivery.Delivery) => void
  /** A delivery is in the queue again: those behind it go back as well. */
  readonly returned: (delivery: Delivery.Delivery) => void
  /** All that wait. */
  readonly waiting: () => ReadonlyArray<Delivery.Delivery>
  /** All that wait go back, because the consumer wants none for the time being. */
  readonly clear: () => void
}

/** For a standard queue: every delivery goes to the consumer as it comes. */
export const none = (deliver: (delivery: Delivery.Delivery) => void): MessageGroups => ({
  arrived: deliver,
  gone: () => {},
  returned: () => {},
  waiting: () => [],
  clear: () => {}
})

/** For a FIFO queue. */
export const make = (env: {
  readonly deliver: (delivery: Delivery.Delivery) => void
  readonly giveBack: (deliveries: ReadonlyArray<Delivery.Delivery>) => void
}): MessageGroups => {
  /** By group: the delivery that is with the consumer, and those that wait behind it. */
  const groups = new Map<string, { readonly first: Delivery.Delivery; readonly behind: Array<Delivery.Delivery> }>()

  const groupOf = (delivery: Delivery.Delivery): string => receiptOf(delivery).group ?? ""

  const deliver = (first: Delivery.Delivery, behind: Array<Delivery.Delivery>): void => {
    groups.set(groupOf(first), { first, behind })
    env.deliver(first)
  }

  /** Those behind a delivery that has left; `undefined` when it was not the first of its group. */
  const leave = (delivery: Delivery.Delivery): Array<Delivery.Delivery> | undefined => {
    const group = groups.get(groupOf(delivery))
    if (group?.first !== delivery) return undefined
    groups.delete(groupOf(delivery))
    return group.behind
  }

  const waiting = (): ReadonlyArray<Delivery.Delivery> => [...groups.values()].flatMap(({ behind }) => behind)

  return {
    arrived: (delivery) => {
      const group = groups.get(groupOf(delivery))
      if (group === undefined) deliver(delivery, [])
      else group.behind.push(delivery)
    },
    gone: (delivery) => {
      const [next, ...behind] = leave(delivery) ?? []
      if (next !== undefined) deliver(next, behind)
    },
    returned: (delivery) => {
      const behind = leave(delivery) ?? []
      if (behind.length > 0) env.giveBack(behind)
    },
    waiting,
    clear: () => {
      const all = waiting()
      for (const { behind } of groups.values()) behind.length = 0
      if (all.length > 0) env.giveBack(all)
    }
  }
}
