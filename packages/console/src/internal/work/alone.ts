/** Gives a job all letters of its queue: no browse of this console holds any while the job takes or counts them. */
import { Delay } from "@requeue/core"
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import type { Turns } from "./body.ts"
import { Trouble } from "./connections.ts"
import type { Work } from "./job.ts"
import type { Looks } from "./looks.ts"

/** Milliseconds that a job waits until browses have returned their letters. The search for a body takes no longer. */
const timeout = 30_000

/** The readers of queues other than jobs. */
export interface Readers {
  readonly looks: Looks
  readonly turns: Turns
}

const taking =
  (turns: ReadonlyArray<Semaphore.Semaphore>) =>
  <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    turns.reduceRight((inner, turn) => turn.withPermits(1)(inner), work)

/**
 * Returns the work without other readers of its queue. It ends the browses of the queue, and waits until a search for a
 * body has ended. Browses that begin meanwhile wait for the end of the work. They may run while the work waits for the
 * outcome of letters, which may take hours.
 */
export const make = ({ looks, turns }: Readers, operator: string, work: Work): Work => {
  const { connection, isLong = false, queue } = work
  const place = { broker: connection.name, queue }
  return {
    ...work,
    run: (job) =>
      Effect.suspend(() => {
        const all = [looks.end(place, `job ${job.id} of ${operator} ended the browse, because it works on ${queue}`)]
        // An export takes the semaphore of bodies itself.
        if (work.kind !== "export") all.push(turns(place))
        let hasAll = false
        const begin = Effect.sync(() => void (hasAll = true))
        const run = isLong
          ? Effect.andThen(taking(all)(begin), work.run(job))
          : taking(all)(Effect.andThen(begin, work.run(job)))
        const late = new Trouble({
          broker: connection.name,
          message: `a browse in this console has not returned the letters of ${queue} within ${Delay.format(timeout)}. Start the job again`
        })
        const limit = Effect.flatMap(Effect.sleep(timeout), () => (hasAll ? Effect.never : Effect.fail(late)))
        return Effect.raceFirst(run, limit)
      })
  }
}
