/** Receives: polls that wait for messages, and which messages they bring. */
import type { Store } from "../world/Store.ts"
import type { Due, World } from "../world/World.ts"
import type { Leases, Received } from "./Leases.ts"

/** A poll. */
export interface Poll {
  readonly process: string
  readonly queue: string
  /** The maximum number of messages. */
  readonly count: number
  /** Milliseconds for which the messages are hidden. */
  readonly lease: number
  /** Milliseconds that it waits for a message. */
  readonly wait: number
}

/** Where a queue moves messages that were received too often. */
export interface Redrive {
  readonly to: string
  readonly maxReceiveCount: number
}

/** The receives of all queues. */
export interface Receives {
  readonly poll: (poll: Poll, answer: (messages: ReadonlyArray<Received>) => void) => void
  /** Answers polls while there are messages for them. */
  readonly serve: (queue: string) => void
  /** Ends the polls that wait. */
  readonly drop: () => void
}

interface Waiting extends Poll {
  readonly answer: (messages: ReadonlyArray<Received>) => void
  readonly end: Due
}

/** No poll waits. `redriveOf` returns the redrive of a queue. */
export const make = (
  world: World,
  store: Store,
  leases: Leases,
  redriveOf: (queue: string) => Redrive | undefined
): Receives => {
  const { draw } = world
  let waiting: Array<Waiting> = []

  /** Some of the messages that are ready, in any order. */
  const sample = ({ count, lease, process, queue }: Poll): ReadonlyArray<Received> => {
    const place = `${process} receive ${queue}`
    const redrive = redriveOf(queue)
    const wanted = Math.ceil(draw.unit(place) * Math.min(count, store.counts(queue).ready))
    const found: Array<Received> = []
    for (let nth = 0; nth < wanted; nth++) {
      const held = store.take(queue, Math.floor(draw.unit(place) * store.counts(queue).ready))!
      if (redrive === undefined || held.count < redrive.maxReceiveCount) found.push(leases.hand(held, process, lease))
      else {
        leases.end(held)
        store.move(held, redrive.to, held.count)
      }
    }
    return found
  }

  /** A message that another consumer is working on, delivered nevertheless. */
  const echo = ({ lease, process, queue }: Poll): ReadonlyArray<Received> => {
    const inFlight = leases.hidden(queue).filter(({ expiry }) => expiry !== undefined)
    if (inFlight.length === 0 || !world.fault("echo", `${process} receive ${queue}`)) return []
    const { held } = inFlight[Math.floor(draw.unit(`${process} echo`) * inFlight.length)]!
    return [leases.hand(held, process, lease)]
  }

  const reply = (poll: Waiting, found: ReadonlyArray<Received>): void => {
    waiting = waiting.filter((each) => each !== poll)
    poll.end.run = undefined
    poll.answer(found)
  }

  const serve = (queue: string): void => {
    while (store.counts(queue).ready > 0) {
      const fits = waiting.filter((poll) => poll.queue === queue)
      if (fits.length === 0) return
      const poll = fits[Math.floor(draw.unit(`serve ${queue}`) * fits.length)]!
      const found = sample(poll)
      if (found.length > 0) reply(poll, found)
    }
  }

  return {
    poll: (poll, answer) => {
      const again = echo(poll)
      if (again.length > 0) return answer(again)
      const added: Waiting = { ...poll, answer, end: world.after(poll.wait, () => reply(added, [])) }
      waiting.push(added)
      serve(poll.queue)
    },
    serve,
    drop: () => {
      for (const { end } of waiting) end.run = undefined
      waiting = []
    }
  }
}
