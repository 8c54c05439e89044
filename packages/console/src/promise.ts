/** Consoles for programs without Effect. */
import { Configuration } from "@requeue/config"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as BrokerSource from "./BrokerSource.ts"
import * as Console from "./Console.ts"

/** A console that is open. */
export interface OpenConsole extends Console.Console, AsyncDisposable {
  /** Stops its jobs, waits for them, and closes its connections. */
  readonly close: () => Promise<void>
}

/** Options of {@link openConsole}: those of `Console.make`, and where the config file is. */
export interface OpenOptions extends Omit<Console.Options, "brokers"> {
  /** The config file that names brokers and queues. Default: as `loadConfig` finds it. */
  readonly config?: Configuration.Options | undefined
}

/**
 * Opens a console for the brokers and queues of the config file.
 *
 * Rejects with a `ConfigFileError` where the file is wrong, and with RangeError for an option that is.
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
