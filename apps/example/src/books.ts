/**
 * The books: every published message is delivered, dead-lettered or still queued, and only one of these. The numbers come from
 * the publisher, the receiver and the broker: the dispatcher does not count its own work.
 */
import type { Visit } from "./receiver.ts"

export interface Sources {
  /** The publisher's count of confirmed messages. */
  readonly published: number
  /** All requests that the receiver saw, also in earlier runs. */
  readonly visits: ReadonlyArray<Pick<Visit, "id" | "accepted">>
  /** Whether the 2xx of this message reached the dispatcher. */
  readonly isDelivered: (id: string) => boolean
  /** The broker's counts of the dead-letter queue and of the queue. */
  readonly deadLettered: number
  readonly queued: number
}

export interface Books {
  readonly published: number
  readonly delivered: number
  readonly deadLettered: number
  readonly queued: number
  /** Above 0: messages lost. Below 0: messages in two places. */
  readonly missing: number
  readonly balanced: boolean
  /** 2xx answers beyond a message's first. */
  readonly duplicates: number
  /**
   * Messages that the receiver accepted, but whose reply the dispatcher did not get before it was interrupted. They do not count
   * as delivered: the broker still has them and will redeliver them. This is at-least-once delivery.
   */
  readonly unconfirmed: number
}

/** Balances the books. */
export const balance = ({ deadLettered, isDelivered, published, queued, visits }: Sources): Books => {
  const accepted = visits.filter((visit) => visit.accepted).map(({ id }) => id)
  const distinct = new Set(accepted)
  const unconfirmed = [...distinct].filter((id) => !isDelivered(id)).length
  const delivered = distinct.size - unconfirmed
  const missing = published - delivered - deadLettered - queued
  return {
    published,
    delivered,
    deadLettered,
    queued,
    missing,
    balanced: missing === 0,
    duplicates: accepted.length - distinct.size,
    unconfirmed
  }
}
