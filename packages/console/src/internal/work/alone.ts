/** Gives a job the letters of its queue: the console's own looks have none of them while it takes or counts them. */
import { Delay } from "@requeue/core"
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import type { Turns } from "./body.ts"
import { Trouble } from "./connections.ts"
import type { Work } from "./job.ts"
import type { Looks } from "./looks.ts"

/** Milliseconds for which a job waits until looks have given their letters back: a body is looked for as long at most. */
const timeout = 30_000

/** All that has letters of queues, but jobs. */
export interface Readers {
  readonly looks: Looks
  readonly turns: Turns
}

const taking =
  (turns: ReadonlyArray<Semaphore.Semaphore>) =>
  <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    turns.reduceRight((inner, turn) => turn.withPermits(1)(inner), work)

/**
 * The work, behind the looks of its queue: those at letters end when it begins, as whoever acts is not to wait for them, and one for
 * a body is waited for. Looks that begin meanwhile wait for its end, unless it waits for what becomes of letters, which
 * may take hours.
 */
export const make = ({ looks, turns }: Readers, operator: string, work: Work): Work => {
  const { connection, isLong = false, queue } = work
  const place = { broker: connection.name, queue }
  return {
    ...work,
    run: (job) =>
      Effect.suspend(() => {
        const all = [looks.end(place, `it was ended by job ${job.id} of ${operator}, which works on ${queue}`)]
        // An export takes that for a body itself.
        if (work.kind !== "export") all.push(turns(place))
        let hasAll = false
        const begin = Effect.sync(() => void (hasAll = true))
        const run = isLong
          ? Effect.andThen(taking(all)(begin), work.run(job))
          : taking(all)(Effect.andThen(begin, work.run(job)))
        const late = new Trouble({
          broker: connection.name,
          message: `a look of this console has not given the letters of ${queue} back within ${Delay.format(timeout)}`
        })
        const limit = Effect.flatMap(Effect.sleep(timeout), () => (hasAll ? Effect.never : Effect.fail(late)))
        return Effect.raceFirst(run, limit)
      })
  }
}
