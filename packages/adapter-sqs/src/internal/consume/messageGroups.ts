/**
 * The order within FIFO groups: of each group, one delivery is out at a time. The others of the same receive wait under
 * their lease, or go back when the one in front does, because SQS hands out no message of a group before them.
 */
import type { Delivery } from "@requeue/core/adapter-kit"
import { receiptOf } from "./receipt.ts"

export interface Groups {
  readonly arrived: (delivery: Delivery.Delivery) => void
  /** It is gone from the queue: the next one may come. */
  readonly gone: (delivery: Delivery.Delivery) => void
  /** It is in the queue again: so are those behind it. */
  readonly returned: (delivery: Delivery.Delivery) => void
  /** All that wait. */
  readonly waiting: () => ReadonlyArray<Delivery.Delivery>
  /** None is wanted for the time being: all that wait go back. */
  readonly clear: () => void
}

/** For standard queues. */
export const none = (hand: (delivery: Delivery.Delivery) => void): Groups => ({
  arrived: hand,
  gone: () => {},
  returned: () => {},
  waiting: () => [],
  clear: () => {}
})

export const make = (env: {
  readonly hand: (delivery: Delivery.Delivery) => void
  readonly giveBack: (deliveries: ReadonlyArray<Delivery.Delivery>) => void
}): Groups => {
  /** What is out, and what waits behind it. */
  const groups = new Map<string, { readonly out: Delivery.Delivery; readonly behind: Array<Delivery.Delivery> }>()

  const groupOf = (delivery: Delivery.Delivery): string => receiptOf(delivery).group ?? ""

  const put = (out: Delivery.Delivery, behind: Array<Delivery.Delivery>): void => {
    groups.set(groupOf(out), { out, behind })
    env.hand(out)
  }

  /** Those behind a delivery that has left; `undefined` when it was not the one that is out. */
  const leave = (delivery: Delivery.Delivery): Array<Delivery.Delivery> | undefined => {
    const group = groups.get(groupOf(delivery))
    if (group?.out !== delivery) return undefined
    groups.delete(groupOf(delivery))
    return group.behind
  }

  const waiting = (): ReadonlyArray<Delivery.Delivery> => [...groups.values()].flatMap(({ behind }) => behind)

  return {
    arrived: (delivery) => {
      const group = groups.get(groupOf(delivery))
      if (group === undefined) put(delivery, [])
      else group.behind.push(delivery)
    },
    gone: (delivery) => {
      const behind = leave(delivery)
      const next = behind?.shift()
      if (next !== undefined) put(next, behind!)
    },
    returned: (delivery) => {
      const behind = leave(delivery)
      if (behind !== undefined && behind.length > 0) env.giveBack(behind)
    },
    waiting,
    clear: () => {
      const all = waiting()
      for (const { behind } of groups.values()) behind.length = 0
      if (all.length > 0) env.giveBack(all)
    }
  }
}
