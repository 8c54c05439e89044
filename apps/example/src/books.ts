/**
 * The books: every published message is delivered, dead-lettered or still queued, and in one place only. Each number
 * comes from somebody else: the publisher, the receiver, the broker. The dispatcher is not asked how well it did.
 */
import type { Visit } from "./receiver.ts"

export interface Sources {
  /** The publisher's count of confirmed messages. */
  readonly published: number
  /** Everything the receiver saw. */
  readonly visits: ReadonlyArray<Visit>
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
   * Messages that the receiver took while the dispatcher was interrupted before the answer came. The broker still has
   * them and will deliver them again, so they are not counted as delivered: this is what at-least-once means.
   */
  readonly unconfirmed: number
}

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
