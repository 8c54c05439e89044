/** Gathers calls into statements: calls that arrive while a statement runs share the next one. */
import { BrokerError, type Timers } from "@requeue/core/port"
import type { Session } from "../client.ts"
import { type Context, toBrokerError } from "../toBrokerError.ts"
import type { Lane, Source } from "./lane.ts"

/** Ends a call with its result, or with an error if it failed or its outcome is unknown. */
export type End<A> = (error: BrokerError.BrokerError | undefined, result?: A) => void

export type Add<I, A> = (item: I, weight: number, context: Context, end: End<A>) => void

interface Call<I, A> {
  readonly item: I
  readonly weight: number
  readonly context: Context
  /** Monotonic milliseconds. */
  readonly until: number
  readonly end: End<A>
  /** Whether it runs alone, because it failed together with other calls. */
  readonly isAlone: boolean
}

interface Options<I, A> {
  readonly lane: Lane
  readonly timers: Timers.Timers
  /** Milliseconds that a call waits for a connection, and then for an answer. */
  readonly timeout: number
  /** Maximum weight of one statement. Default: one call. */
  readonly maxWeight?: number | undefined
  /** Whether calls whose connection was lost are repeated. Default: false, because they may have happened. */
  readonly isRepeatable?: boolean | undefined
  /** Runs one statement, and returns the result of each item. */
  readonly run: (session: Session, items: ReadonlyArray<I>) => Promise<ReadonlyArray<A>>
}

/** Whether one call may have made all fail: nothing happened, and the others may succeed alone. */
const isDivisible = ({ reason }: BrokerError.BrokerError): boolean =>
  !["ConnectionFailed", "ConnectionLost", "Timeout", "Throttled"].includes(reason)

const timedOut = (timeout: number): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "postgres",
    operation: "query",
    reason: "Timeout",
    detail: `no answer within ${timeout} ms`
  })

/** Limits the time of a promise. Then it breaks the connection: the late answer could be taken for that of another call. */
export const limited = <A>(
  promise: Promise<A>,
  session: Session,
  { timeout, timers }: Pick<Options<never, never>, "timers" | "timeout">
): Promise<A> =>
  new Promise((resolve, reject) => {
    const timer = timers.after(timeout, () => {
      session.destroy()
      reject(timedOut(timeout))
    })
    promise.then(resolve, reject).finally(() => timers.cancel(timer))
  })

/** Returns a function that adds calls. */
export const make = <I, A>({
  isRepeatable = false,
  lane,
  maxWeight = 0,
  run,
  timeout,
  timers
}: Options<I, A>): Add<I, A> => {
  let waiting: Array<Call<I, A>> = []

  const take = (): ReadonlyArray<Call<I, A>> => {
    let count = 0
    for (let weight = 0; count < waiting.length; count++) {
      const call = waiting[count]!
      weight += call.weight
      if (count > 0 && (weight > maxWeight || call.isAlone || waiting[0]!.isAlone)) break
    }
    return waiting.splice(0, count)
  }

  const failAll = (calls: ReadonlyArray<Call<I, A>>, cause: unknown, session: Session): void => {
    for (const call of calls) {
      const error = toBrokerError(cause, call.context)
      // Another connection may find another server.
      if (error.reason === "ConnectionFailed" && error.isMisconfigured !== true) session.destroy()
      if (isRepeatable && error.reason === "ConnectionLost" && timers.now() < call.until) waiting.push(call)
      else if (calls.length > 1 && isDivisible(error)) waiting.push({ ...call, isAlone: true })
      else call.end(error)
    }
  }

  const source: Source = {
    until: () => waiting[0]?.until,
    expire: (now, error) => {
      const late = waiting.filter(({ until }) => until <= now)
      waiting = waiting.filter(({ until }) => until > now)
      for (const { context, end } of late) end(toBrokerError(error, context))
    },
    run: async (session) => {
      const calls = take()
      try {
        const results = await limited(
          run(
            session,
            calls.map(({ item }) => item)
          ),
          session,
          { timers, timeout }
        )
        for (const [index, { end }] of calls.entries()) end(undefined, results[index])
      } catch (cause) {
        failAll(calls, cause, session)
      }
    }
  }

  return (item, weight, context, end) => {
    waiting.push({ item, weight, context, end, until: timers.now() + timeout, isAlone: false })
    lane.schedule(source)
  }
}
