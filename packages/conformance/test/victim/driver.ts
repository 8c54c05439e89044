/** The driver: calls of the file that take their time, may be refused, and may remain without an answer. */
import { BrokerError, Deadlines, Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Failure, Operation } from "../../src/Harness.ts"
import * as File from "./file.ts"

/** Milliseconds after which a call without an answer has failed. */
const timeout = 500

/** Calls of one process. */
export interface Driver {
  /** Does something to the file. */
  readonly call: <A>(operation: Operation, run: (file: File.File) => A) => Effect.Effect<A, BrokerError.BrokerError>
  /** Lets the next call of this kind fail; the harness asks for it. */
  fault: { readonly operation: Operation; readonly failure: Failure; happened: boolean } | undefined
}

const error = (operation: Operation, reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "file", operation, reason, detail })

/** Opens the file for a process. `isOn`: whether its machine still runs. */
export const make = (path: string, isOn: () => boolean): Effect.Effect<Driver, never, Scope.Scope> =>
  Effect.gen(function* () {
    const file = yield* Effect.acquireRelease(
      Effect.sync(() => File.open(path)),
      ({ close }) => Effect.sync(close)
    )
    const deadlines = Deadlines.make(yield* Timers.make, timeout, true)
    const answered = <A>(operation: Operation, run: (file: File.File) => A) =>
      Effect.suspend((): Effect.Effect<A, BrokerError.BrokerError> => {
        if (!isOn()) return Effect.fail(error(operation, "ConnectionLost", "the machine is off"))
        const { fault } = driver
        const failure = fault?.operation === operation && !fault.happened ? fault.failure : undefined
        if (fault !== undefined && failure !== undefined) fault.happened = true
        if (failure === "refused") return Effect.fail(error(operation, "Throttled", "the file is locked"))
        if (failure === "lostRequest") return Effect.never
        return Effect.andThen(Effect.try({ try: () => run(file), catch: (cause) => ofSqlite(operation, cause) }), (a) =>
          failure === "lostAnswer" ? Effect.never : Effect.succeed(a)
        )
      })
    const driver: Driver = {
      fault: undefined,
      call: (operation, run) =>
        deadlines.within(answered(operation, run), () =>
          Effect.fail(error(operation, "Timeout", `no answer within ${timeout} ms`))
        )
    }
    return driver
  })

const ofSqlite = (operation: Operation, cause: unknown): BrokerError.BrokerError =>
  String(cause).includes("FOREIGN KEY")
    ? error(operation, "QueueMissing", "there is no such queue")
    : error(operation, "Throttled", String(cause))
