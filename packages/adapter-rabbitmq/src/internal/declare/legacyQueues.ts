/** Remembers queues that were made under former settings, to declare them with the arguments that they have. */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Former from "./legacyArguments.ts"
import type { NativeObject, NativeQueue } from "./objects.ts"

/** Queues of former settings, by name. */
export interface LegacyQueues {
  readonly get: (queue: string) => NativeQueue | undefined
  /** Returns the object with the arguments to declare it with. */
  readonly own: (object: NativeObject) => NativeObject
  /** Whether a refused object should be declared again with other arguments. `ask` declares an object on a new channel. */
  readonly explain: (
    refused: NativeObject,
    error: BrokerError.BrokerError,
    ask: (object: NativeObject) => Effect.Effect<void, BrokerError.BrokerError>
  ) => Effect.Effect<boolean, BrokerError.BrokerError>
}

/** More arguments than former settings explain. */
const maxQuestions = 6

/** The type by the arguments alone. Without an argument it is classic on most virtual hosts. */
const typeOf = ({ arguments: args }: NativeQueue): unknown => args["x-queue-type"] ?? "classic"

/** Finds the arguments of a refused queue; `undefined` if former settings do not explain them. */
const find = (planned: NativeQueue, first: BrokerError.BrokerError, ask: Parameters<LegacyQueues["explain"]>[2]) =>
  Effect.gen(function* () {
    let refusal: string = first.detail
    let hasOther = false
    let candidate = planned
    for (let asked = 0; asked < maxQuestions; asked++) {
      const next = Former.next(candidate, refusal, hasOther)
      if (next === undefined) return undefined
      hasOther ||= typeOf(next) !== typeOf(candidate)
      candidate = next
      const made = yield* Effect.result(ask(candidate))
      if (Result.isSuccess(made)) return candidate
      if (made.failure.reason !== "QueueMismatch") return yield* made.failure
      refusal = made.failure.detail
    }
    return undefined
  })

/** Remembers no queue at first. */
export const make = (): LegacyQueues => {
  const known = new Map<string, NativeQueue>()
  return {
    get: (queue) => known.get(queue),
    own: (object) =>
      object._tag === "Queue" && object.assert === "declare" ? (known.get(object.name) ?? object) : object,
    explain: (refused, error, ask) =>
      Effect.gen(function* () {
        if (error.reason !== "QueueMismatch" || refused._tag !== "Queue") return false
        if (refused.assert !== "declare") return false
        // The queue may have been deleted and declared again.
        if (known.delete(refused.name)) return true
        const found = yield* find(refused, error, ask)
        if (found !== undefined) known.set(refused.name, found)
        return found !== undefined
      })
  }
}
