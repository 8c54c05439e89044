/**
 * Gathers what is asked at the same time into calls of up to ten: what finds no call under way goes at once, what comes
 * meanwhile goes together, and waits for its end, though not for long.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Answers } from "./batchCall.ts"
import * as Wire from "./wire.ts"

export interface Gather<T> {
  /** Ends when each item has been answered. */
  readonly submit: (items: ReadonlyArray<T>) => Effect.Effect<Answers>
  /** Ends when no call is under way. */
  readonly idle: Effect.Effect<void>
}

/** Milliseconds that what is there waits for more, when a call takes its time. */
const patience = 50

interface Pending<T> {
  readonly item: T
  readonly answer: (error: Answers[number]) => void
}

export const make = <T>(env: {
  readonly call: (items: ReadonlyArray<T>) => Effect.Effect<Answers>
  /** Bytes of an item, of which a call takes so many. */
  readonly sizeOf: (item: T) => number
  /** Calls that may be under way; with one, they are in order. */
  readonly parallel: number
  readonly fork: (effect: Effect.Effect<unknown>) => void
}): Gather<T> => {
  let pending: Array<Pending<T>> = []
  let running = 0
  let isWaiting = false
  const waiters: Array<() => void> = []

  /** How many of those in front make one call, and whether no more would fit. */
  const measure = (): { readonly count: number; readonly isFull: boolean } => {
    let bytes = 0
    for (let count = 0; count < pending.length; count++) {
      bytes += env.sizeOf(pending[count]!.item)
      if (count === Wire.batchLimit || (count > 0 && bytes > Wire.sizeLimit)) return { count, isFull: true }
    }
    return { count: pending.length, isFull: pending.length === Wire.batchLimit }
  }

  const wait = (): void => {
    if (isWaiting) return
    isWaiting = true
    const later = Effect.sync(() => {
      isWaiting = false
      pump(true)
    })
    env.fork(Effect.delay(later, Duration.millis(patience)))
  }

  const pump = (isLate = false): void => {
    while (pending.length > 0 && running < env.parallel) {
      const { count, isFull } = measure()
      if (!isFull && running > 0 && !isLate) return wait()
      const chunk = pending.slice(0, count)
      pending = pending.slice(count)
      running++
      env.fork(
        Effect.map(env.call(chunk.map(({ item }) => item)), (answers) => {
          running--
          for (const [index, { answer }] of chunk.entries()) answer(answers[index])
          pump()
          if (running === 0) for (const resume of waiters.splice(0)) resume()
        })
      )
    }
  }

  return {
    submit: (items) =>
      items.length === 0
        ? Effect.succeed([])
        : Effect.callback<Answers>((resume) => {
            const answers: Array<Answers[number]> = []
            let open = items.length
            for (const [index, item] of items.entries()) {
              pending.push({
                item,
                answer: (error) => {
                  answers[index] = error
                  if (--open === 0) resume(Effect.succeed(answers))
                }
              })
            }
            pump()
          }),
    idle: Effect.callback<void>((resume) => {
      if (running === 0) resume(Effect.void)
      else waiters.push(() => resume(Effect.void))
    })
  }
}
