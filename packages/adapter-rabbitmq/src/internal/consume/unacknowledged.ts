/** The deliveries of a channel that the server waits for, in their order. */

export interface Member {
  readonly tag: number
  /** `taken`: somebody settles it. `acking`: its acknowledgement is being written. */
  state: "open" | "taken" | "acking" | "answered"
}

export interface Unanswered<A extends Member> {
  readonly add: (member: A) => void
  /** It has been answered with a frame of its own. */
  readonly answered: (member: A) => void
  /**
   * The tag up to which one frame acknowledges all that is still unanswered, because all of it is being acknowledged;
   * what it covers is answered. `undefined` when something older is in the way.
   */
  readonly endOfRun: () => number | undefined
}

/** Behind an old delivery, so many answered ones may be kept before they are swept away. */
const sweepFrom = 64

export const make = <A extends Member>(): Unanswered<A> => {
  let members: Array<A> = []
  /** Of those that are still kept. */
  let answered = 0

  return {
    add: (member) => {
      members.push(member)
    },
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
