/**
 * Calls that end in bounded time as a whole. What gives credentials, tells where a request goes or sends it may be the
 * program's own, and hang; an answer may stop in its middle. The SDK limits none of that.
 *
 * When its time is over, a call is aborted, and nothing of it is sent later. One that fails before a request was handed to
 * what sends it has certainly not been done, and says so: {@link NotSent}.
 */
import { Bag, Delay, Failure } from "@requeue/core/port"
import { NotSent } from "./toBrokerError.ts"

/** How calls are limited. */
export interface Bounds {
  /** Milliseconds of all attempts, and of what comes before them. */
  readonly timeout: number
  /** Ends the calls, and those that are made later. */
  readonly closing: Closing
  /** Whether the client is the program's: the text of what fails before a request may hold a secret, and is not shown. */
  readonly isGiven: boolean
}

/** A call that can be ended. */
interface Ending extends Bag.Member {
  readonly end: (error: Error) => void
}

/** The end of a client. */
export interface Closing {
  readonly isClosed: () => boolean
  readonly close: () => void
  /** The calls under way. A bag costs each of them less than a listener of an `AbortSignal`. */
  readonly calls: Bag.Bag<Ending>
}

/** Calls of one kind, by their inputs, each of which is an object of its own. */
export interface Bounded {
  /** Makes a call, whose requests go through `hand`. */
  readonly call: <O>(input: object, run: () => Promise<O>) => Promise<O>
  /** Sends a request of the call with this input, unless its time is over. The signal aborts it, where the call is known. */
  readonly hand: <A>(input: object, send: (signal: AbortSignal | undefined) => Promise<A>) => Promise<A>
}

interface Call extends Bag.Member {
  readonly abort: AbortController
  /** Whether a request was handed to what sends it. */
  isHanded: boolean
}

const named = (name: string, message: string): Error => Object.assign(new Error(message), { name })

const closedError = (): Error => named("AbortError", "the connection has been closed")

/**
 * Calls back in real time, which is that of calls, whatever the program's clock says; answers how to forget it. A timer of
 * Node's own, because each call has one, and a fiber that sleeps has such a timer too.
 */
const after = (millis: number, run: () => void): (() => void) => {
  // oxlint-disable-next-line no-restricted-globals -- calls take real time, and Effect's Clock may be a test's
  const timer = setTimeout(run, millis)
  return () => clearTimeout(timer)
}

/** Fails when the promise has not ended in time. */
export const within = <A>(promise: Promise<A>, timeout: number, what: string): Promise<A> => {
  const { promise: over, reject } = Promise.withResolvers<never>()
  const detail = `${what} gave no answer within ${Delay.format(timeout)}`
  return Promise.race([promise, over]).finally(after(timeout, () => reject(named("TimeoutError", detail))))
}

/** A client that is open. */
export const open = (): Closing => {
  const calls: Closing["calls"] = Bag.make()
  let closed = false
  return {
    calls,
    isClosed: () => closed,
    close: () => {
      closed = true
      for (const { end } of calls) end(closedError())
    }
  }
}

/** No call is under way. */
export const make = ({ closing, isGiven, timeout }: Bounds): Bounded => {
  const known = new WeakMap<object, Call>()
  const underWay = Bag.make<Call>()

  return {
    hand: async (input, send) => {
      const call = known.get(input)
      call?.abort.signal.throwIfAborted()
      // Middleware of the program's own may have made another input: then it may be any call's.
      for (const each of call === undefined ? underWay : [call]) each.isHanded = true
      return send(call?.abort.signal)
    },
    call: async (input, run) => {
      if (closing.isClosed()) throw new NotSent({ cause: closedError() })
      const call: Call = { abort: new AbortController(), isHanded: false, place: -1 }
      const { promise: over, reject } = Promise.withResolvers<never>()
      const end = (error: Error): void => {
        reject(error)
        call.abort.abort(error)
      }
      const forget = after(timeout, () => {
        const what = call.isHanded ? "no answer" : "nothing was sent"
        end(named("TimeoutError", `${what} within ${Delay.format(timeout)}`))
      })
      const ending: Ending = { end, place: -1 }
      closing.calls.add(ending)
      known.set(input, call)
      underWay.add(call)
      try {
        const ran = run().catch((cause: unknown) => {
          throw isGiven && !call.isHanded ? Failure.withoutText("the client", cause) : cause
        })
        return await Promise.race([ran, over])
      } catch (cause) {
        throw call.isHanded ? cause : new NotSent({ cause })
      } finally {
        forget()
        closing.calls.delete(ending)
        underWay.delete(call)
      }
    }
  }
}
