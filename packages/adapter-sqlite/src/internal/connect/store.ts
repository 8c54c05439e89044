/** The open file of one broker: its connection, transactions and changes. It is reopened when it was moved or replaced. */
import { BrokerError, type Connection as State, Timers } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { memory, type Settings } from "../../SqliteOptions.ts"
import type { Driver } from "../client.ts"
import { isLocked, toBrokerError } from "../toBrokerError.ts"
import * as Changes from "./changes.ts"
import { type Connection, open } from "./connection.ts"
import * as Flushing from "./flushing.ts"
import * as Transactions from "./transactions.ts"
import { vacuum } from "./vacuum.ts"
import * as Wakeups from "./wakeups.ts"

/** What every part of the adapter shares. */
export interface Store extends Pick<Transactions.Transactions, "add">, Pick<Wakeups.Wakeups, "wake"> {
  readonly settings: Settings
  readonly timers: Timers.Timers
  /** Epoch milliseconds. */
  readonly now: () => number
  readonly onWake: Wakeups.Wakeups["add"]
  /** Reads outside of the transactions. It waits for a lock as they do. */
  readonly read: <A>(context: ReadContext, run: (connection: Connection) => A) => Effect.Effect<A, BrokerError.BrokerError>
  /** Closes the file and opens it again. */
  readonly reopen: () => void
  /** Differs for each file that had the path: numbers of messages are unique in one file only. */
  readonly generation: () => number
}

type ReadContext = Parameters<typeof toBrokerError>[1]

/** The pause between attempts to read or open a locked file, in milliseconds. */
const pause = 5

/** The pause before each attempt to open the file again, in milliseconds. */
const reconnectPause = 100

/** Repeats a synchronous call while the file is locked, until the timeout. */
const unlocked = <A>(run: () => A, context: ReadContext, { now }: Timers.Timers, timeout: number) =>
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

/** Opens the file, and closes it with the scope. */
export const make = (
  settings: Settings,
  driver: Driver,
  onState: State.Tracker["set"]
): Effect.Effect<Store, BrokerError.BrokerError, Scope.Scope> =>
  // Long, because its functions share the connection.
  Effect.gen(function* () {
    const { path, timeout } = settings
    const isFile = path !== memory
    const clock = yield* Clock.Clock
    const timers = yield* Timers.make
    const opening = { operation: "open", path }
    let current: Connection | BrokerError.BrokerError = yield* unlocked(
      () => open(settings, driver),
      opening,
      timers,
      timeout
    )
    let identity = isFile ? driver.identity(path) : undefined
    let generation = 0
    let unwatch: (() => void) | undefined
    let reconnecting: Timers.Timer | undefined

    const flusher = isFile && settings.durability === "full" ? driver.flusher(`${path}-wal`) : undefined
    const wakeups = Wakeups.make()
    const transactions = Transactions.make({
      connection: () => current,
      timers,
      settings,
      soon: driver.soon,
      flush: flusher && Flushing.make(flusher, timers, timeout)
    })

    const closeFile = (): void => {
      unwatch?.()
      unwatch = undefined
      if (!(current instanceof BrokerError.BrokerError)) current.db.close()
    }

    const watch = (connection: Connection): void => {
      if (!isFile) return
      const { prepare } = connection
      unwatch = Changes.watch({
        path,
        driver,
        timers,
        version: () => Number(prepare("PRAGMA data_version").get()?.["data_version"]),
        onChange: () => wakeups.wake(),
        onBeat: () => {
          if (driver.identity(path) !== identity) reopen()
          else vacuum(connection, transactions.add)
        }
      })
    }

    const connect = (): void => {
      try {
        current = open(settings, driver)
      } catch (cause) {
        return disconnect(toBrokerError(cause, opening))
      }
      onState("up")
      const before = identity
      identity = isFile ? driver.identity(path) : undefined
      if (identity !== before) generation++
      watch(current)
      wakeups.wake()
    }

    /** Closes the file, and tries to open it again after a pause. Jobs wait meanwhile. */
    const disconnect = (error: BrokerError.BrokerError): void => {
      closeFile()
      flusher?.close()
      current = error
      onState("down", error.message)
      reconnecting = timers.after(reconnectPause, connect)
    }

    const reopen = (): void => disconnect(toBrokerError(new Error("it was moved or replaced"), opening))

    watch(current)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        transactions.close()
        timers.cancel(reconnecting)
        onState("down")
        closeFile()
        flusher?.close()
        current = toBrokerError(new Error("the broker was closed"), opening)
      })
    )

    const connected = (): Connection => {
      if (current instanceof BrokerError.BrokerError) throw current
      return current
    }

    return {
      add: transactions.add,
      wake: wakeups.wake,
      onWake: wakeups.add,
      settings,
      timers,
      now: () => clock.currentTimeMillisUnsafe(),
      read: (context, run) => unlocked(() => run(connected()), context, timers, timeout),
      reopen,
      generation: () => generation
    }
  })
