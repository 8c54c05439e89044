/** Consoles for programs without Effect. */
import { Configuration } from "@requeue/config"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as BrokerSource from "./BrokerSource.ts"
import * as Console from "./Console.ts"

/** An open console. */
export interface OpenConsole extends Console.Console, AsyncDisposable {
  /** Stops the console's jobs, waits until they have ended, and closes its connections. */
  readonly close: () => Promise<void>
}

/** Options of {@link openConsole}: those of `Console.make`, and the config file. */
export interface OpenOptions extends Omit<Console.Options, "brokers"> {
  /** The path of the config file. Default: the file that `loadConfig` finds. */
  readonly config?: Configuration.Options | undefined
}

/**
 * Opens a console for the brokers and queues of the config file.
 *
 * Rejects with a `ConfigFileError` for a wrong file, and with a `RangeError` for a wrong option.
 *
 * @example
 * ```ts no-run
 * import { createServer } from "node:http"
 * import { Audit, NodeServer, openConsole } from "@requeue/console"
 *
 * const requeue = await openConsole({ audit: Audit.toFile("audit.jsonl") })
 * createServer(NodeServer.listener(requeue)).listen(4747, "127.0.0.1")
 * ```
 */
export const openConsole = async ({ config, ...options }: OpenOptions): Promise<OpenConsole> => {
  const scope = Scope.makeUnsafe()
  const made = Effect.gen(function* () {
    const brokers = yield* BrokerSource.ofConfiguration(yield* Configuration.load(config))
    return yield* Effect.suspend(() => Console.make({ ...options, brokers }))
  })
  const opened = await Effect.runPromise(Scope.provide(made, scope))
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  return { ...opened, close, [Symbol.asyncDispose]: close }
}
