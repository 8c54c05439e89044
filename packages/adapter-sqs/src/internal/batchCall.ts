/**
 * One call of SQS for up to ten entries. It answers 200 though entries have failed: each is looked at, and those that
 * are no fault of ours are sent again.
 */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Context, fromRefusal, isTransient, toBrokerError } from "./toBrokerError.ts"

/** What became of each item, in order; `undefined` is well. */
export type Answers = ReadonlyArray<BrokerError.BrokerError | undefined>

export interface Failed {
  readonly Id: string | undefined
  readonly SenderFault: boolean | undefined
  readonly Code: string | undefined
  readonly Message?: string | undefined
}

export type Ask<T> = (
  entries: Array<T & { readonly Id: string }>
) => Promise<{ readonly Failed?: ReadonlyArray<Failed> | undefined }>

export interface Call<T> {
  readonly ask: Ask<T>
  readonly context: Context
  /** Whether it does no harm to ask twice: a call without an answer, which may have happened, is then made again. */
  readonly isIdempotent: boolean
}

type Outcome = { readonly error: BrokerError.BrokerError; readonly again: boolean } | undefined

/** Calls for one entry at most, and the wait after the first in milliseconds, which doubles. */
const rounds = 4
const firstWait = 100

/** What concerns the whole queue would fail for each entry alone as well. */
const isAboutQueue = ({ reason }: BrokerError.BrokerError): boolean =>
  reason === "QueueMissing" || reason === "AccessRefused"

const outcomes = (count: number, failed: ReadonlyArray<Failed>, context: Context): ReadonlyArray<Outcome> => {
  const result: Array<Outcome> = Array.from({ length: count }, () => undefined)
  for (const { Code: code = "Failed", Id, Message: text = "", SenderFault } of failed) {
    const error = fromRefusal({ code, text, status: SenderFault === true ? 400 : 500 }, context)
    result[Number(Id)] = { error, again: SenderFault !== true || isTransient(error) }
  }
  return result
}

/** Ends in bounded time: the SDK limits each call. */
export const call = <T extends object>(
  items: ReadonlyArray<T>,
  { ask, context, isIdempotent }: Call<T>
): Effect.Effect<Answers> => {
  const once = (some: ReadonlyArray<T>): Effect.Effect<ReadonlyArray<Outcome>> =>
    Effect.matchEffect(
      Effect.tryPromise({
        try: () => ask(some.map((item, index) => ({ ...item, Id: String(index) }))),
        catch: (cause) => toBrokerError(cause, context)
      }),
      {
        onSuccess: ({ Failed = [] }) => Effect.succeed(outcomes(some.length, Failed, context)),
        onFailure: (error) =>
          // One entry that is refused must not take the others with it.
          some.length > 1 && !isTransient(error) && !isAboutQueue(error)
            ? Effect.map(
                Effect.forEach(some, (item) => once([item])),
                (each) => each.flat()
              )
            : Effect.succeed(some.map(() => ({ error, again: isIdempotent && isTransient(error) })))
      }
    )

  return Effect.gen(function* () {
    const result = [...(yield* once(items))]
    for (let round = 1, wait = firstWait; round < rounds; round++, wait *= 2) {
      const again = items.flatMap((item, index) => (result[index]?.again === true ? [{ item, index }] : []))
      if (again.length === 0) break
      yield* Effect.sleep(Duration.millis(wait))
      const fresh = yield* once(again.map(({ item }) => item))
      for (const [position, { index }] of again.entries()) result[index] = fresh[position]
    }
    return result.map((outcome) => outcome?.error)
  })
}
