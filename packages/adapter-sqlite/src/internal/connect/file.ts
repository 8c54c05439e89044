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
  /**
   * Returns the connection, or the error if the file is not open. With `isSure`, the connection is to the file that has the path now;
   * otherwise to the file that had it a moment ago.
   */
  readonly current: (isSure: boolean) => Connection | BrokerError.BrokerError
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
  /** The timers of `onBeat`. */
  readonly beats: Timers.Timers
  readonly onState: State.Tracker["set"]
  /** Called when another connection has changed the file, and when it was opened again. */
  readonly onChange: () => void
  /** Whether `onChange` has a use. */
  readonly isAwaited: () => boolean
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

/** How often a transaction without sends checks that the file was not replaced, in milliseconds. */
const checkEvery = 10

/**
 * Follows the file and its log at a path. Another process may remove the log if a program of this process has closed the file with
 * another library: that ends the locks of the whole process. https://www.sqlite.org/howtocorrupt.html
 */
const follow = (path: string, driver: Driver) => {
  const read = () => {
    const [file, log] = path === memory ? [] : [driver.identity(path), driver.logOf(path)]
    return { file, log, logFile: log && driver.identity(log) }
  }
  let opened = read()
  return {
    /** Whether the path still leads to the open file and log. */
    isInPlace: () => {
      const { file, log, logFile } = opened
      return file === undefined || (driver.identity(path) === file && (!log || driver.identity(log) === logFile))
    },
    isAt: (other: string) => opened.file !== undefined && driver.identity(other) === opened.file,
    /** The file was opened again. Returns whether it is another one. */
    opened: () => {
      const before = opened.file
      opened = read()
      return opened.file !== before
    }
  }
}

const keep = (first: Connection, options: Options): File => {
  const { beats, driver, isAwaited, onBeat, onChange, onClose, onState, settings, timers } = options
  const { path } = settings
  const context = { operation: "open", path }
  const { isAt, isInPlace, opened } = follow(path, driver)
  let current: Connection | BrokerError.BrokerError = first
  let generation = 0
  let unwatch: (() => void) | undefined
  let reconnecting: Timers.Timer | undefined
  let checked = 0

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
      beats,
      version: () => versionOf(connection),
      onChange,
      isAwaited,
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
    current: (isSure) => {
      const now = timers.now()
      if (current instanceof BrokerError.BrokerError || (!isSure && now - checked < checkEvery)) return current
      checked = now
      if (!isInPlace()) reopen()
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
