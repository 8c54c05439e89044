/** The deliveries of a channel that the server waits for, in their order. */

/** A delivery, and how far its answer is. */
export interface Member {
  /** The delivery tag, which grows with every delivery of a channel. */
  readonly tag: number
  /** `claimed`: somebody settles it. `acking`: its acknowledgement is about to be written. */
  state: "open" | "claimed" | "acking" | "answered"
}

/** See https://www.rabbitmq.com/docs/confirms#consumer-acks-multiple-parameter */
export interface Unacknowledged<A extends Member> {
  readonly add: (member: A) => void
  /** All that are unanswered. */
  readonly all: () => ReadonlyArray<A>
  /** The oldest that is unanswered, after {@link endOfRun}. */
  readonly oldest: () => A | undefined
  /** A frame of its own has answered it. */
  readonly answered: (member: A) => void
  /**
   * The tag up to which one frame acknowledges everything that is unanswered, because all of it is `acking`; what the
   * frame covers is `answered` then. `undefined` when the oldest delivery is not `acking`.
   */
  readonly endOfRun: () => number | undefined
}

/** Answered members that may be kept behind an older one before they are swept out. */
const sweepFrom = 64

/** Nothing, at first. Every operation takes constant time, in the long run. */
export const make = <A extends Member>(): Unacknowledged<A> => {
  let members: Array<A> = []
  /** The answered ones among the members. */
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
