/**
 * One credit over the connections of a subscription to several daemons: deliveries held and deliveries that may still arrive
 * never exceed the credit together.
 */

/** A connection's part in the credit. */
export interface Member {
  readonly rdy: (count: number) => void
  readonly isOpen: () => boolean
  /** Deliveries that count against the credit. */
  held: number
  /** Its last RDY. */
  share: number
}

/** The credit of one subscription. */
export interface Credit {
  readonly set: (limit: number) => void
  readonly join: (member: Member) => void
  /** Its deliveries no longer count. */
  readonly leave: (member: Member) => void
  /** A delivery of this member no longer counts. */
  readonly settled: (member: Member) => void
  readonly distribute: () => void
  /** Selects a connection that has nothing and can receive nothing, or else the next one. */
  readonly turn: () => void
}

/** A credit of 0, without connections. */
export const make = (): Credit => {
  const members = new Set<Member>()
  let limit = 0
  /** The index of the connection that is first. */
  let first = 0
  /** Whether a part of the credit waits for the next settlement. */
  let isShort = false

  const held = (): number => [...members].reduce((sum, member) => sum + member.held, 0)
  const living = (): ReadonlyArray<Member> => [...members].filter(({ isOpen }) => isOpen())

  /** `withheld` is a part of the credit that no connection has yet. */
  const distribute = (withheld = 0): void => {
    const open = living()
    if (open.length === 0) return
    const free = limit - withheld - held()
    isShort = withheld > 0 || free < 0
    const share = (at: number): number => {
      if (free < 0) return 0
      const place = (at + open.length - (first % open.length)) % open.length
      return open[at]!.held + Math.floor(free / open.length) + (place < free % open.length ? 1 : 0)
    }
    const changes = open.map((member, at) => ({ member, share: share(at) }))
    // Shares are lowered before others are raised.
    for (const each of changes) if (each.share < each.member.share) tell(each.member, each.share)
    for (const each of changes) if (each.share > each.member.share) tell(each.member, each.share)
  }

  const tell = (member: Member, share: number): void => {
    member.share = share
    member.rdy(share)
  }

  return {
    set: (wanted) => {
      limit = wanted
      distribute()
    },
    join: (member) => {
      members.add(member)
      distribute()
    },
    leave: (member) => {
      members.delete(member)
      distribute()
    },
    settled: (member) => {
      member.held--
      // Its room stays with it, which moves as little credit as possible while deliveries are in flight.
      if (isShort || !member.isOpen()) distribute()
    },
    distribute: () => distribute(),
    turn: () => {
      const starved = living().findIndex((member) => member.held === 0 && member.share === 0)
      first = starved < 0 ? first + 1 : starved
      // A full connection frees a place with the next settlement.
      distribute(held() >= limit ? 1 : 0)
    }
  }
}
