/**
 * One call of SQS for up to ten entries. SQS responds 200 even if entries have failed: each entry is checked, and
 * entries that failed without the sender's fault are sent again.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-batch-api-actions.html
 */
import { BrokerError, Failure } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { objectsIn } from "./answer.ts"
import type { Doubted } from "./doubts.ts"
import * as Limits from "./limits.ts"
import { type Context, fromRefusal, isTransient, toBrokerError } from "./toBrokerError.ts"

/** The error of each item, in order; `undefined` where it succeeded. */
export type Results = ReadonlyArray<BrokerError.BrokerError | undefined>

/** A failed entry in SQS's response. */
export interface Failed {
  readonly Id: string | undefined
  readonly SenderFault: boolean | undefined
  readonly Code: string | undefined
  readonly Message?: string | undefined
}

/** The answer to a batch call. */
interface BatchResult extends Doubted {
  readonly Failed?: ReadonlyArray<Failed> | undefined
  readonly Successful?: ReadonlyArray<{ readonly Id: string | undefined }> | undefined
}

/** A batch call of the driver. */
export type Ask<T> = (entries: Array<T & { readonly Id: string }>) => Promise<BatchResult>

/** A batch call, and how to repeat it. */
export interface Call<T> {
  readonly ask: Ask<T>
  readonly context: Context
  /** Whether to repeat a call that got no answer and may have taken effect. Set it for idempotent calls. */
  readonly isIdempotent: boolean
  /** Whether to repeat a throttled call. Set it if the driver does not. Default: false. */
  readonly repeatsThrottled?: boolean
}

type Outcome = { readonly error: BrokerError.BrokerError; readonly again: boolean } | undefined

/** Maximum number of calls for one entry. */
const rounds = 4

/** Milliseconds before the second call; doubled for each further call. */
const firstWait = 100

/** Whether an error concerns the whole queue: each entry alone would fail too. */
const isAboutQueue = ({ reason }: BrokerError.BrokerError): boolean =>
  reason === "QueueMissing" || reason === "AccessRefused"

/** The ids of the entries of a call, by position. */
const ids: ReadonlyArray<string> = Array.from({ length: Limits.batch }, (_, place) => String(place))

/** Calls `take` with each valid entry of a list in the response, and its position. */
const eachIn = (
  answer: unknown,
  list: keyof BatchResult,
  count: number,
  take: (place: number, entry: object) => void
): void => {
  for (const entry of objectsIn(answer, list)) {
    const id: unknown = Reflect.get(entry, "Id")
    const place = typeof id === "string" ? ids.indexOf(id) : -1
    if (place !== -1 && place < count) take(place, entry)
  }
}

const textOf = (value: unknown, otherwise: string): string => (typeof value === "string" ? value : otherwise)

const outcomes = (
  count: number,
  answer: BatchResult | undefined,
  context: Context,
  isIdempotent: boolean
): ReadonlyArray<Outcome> => {
  const told = new Map<number, Outcome>()
  eachIn(answer, "Successful", count, (index) => told.set(index, undefined))
  // An earlier attempt may have taken effect, even if a later one was refused.
  const doubt = answer?.doubt === undefined ? undefined : toBrokerError(answer.doubt, context)
  eachIn(answer, "Failed", count, (index, entry) => {
    const { Code, Message, SenderFault }: Partial<Record<keyof Failed, unknown>> = entry
    const status = SenderFault === true ? 400 : 500
    const refused = fromRefusal({ code: textOf(Code, "Failed"), text: textOf(Message, ""), status }, context)
    const error = BrokerError.ofRepetition(doubt, refused) ?? refused
    told.set(index, { error, again: SenderFault !== true || isTransient(refused) })
  })
  // An entry counts as done only if SQS reports so. A function, because creating an error captures a stack.
  const unknown = (): BrokerError.BrokerError =>
    fromRefusal({ code: "TimeoutError", text: "no answer for this entry", status: undefined }, context)
  const otherwise = told.size === count ? undefined : { error: unknown(), again: isIdempotent }
  return Array.from({ length: count }, (_, index) => (told.has(index) ? told.get(index) : otherwise))
}

/** Combines the outcomes of two calls for an entry. */
const latest = (first: Outcome, second: Outcome): Outcome => {
  const error = BrokerError.ofRepetition(first?.error, second?.error)
  return error === undefined ? undefined : { error, again: second?.again === true }
}

const errorsOf = (all: ReadonlyArray<Outcome>): Results => all.map((outcome) => outcome?.error)

/** Makes the call. Never fails, and ends in bounded time, since the client limits each call. */
export const call = <T extends object>(
  items: ReadonlyArray<T>,
  { ask, context, isIdempotent, repeatsThrottled = false }: Call<T>
): Effect.Effect<Results> => {
  const mayRepeat = (error: BrokerError.BrokerError): boolean =>
    (isIdempotent && isTransient(error)) || (repeatsThrottled && error.reason === "Throttled")

  const once = (some: ReadonlyArray<T>): Effect.Effect<ReadonlyArray<Outcome>> =>
    Effect.matchEffect(
      Effect.tryPromise({
        try: () => ask(some.map((item, index) => ({ ...item, Id: String(index) }))),
        catch: (cause) => toBrokerError(cause, context)
      }),
      {
        onSuccess: (answer) => Effect.succeed(outcomes(some.length, answer, context, isIdempotent)),
        onFailure: (error) =>
          // One refused entry must not fail the others.
          some.length > 1 && !isTransient(error) && !isAboutQueue(error)
            ? Effect.map(
                Effect.forEach(some, (item) => once([item])),
                (each) => each.flat()
              )
            : Effect.succeed(some.map(() => ({ error, again: mayRepeat(error) })))
      }
    )

  const repeated = Effect.fnUntraced(function* (first: ReadonlyArray<Outcome>) {
    const result = [...first]
    for (let round = 1, wait = firstWait; round < rounds; round++, wait *= 2) {
      const again = items.flatMap((item, index) => (result[index]?.again === true ? [{ item, index }] : []))
      if (again.length === 0) break
      yield* Effect.sleep(Duration.millis(wait))
      const fresh = yield* once(again.map(({ item }) => item))
      for (const [position, { index }] of again.entries())
        result[index] = isIdempotent ? fresh[position] : latest(result[index], fresh[position])
    }
    return errorsOf(result)
  })

  // Nearly every call succeeds at once and needs no loop.
  return Effect.flatMap(once(items), (first) =>
    first.some((outcome) => outcome?.again === true) ? repeated(first) : Effect.succeed(errorsOf(first))
  ).pipe(
    // Otherwise the callers would wait forever.
    Effect.catchDefect((defect) => {
      const text = Failure.summarize(defect).message
      const error = fromRefusal({ code: "Error", text, status: undefined }, context)
      return Effect.succeed(items.map(() => error))
    })
  )
}
