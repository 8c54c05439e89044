/** Turns the calls of a module into functions that return promises. */
import type { Broker } from "@requeue/core"
import { OptionNames } from "@requeue/core/port"
import type { Requeue } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import * as Closing from "./Closing.ts"

/** The same calls, in which each Effect has become a function that returns a promise. */
export type Promised<Calls> = {
  readonly [Name in keyof Calls]: Calls[Name] extends (...args: infer Args) => Effect.Effect<infer A, unknown, unknown>
    ? (...args: Args) => Promise<A>
    : Calls[Name] extends Effect.Effect<infer A, unknown, unknown>
      ? () => Promise<A>
      : never
}

/** A function for each call with arguments, which returns the error of wrong arguments. */
type Refusals = Readonly<Record<string, (...args: any) => RangeError | undefined>> // Each call has its own arguments.

/**
 * Returns the named calls of the object from `make`. Arguments are checked before anything is awaited, so the error's stack shows
 * the call.
 */
export const promised = <Calls extends object, const Name extends keyof Calls & string>(
  { run }: Requeue,
  make: Effect.Effect<Calls, never, Broker.Broker>,
  names: ReadonlyArray<Name>,
  refusals: Refusals
): Promised<Pick<Calls, Name>> => {
  const call =
    (name: Name) =>
    async (...args: ReadonlyArray<unknown>) => {
      OptionNames.orThrow(refusals[name]?.(...args))
      // It begins at once, so the call copies its options before the caller can change them.
      const called = Effect.flatMap(make, (calls) => effectOf(calls[name], args))
      return run(Effect.provideService(called, Closing.isClosing, true))
    }
  // Cast, because `fromEntries` knows no names.
  return Object.fromEntries(names.map((name) => [name, call(name)])) as Promised<Pick<Calls, Name>>
}

type Result = Effect.Effect<unknown, unknown, Broker.Broker>

const effectOf = (call: unknown, args: ReadonlyArray<unknown>): Result =>
  // Cast, because a call is an Effect or a function that returns one: see `Promised`.
  typeof call === "function" ? (call(...args) as Result) : (call as Result)
