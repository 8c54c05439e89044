/** Keeps a file open, and opens it again when the file or its log was moved or replaced. */
import { BrokerError, type Connection as State, type Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { memory, type Settings } from "../../SqliteOptions.ts"
import type { Driver } from "../client.ts"
import { type Context, isLocked, toBrokerError } from "../toBrokerError.ts"
import * as Changes from "./changes.ts"
import { type Connection, open } from "./connection.ts"

/** The pause between attempts to read or open a locked file, in milliseconds. */
const pause = 5

/** The pause before each attempt to open the file again, in milliseconds. */
const reconnectPause = 100

/** Repeats a synchronous call while the file is locked, until the timeout. */
export const unlocked = <A>(
  run: () => A,
  context: Context,
  { now }: Timers.Timers,
  timeout: number
): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const until = now() + timeout
    while (true) {
      const result = yield* Effect.result(Effect.try({ try: run, catch: (cause) => ({ cause }) }))
      if (result._tag === "Success") return result.success
      const { cause } = result.failure
      if (!isLocked(cause) || now() >= until) return yield* toBrokerError(cause, context)
      yield* Effect.sleep(pause)
    }
  })

/** An open file. */
export interface File {
  /** Returns the connection to the file that has the path now, or why there is none. */
  readonly current: () => Connection | BrokerError.BrokerError
  /** Closes the file, and opens it again after a pause. */
  readonly reopen: () => void
  /** Differs for each file that had the path. */
  readonly generation: () => number
  /** Whether the file has this path, or is linked there. */
  readonly isAt: (path: string) => boolean
  readonly close: () => void
}

interface Options {
  readonly settings: Settings
  readonly driver: Driver
  readonly timers: Timers.Timers
  readonly onState: State.Tracker["set"]
  /** Called when another connection has changed the file, and when it was opened again. */
  readonly onChange: () => void
  /** Called now and then while the file is open. */
  readonly onBeat: (connection: Connection) => void
  /** Called when the file was closed. */
  readonly onClose: () => void
}

/** Opens a file. */
export const make = (options: Options): Effect.Effect<File, BrokerError.BrokerError> => {
  const { settings, driver, timers } = options
  const context = { operation: "open", path: settings.path }
  const first = unlocked(() => open(settings, driver), context, timers, settings.timeout)
  return Effect.map(first, (connection) => keep(connection, options))
}

/** Returns a number that every commit of another connection changes. NaN if the file cannot be read: the next claim reports why. */
const versionOf = ({ prepare }: Connection): number => {
  try {
    return Number(prepare("PRAGMA data_version").get()?.["data_version"])
  } catch {
    return Number.NaN
  }
}

/**
 * Follows the file and its log at a path. Another process may remove the log if a program of this process has closed the file with
 * another library: that ends the locks of the whole process. https://www.sqlite.org/howtocorrupt.html
 */
const follow = (path: string, driver: Driver) => {
  const isFile = path !== memory
  let file = isFile ? driver.identity(path) : undefined
  let log = isFile ? driver.logIdentity(path) : undefined
  return {
    /** Whether the path still leads to the open file and log. */
    isInPlace: () => !isFile || (driver.identity(path) === file && driver.logIdentity(path) === log),
    isAt: (other: string) => file !== undefined && driver.identity(other) === file,
    /** The file was opened again. Returns whether it is another one. */
    opened: () => {
      const before = file
      ;[file, log] = isFile ? [driver.identity(path), driver.logIdentity(path)] : []
      return file !== before
    }
  }
}

const keep = (first: Connection, { driver, onBeat, onChange, onClose, onState, settings, timers }: Options): File => {
  const { path } = settings
  const context = { operation: "open", path }
  const { isAt, isInPlace, opened } = follow(path, driver)
  let current: Connection | BrokerError.BrokerError = first
  let generation = 0
  let unwatch: (() => void) | undefined
  let reconnecting: Timers.Timer | undefined

  const beat = (connection: Connection): void => {
    if (!isInPlace()) return reopen()
    try {
      onBeat(connection)
    } catch (cause) {
      if (!isLocked(cause)) fail(cause)
    }
  }

  const watch = (connection: Connection): void => {
    if (path === memory) return
    unwatch = Changes.watch({
      path,
      driver,
      timers,
      version: () => versionOf(connection),
      onChange,
      onBeat: () => beat(connection)
    })
  }

  const disconnect = (error: BrokerError.BrokerError): void => {
    unwatch?.()
    unwatch = undefined
    if (!(current instanceof BrokerError.BrokerError)) current.db.close()
    current = error
    onClose()
    onState("down", error.message)
  }

  const fail = (cause: unknown): void => {
    disconnect(toBrokerError(cause, context))
    reconnecting = timers.after(reconnectPause, connect)
  }

  const connect = (): void => {
    try {
      current = open(settings, driver)
    } catch (cause) {
      return fail(cause)
    }
    onState("up")
    if (opened()) generation++
    watch(current)
    onChange()
  }

  const reopen = (): void => fail(new Error("it was moved or replaced"))

  watch(first)
  return {
    current: () => {
      if (!(current instanceof BrokerError.BrokerError) && !isInPlace()) reopen()
      return current
    },
    reopen,
    generation: () => generation,
    isAt,
    close: () => {
      timers.cancel(reconnecting)
      disconnect(toBrokerError(new Error("the broker was closed"), context))
    }
  }
}
