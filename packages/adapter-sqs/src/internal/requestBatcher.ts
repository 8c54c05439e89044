/**
 * Batches items that are submitted at about the same time into calls of up to ten. Without a running call, an item is
 * sent immediately. Later items are sent together: when they fill a call, when a call has ended, or after a short time.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Results } from "./batchCall.ts"
import * as Limits from "./limits.ts"

/** The calls of one kind. */
export interface RequestBatcher<T> {
  /** Ends when SQS has answered for each item. */
  readonly submit: (items: ReadonlyArray<T>) => Effect.Effect<Results>
  /** Ends when no call is running. */
  readonly idle: Effect.Effect<void>
}

/** Milliseconds that items wait for others while a call is running. */
const linger = 50

interface Pending<T> {
  readonly item: T
  readonly resolve: (error: Results[number]) => void
}

/** Makes a batcher. */
export const make = <T>(env: {
  /** Makes a call. It must not fail. */
  readonly call: (items: ReadonlyArray<T>) => Effect.Effect<Results>
  /** Bytes of an item; a call accepts a mebibyte. */
  readonly sizeOf: (item: T) => number
  /** Maximum number of concurrent calls; with 1, items are sent in the order of submission. */
  readonly parallel: number
  readonly fork: (effect: Effect.Effect<unknown>) => void
}): RequestBatcher<T> => {
  let pending: Array<Pending<T>> = []
  let running = 0
  let isWaiting = false
  const onIdle: Array<() => void> = []

  /** Returns how many of the first items fit into one call, and whether the call is full. */
  const measure = (): { readonly count: number; readonly isFull: boolean } => {
    let bytes = 0
    for (let count = 0; count < pending.length; count++) {
      bytes += env.sizeOf(pending[count]!.item)
      if (count === Limits.batch || (count > 0 && bytes > Limits.size)) return { count, isFull: true }
    }
    return { count: pending.length, isFull: pending.length === Limits.batch }
  }

  const wait = (): void => {
    if (isWaiting) return
    isWaiting = true
    const later = Effect.sync(() => {
      isWaiting = false
      pump(true)
    })
    env.fork(Effect.delay(later, Duration.millis(linger)))
  }

  const pump = (isLate = false): void => {
    while (pending.length > 0 && running < env.parallel) {
      const { count, isFull } = measure()
      if (!isFull && running > 0 && !isLate) return wait()
      const chunk = pending.slice(0, count)
      pending = pending.slice(count)
      running++
      env.fork(
        Effect.map(env.call(chunk.map(({ item }) => item)), (results) => {
          running--
          for (const [index, { resolve }] of chunk.entries()) resolve(results[index])
          pump()
          if (running === 0) for (const resume of onIdle.splice(0)) resume()
        })
      )
    }
  }

  return {
    submit: (items) =>
      items.length === 0
        ? Effect.succeed([])
        : Effect.callback<Results>((resume) => {
            const results: Array<Results[number]> = []
            let unanswered = items.length
            for (const [index, item] of items.entries()) {
              pending.push({
                item,
                resolve: (error) => {
                  results[index] = error
                  if (--unanswered === 0) resume(Effect.succeed(results))
                }
              })
            }
            pump()
          }),
    idle: Effect.callback<void>((resume) => {
      if (running === 0) resume(Effect.void)
      else onIdle.push(() => resume(Effect.void))
    })
  }
}
