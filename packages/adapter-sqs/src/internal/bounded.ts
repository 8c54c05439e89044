/**
 * Limits the total time of calls. The functions for credentials, endpoint and requests may be the program's and hang,
 * and a response may stop in the middle. The SDK limits none of these.
 *
 * When its time is over, a call is aborted and sends nothing later. A call that fails before its request was passed to
 * the request handler has certainly not taken effect: {@link NotSent}.
 */
import { Bag, Delay, Failure } from "@requeue/core/port"
import { NotSent } from "./toBrokerError.ts"

/** How calls are limited. */
export interface Bounds {
  /** Milliseconds for all attempts, preparation included. */
  readonly timeout: number
  /** Ends running and later calls. */
  readonly closing: Closing
  /**
   * Whether the client is the program's: an error before the request may then contain a secret, so its text is not
   * shown.
   */
  readonly isGiven: boolean
}

/** A call that can be ended. */
interface Ending extends Bag.Member {
  readonly end: (error: Error) => void
}

/** Whether a client is closed, and its running calls. */
export interface Closing {
  readonly isClosed: () => boolean
  readonly close: () => void
  /** The running calls. A bag is cheaper for each than a listener of an `AbortSignal`. */
  readonly calls: Bag.Bag<Ending>
}

/** Calls of one kind, identified by their input objects. */
export interface Bounded {
  /** Makes a call, whose requests go through `hand`. */
  readonly call: <O>(input: object, run: () => Promise<O>) => Promise<O>
  /**
   * Sends a request of the call with this input, unless its time is over. If the call is known, the signal aborts it.
   */
  readonly hand: <A>(input: object, send: (signal: AbortSignal | undefined) => Promise<A>) => Promise<A>
}

interface Call extends Bag.Member {
  readonly abort: AbortController
  /** Whether a request was passed to the request handler. */
  isHanded: boolean
}

const named = (name: string, message: string): Error => Object.assign(new Error(message), { name })

const closedError = (): Error => named("AbortError", "the connection has been closed")

/**
 * Calls back after real time, whatever the program's clock; returns a function that cancels. Uses Node's timer
 * directly: a sleeping fiber for each call would cost more.
 */
const after = (millis: number, run: () => void): (() => void) => {
  // oxlint-disable-next-line no-restricted-globals -- calls take real time, and Effect's Clock may be a test's
  const timer = setTimeout(run, millis)
  return () => clearTimeout(timer)
}

/** Fails if the promise does not settle in time. */
export const within = <A>(promise: Promise<A>, timeout: number, what: string): Promise<A> => {
  const { promise: over, reject } = Promise.withResolvers<never>()
  const detail = `${what} gave no answer within ${Delay.format(timeout)}`
  return Promise.race([promise, over]).finally(after(timeout, () => reject(named("TimeoutError", detail))))
}

/** Makes the state of an open client. */
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

/** Makes the calls of one kind. */
export const make = ({ closing, isGiven, timeout }: Bounds): Bounded => {
  const known = new WeakMap<object, Call>()
  const underWay = Bag.make<Call>()

  return {
    hand: async (input, send) => {
      const call = known.get(input)
      call?.abort.signal.throwIfAborted()
      // The program's middleware may have replaced the input: it may then belong to any call.
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
