/** The unsettled deliveries of a channel, in order. */

/** A delivery, and the state of its settlement. */
export interface Member {
  /** The delivery tag, which grows with every delivery of a channel. */
  readonly tag: number
  /** `claimed`: it is being settled. `acking`: its ack is about to be written. */
  state: "open" | "claimed" | "acking" | "answered"
}

/** See https://www.rabbitmq.com/docs/confirms#consumer-acks-multiple-parameter */
export interface Unacknowledged<A extends Member> {
  readonly add: (member: A) => void
  /** Returns all unanswered deliveries. */
  readonly all: () => ReadonlyArray<A>
  /** Returns the oldest unanswered delivery, after {@link endOfRun}. */
  readonly oldest: () => A | undefined
  /** Marks a delivery that its own frame has answered. */
  readonly answered: (member: A) => void
  /**
   * Returns the tag up to which one frame acks all unanswered deliveries, because all of them are `acking`, and marks
   * them `answered`. Returns `undefined` when the oldest delivery is not `acking`.
   */
  readonly endOfRun: () => number | undefined
}

/** Answered members to keep after an older unanswered one before they are removed. */
const sweepFrom = 64

/** Starts empty. Every operation takes amortized constant time. */
export const make = <A extends Member>(): Unacknowledged<A> => {
  let members: Array<A> = []
  /** The number of answered members. */
  let answered = 0

  return {
    add: (member) => {
      members.push(member)
    },
    oldest: () => members[0],
    all: () => members.filter(({ state }) => state !== "answered"),
    answered: (member) => {
      member.state = "answered"
      if (++answered < sweepFrom || answered * 2 < members.length) return
      members = members.filter(({ state }) => state !== "answered")
      answered = 0
    },
    endOfRun: () => {
      let last: number | undefined
      let end = 0
      for (const member of members) {
        if (member.state === "answered") answered--
        else if (member.state === "acking") {
          last = member.tag
          member.state = "answered"
        } else break
        end++
      }
      members.splice(0, end)
      return last
    }
  }
}
